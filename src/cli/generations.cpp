// Commands that read a checkpoint directory.
#include <fmt/ranges.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "api/table.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/objects.h"
#include "cli/sight.h"
#include "files/owners.h"
#include "image/codec.h"
#include "image/image.h"
#include "image/save_options.h"
#include "level/process_state.h"
#include "store/store.h"

using nlohmann::json;

namespace fermata::cli {
namespace {

const char* kind_of(const store::Manifest& m) {
    return m.step ? "own state" : m.needs.empty() ? "full" : "delta";
}

// Seconds since it was committed (compacting it later does not make it younger).
int64_t age_of(const store::GenerationInfo& info) {
    struct tm local {};
    local.tm_isdst = -1;
    if (!::strptime(info.manifest->created.c_str(), "%Y-%m-%d %H:%M:%S", &local)) return 0;
    return std::max<int64_t>(0, ::time(nullptr) - ::mktime(&local));
}

// 75 -> "1 min", as people say it.
std::string age_text(int64_t seconds) {
    if (seconds < 60) return fmt::format("{} s", seconds);
    if (seconds < 3600) return fmt::format("{} min", seconds / 60);
    if (seconds < int64_t{2} * 86400) return fmt::format("{} h", seconds / 3600);
    return fmt::format("{} d", seconds / 86400);
}

json summary(const store::GenerationInfo& info) {
    json j = {{"generation", Generation(info.number).name()},
              {"directory", info.directory},
              {"owner", files::name_of_user(info.folder.owner())}};
    if (!info.manifest) {
        j["state"] = info.damage.empty() ? "incomplete" : "damaged";
        j["damage"] = info.damage;
        return j;
    }
    const store::Manifest& m = *info.manifest;
    j["state"] = "complete";
    j["created"] = m.created;
    j["job"] = m.job_name;
    j["job_number"] = fmt::format("{:016x}", m.job);
    j["mpi"] = m.mpi;
    j["fermata"] = m.fermata;
    j["command"] = m.command;
    for (const store::Segment& segment : m.segments)
        j["segments"].push_back({{"first_rank", segment.ranks.first().number()},
                                 {"ranks", segment.ranks.count()},
                                 {"command", segment.command}});
    j["ranks"] = m.images.size();
    j["bytes"] = info.bytes();
    j["encrypted"] = m.key_id.has_value();
    j["level"] = store::name_of(m.level);
    if (m.on_nodes()) j["nodes"] = m.nodes;
    if (const auto nodes = local_copies_of(info); !nodes.empty()) j["local_copies"] = nodes;
    j["layout"] = m.layout.word();
    j["kind"] = kind_of(m);
    if (m.step) j["step"] = *m.step;
    j["age"] = age_of(info);
    j["seconds"] = m.seconds();
    j["phases"] = m.phases;
    j["needs"] = m.needs;
    return j;
}

std::string command_line(const store::Manifest& m) {
    return visible(fmt::format("{}", fmt::join(m.whole_command(), " ")));
}

std::string shown(const json& text) { return visible(text.get<std::string>()); }
void print_process(const json& process) {
    fmt::print("    in {}; {} thread{}:", shown(process["directory"]), process["threads"].size(),
               process["threads"].size() == 1 ? "" : "s");
    for (const json& thread : process["threads"])
        fmt::print(" {} {}{}", thread["tid"].get<int>(), shown(thread["name"]),
                   thread["called_mpi"].get<bool>() ? " (MPI)" : "");
    fmt::print("\n");
    if (size_t kept = process["kept"].size()) {
        uint64_t bytes = 0;
        for (const json& file : process["kept"])
            if (file["how"] == "copy") bytes += file["size"].get<uint64_t>();
        fmt::print("    keeps {} of the program's files: {}\n", kept, human_size(bytes));
    }
    for (const json& file : process["files"])
        fmt::print("    descriptor {:>4}  {:<9}  {}\n", file["number"].get<int>(), shown(file["kind"]),
                   visible(file.value("path", "")));
}

// Lines of a table, each column as wide as its longest cell; the last one is free.
void print_table(const std::vector<std::vector<std::string>>& lines, const std::vector<char>& sides) {
    std::vector<size_t> widths(sides.size());
    for (const auto& line : lines)
        // A short line is a sentence from its second cell on, not a row.
        for (size_t i = 0; i < line.size() && line.size() == sides.size(); ++i)
            widths[i] = std::max(widths[i], line[i].size());
    for (const auto& line : lines) {
        std::string text;
        for (size_t i = 0; i < line.size(); ++i) {
            std::string room(widths[i] - std::min(widths[i], line[i].size()), ' ');
            bool last = i + 1 == line.size();
            text += sides[i] == '>' ? room + line[i] : line[i] + (last ? "" : room);
            if (!last) text += "  ";
        }
        fmt::print("{}\n", text);
    }
}

// "full, encrypted, one file"
std::string words_of(const store::GenerationInfo& info) {
    const store::Manifest& m = *info.manifest;
    std::string words = kind_of(m);
    if (m.step) words += fmt::format(", step {}", *m.step);
    if (m.key_id) words += ", encrypted";
    if (m.layout == image::Layout::shared()) words += ", shared file";
    if (m.layout.in_groups())
        words += fmt::format(", {} file{}", m.files.size(), m.files.size() == 1 ? "" : "s");
    if (m.level != store::LevelName::files) words += std::string(", ") + store::name_of(m.level);
    const std::set<std::string> nodes(m.nodes.begin(), m.nodes.end());
    const auto list = [](const auto& all) { return visible(fmt::format("{}", fmt::join(all, ", "))); };
    if (!nodes.empty()) words += " of " + list(nodes);
    if (const auto copies = local_copies_of(info); !copies.empty()) words += ", and local of " + list(copies);
    return words;
}

const char* what_uncommitted_is(const store::Store& store, const store::GenerationInfo& info, bool in_use) {
    if (in_use) return "incomplete: being written, or never committed";
    return store.is_left_behind(info)
               ? "incomplete: never committed; the next checkpoint here removes it"
               : "incomplete: never committed; only its own job's next checkpoint removes it";
}

// A column for the owner, behind the job's.
void add_owners(std::vector<std::vector<std::string>>& lines, std::vector<char>& sides,
                const std::vector<store::GenerationInfo>& generations) {
    constexpr size_t kBehind = 4;
    for (size_t i = 0; i < lines.size(); ++i)
        if (lines[i].size() == sides.size())
            lines[i].insert(
                lines[i].begin() + kBehind,
                i == 0 ? "owner" : visible(files::name_of_user(generations[i - 1].folder.owner())));
    sides.insert(sides.begin() + kBehind, '<');
}

}  // namespace

int list(const StoreOptions& options) {
    files::believe_everybody();  // nothing of what is read runs
    store::Store store = open_store(options);
    json all = json::array();
    std::vector<store::GenerationInfo> generations = store.list();
    const bool in_use = store.in_use();
    const bool of_others = std::any_of(generations.begin(), generations.end(),
                                       [](const auto& info) { return !other_owner(info).empty(); });
    std::vector<std::vector<std::string>> lines = {
        {"generation", "committed", "age", "job", "ranks", "size", "kind", "took", "mpi", "command"}};
    for (const store::GenerationInfo& info : generations) {
        if (options.json) {
            all.push_back(summary(info));
        } else if (info.manifest) {
            const store::Manifest& m = *info.manifest;
            lines.push_back({Generation(info.number).name(), visible(m.created), age_text(age_of(info)),
                             visible(m.job_name), std::to_string(m.images.size()), human_size(info.bytes()),
                             words_of(info), fmt::format("{:.2f} s", m.seconds()), visible(m.mpi),
                             command_line(m)});
        } else {
            std::string of =
                of_others ? fmt::format(" (of {})", files::name_of_user(info.folder.owner())) : "";
            lines.push_back({Generation(info.number).name(),
                             (info.damage.empty() ? std::string(what_uncommitted_is(store, info, in_use))
                                                  : "damaged: " + visible(info.damage)) +
                                 visible(of)});
        }
    }
    std::vector<char> sides = {'<', '<', '>', '<', '>', '>', '<', '>', '<', '<'};
    if (of_others) add_owners(lines, sides, generations);
    if (options.json)
        print_pretty(all);
    else if (lines.size() == 1)
        fmt::print("no generation in {}\n", visible(store.directory()));
    else
        print_table(lines, sides);
    return 0;
}

int inspect(const StoreOptions& options) {
    files::believe_everybody();
    store::Store store = open_store(options);
    store::GenerationInfo info = store.choose(options.generation, true);
    const store::Manifest& m = *info.manifest;
    json j = summary(info);
    j["images"] = json::array();
    const std::string unseen = not_seen(info);
    for (const store::ImageEntry& entry : m.images) {
        if (!find_image(info, entry)) continue;
        image::Reader reader(info.place(entry), store.key());
        std::map<std::string, size_t> codecs;
        for (const image::Block& block : reader.blocks()) ++codecs[image::name_of(block.codec)];
        json image = {{"rank", entry.rank.number()},
                      {"file", entry.file},
                      {"offset", entry.offset},
                      {"bytes", entry.bytes},
                      {"checksum", entry.checksum.hex()},
                      {"extents", reader.extents().size()},
                      {"blocks", codecs},
                      {"content", reader.summary().content},
                      {"written", reader.summary().written}};
        for (const image::Blob& blob : reader.blobs()) image["blobs"][blob.name] = blob.bytes.size();
        if (level::has_part(reader, "process")) image["process"] = contents_of(reader);
        if (json objects = objects_of(reader); !objects.is_null()) image["mpi"] = std::move(objects);
        if (level::has_part(reader, api::kBlob)) image["state"] = state_of(reader);
        if (options.regions && level::has_part(reader, "memory")) image["region_list"] = regions_of(reader);
        j["images"].push_back(std::move(image));
    }
    if (options.json) {
        print_pretty(j);
        return 0;
    }
    fmt::print("{}  {}  job {}\n  command  {}\n  mpi      {}\n", Generation(info.number).name(),
               visible(m.created), visible(m.job_name), command_line(m), visible(m.mpi));
    if (std::string owner = other_owner(info); !owner.empty()) fmt::print("  owner    {}\n", owner);
    if (!m.fermata.empty()) fmt::print("  fermata  {}\n", visible(m.fermata));
    uint64_t text = info.bytes() - m.bytes();
    fmt::print("  size     {}: {} image{}, {}{}\n", human_size(info.bytes()), m.images.size(),
               m.images.size() == 1 ? "" : "s", human_size(m.bytes()),
               text ? fmt::format(", and code that ranks have in common, {}", human_size(text)) : "");
    if (m.on_nodes()) fmt::print("  level    {}{}\n", words_of(info), unseen);
    fmt::print("  phases  ");
    for (auto& [name, seconds] : m.phases) fmt::print(" {} {:.3f} s", visible(name), seconds);
    fmt::print("\n");
    for (const json& image : j["images"]) {
        std::string blocks;
        for (auto& [codec, count] : image["blocks"].items())
            blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", count.get<size_t>(), codec);
        fmt::print("  rank {:>6}  {:>10}  {} of memory in {} extents; blocks: {}\n", image["rank"].get<int>(),
                   human_size(image["bytes"].get<uint64_t>()), human_size(image["content"].get<uint64_t>()),
                   image["extents"].get<size_t>(), blocks);
        if (image.contains("process")) print_process(image["process"]);
        if (image.contains("mpi")) {
            fmt::print("    MPI: {}\n", numbers_line(image["mpi"]));
            if (options.objects)
                for (const json& object : image["mpi"]["list"])
                    fmt::print("    {}\n", visible(object_line(object)));
        }
        if (image.contains("state"))
            for (const json& one : image["state"])
                fmt::print("    {:<24} {:<32} {:>10} in {} part{}\n", shown(one["name"]),
                           one["what"].get<std::string>(), human_size(one["bytes"].get<uint64_t>()),
                           one["parts"].get<size_t>(), one["parts"] == 1 ? "" : "s");
        if (image.contains("region_list"))
            for (const json& r : image["region_list"])
                fmt::print("    {:<29} {} {:<13} {:>10} of {:>10}  {}\n", shown(r["range"]),
                           shown(r["access"]), shown(r["kind"]), human_size(r["saved"].get<uint64_t>()),
                           human_size(r["size"].get<uint64_t>()), shown(r["name"]));
    }
    return 0;
}

int compact(const CompactOptions& options) {
    store::Store store = open_store(options.store);
    store.lock(fmt::format("fermata compact, process {}", ::getpid()), 0);
    store::GenerationInfo before = store.choose(options.store.generation, false);
    store.act_for(before.manifest->job);
    uint64_t bytes_before = before.bytes();
    bool changed = store.compact(before.number, options.save_options.write);
    if (options.keep > 0) store.retain(options.keep);
    store::GenerationInfo after = store.choose(before.number, false);
    if (options.store.json)
        print_pretty({{"generation", Generation(after.number).name()},
                      {"changed", changed},
                      {"bytes_before", bytes_before},
                      {"bytes", after.bytes()},
                      {"needed", before.manifest->needs}});
    else if (changed)
        std::printf("%s stands alone: %s; it was %s and needed %zu earlier generations\n",
                    Generation(after.number).name().c_str(), human_size(after.bytes()).c_str(),
                    human_size(bytes_before).c_str(), before.manifest->needs.size());
    else
        std::printf("%s stands alone already: %s\n", Generation(after.number).name().c_str(),
                    human_size(after.bytes()).c_str());
    return 0;
}

}  // namespace fermata::cli
