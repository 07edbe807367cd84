// `fermata verify`: compares every byte of every copy that this machine reaches, and mends it from another
// one.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/table.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/job_repair.h"
#include "cli/sight.h"
#include "files/owners.h"
#include "level/process_state.h"
#include "level/repair.h"

using nlohmann::json;

namespace fermata::cli {
namespace {

// Finds what a restart would refuse although each byte is as it was written.
std::vector<level::KeptFile> judge(const image::Reader& reader, const files::Folder& beside) {
    if (level::has_part(reader, "process")) contents_of(reader);
    if (level::has_part(reader, "memory")) regions_of(reader);
    if (level::has_part(reader, api::kBlob)) state_of(reader);
    return level::kept_files_of(reader, beside);
}

// The result for one generation.
struct Verdict {
    std::vector<std::string> damage;  // a line each; none: all that is here is intact
    std::vector<std::string> mended;
    bool could_be_mended = false;

    void add(const std::vector<std::string>& mended_lines, const std::vector<std::string>& damage_lines) {
        mended.insert(mended.begin(), mended_lines.begin(), mended_lines.end());
        damage.insert(damage.end(), damage_lines.begin(), damage_lines.end());
    }
};

Verdict verdict_of(const store::GenerationInfo& info, const image::Key* key, bool repair) {
    if (!info.manifest) return {{info.damage.empty() ? "it was never committed" : info.damage}, {}, false};
    Verdict verdict;
    try {
        info.check_layout();
        level::Copies copies(info, key, judge);
        copies.look();
        level::ParityHere parity(copies.shelves(), info.manifest->job, Generation(info.number));
        verdict.damage = copies.damage();
        for (const level::ParityHere::Damage& one : parity.damage()) verdict.damage.push_back(one.why);
        if (verdict.damage.empty()) return verdict;
        for (const store::ImageEntry& entry : info.manifest->images)
            for (size_t i = 0; i < copies.shelves().size(); ++i)
                verdict.could_be_mended = verdict.could_be_mended ||
                                          (copies.state(i, entry.rank) == level::Copies::State::damaged &&
                                           copies.intact(entry.rank) != nullptr);
        if (!repair) return verdict;
        level::Repair::Report report = level::Repair(copies, parity).run();
        verdict.mended = std::move(report.mended);
        verdict.damage = std::move(report.left);
        // Whatever was done: only what is intact now is said to be.
        if (verdict.damage.empty()) verdict.damage = copies.damage();
    } catch (const image::KeyError&) {
        throw;
    } catch (const Error& error) {
        verdict.damage.push_back(error.what());
    }
    return verdict;
}

void say_verdict(store::GenerationInfo& info, const Verdict& verdict, bool repair) {
    const std::string name = Generation(info.number).name();
    for (const std::string& line : verdict.mended) fmt::print("{}  repaired: {}\n", name, visible(line));
    if (verdict.damage.empty()) {
        fmt::print("{}  intact, {}{}{}\n", name, human_size(info.bytes()), of_other(info), not_seen(info));
        return;
    }
    if (repair) {
        for (const std::string& line : verdict.damage)
            say(fmt::format("error: {}{}: {}", name, of_other(info), visible(line)));
        return;
    }
    std::string more =
        verdict.damage.size() > 1 ? fmt::format(" (and {} more)", verdict.damage.size() - 1) : "";
    if (verdict.could_be_mended) more += "; another copy is intact: `fermata verify --repair` takes it";
    say(fmt::format("error: {}{}: {}{}", name, of_other(info), visible(verdict.damage.front()), more));
}

}  // namespace

int verify(const VerifyOptions& options) {
    files::believe_everybody();
    store::Store store = open_store(options.store);
    json all = json::array();
    bool good = true, any = false;
    // Copies on other machines are reached by way of the job only, while it runs.
    JobRepair by_job;
    if (options.repair) by_job = repair_by_job(options.store.ckpt_dir, options.store.generation);
    for (store::GenerationInfo& info : store.list()) {
        if (options.store.generation && *options.store.generation != info.number) continue;
        if (!options.store.generation && !info.manifest && info.damage.empty())
            continue;  // never committed: nothing to verify
        info.check_key(store.key());
        Verdict verdict = verdict_of(info, store.key(), options.repair);
        const std::string name = Generation(info.number).name();
        verdict.add(by_job.mended[name], by_job.left[name]);
        // A job that runs removes what --keep does not keep, the manifest first: that is no damage.
        if (!verdict.damage.empty() && !options.store.generation && info.manifest &&
            !info.folder.has(store::kManifest)) {
            if (!options.store.json) fmt::print("{}  removed meanwhile\n", name);
            continue;
        }
        any = true;
        good = good && verdict.damage.empty();
        if (options.store.json)
            all.push_back({{"generation", name},
                           {"ok", verdict.damage.empty()},
                           {"damage", verdict.damage.empty() ? "" : verdict.damage.front()},
                           {"all_damage", verdict.damage},
                           {"repaired", verdict.mended},
                           {"owner", files::name_of_user(info.folder.owner())}});
        else
            say_verdict(info, verdict, options.repair);
    }
    if (!any)
        throw Error(
            fmt::format("no generation{} in {}",
                        options.store.generation ? " " + Generation(*options.store.generation).name() : "",
                        options.store.ckpt_dir),
            ExitCode::damaged);
    if (options.store.json) print_pretty(all);
    return static_cast<int>(good ? ExitCode::ok : ExitCode::damaged);
}

}  // namespace fermata::cli
