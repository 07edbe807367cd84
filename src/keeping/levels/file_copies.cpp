#include "keeping/levels/file_copies.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"

namespace fermata::keeping {

using store::LevelName;

// Keeper makes it itself: the end of a job needs it.
Kind FileCopies::kind() {
    return {.name = "files",
            .shape = "files",
            .read = [](const Entry& entry, level::Levels& levels) { levels.files = entry.period(); },
            .period = [](const level::Levels& levels) { return levels.files; }};
}

std::optional<double> FileCopies::period() const {
    return means_.settings.levels ? means_.settings.levels.files : std::nullopt;
}

// At its time, or as soon as what kept the last one from coming to files is mended.
bool FileCopies::is_due(Generation newest, int64_t now) {
    if (since_ == 0) since_ = now;
    const std::optional<double> every = period();
    if (!every) return false;
    bool& is_mended = means_.account.damage.is_mended;
    if (!is_mended && static_cast<double>(now - since_) < *every * 1000) return false;
    if (!newest || means_.account.book.has(newest, LevelName::files)) return false;
    since_ = now;  // the next one is due then, whatever becomes of this
    is_mended = false;
    return true;
}

void FileCopies::copy_now(Generation generation, int64_t now) {
    const std::vector<Generation> all = missing(generation);
    if (all.empty()) return;
    at_full_speed_ = true;
    begin(all, now);
    at_full_speed_ = false;
}

void FileCopies::hurry() {
    if (!is_under_way()) return;
    auto& flush = std::get<wire::Flush>(order_under_way()->message);
    if (flush.bytes_per_second == 0) return;
    flush.bytes_per_second = 0;
    say_again();
}

uint64_t FileCopies::limit() const {
    if (at_full_speed_) return 0;
    const Account& account = means_.account;
    return means_.settings.levels.rate(
        static_cast<double>(account.bytes) / static_cast<double>(std::max<size_t>(account.hosts.size(), 1)),
        *means_.settings.levels.files);
}

Copies::Order FileCopies::order(const std::vector<Generation>& generations, uint32_t number) {
    always(!generations.empty(), "a copy of nothing to files");
    const Generation newest = generations.back();
    for (Generation one : generations) means_.store.forget_copied(one.number());
    return order_of({number, generations, means_.settings.ckpt_dir, limit(),
                     means_.account.shares(newest, means_.nodes.hosts()),
                     means_.account.book.medium_of(newest)});
}

std::optional<Copies::Answer> FileCopies::answer_in(const wire::Message& message) const {
    return flushed_in(message);
}

void FileCopies::count(RoundOver& over) {
    means_.account.damage.doubtful = {};
    failed_ = false;
    for (Generation one : over.generations) {
        means_.store.commit_copied(one.number());
        means_.account.book.also_in(one, LevelName::files);
    }
    over.seconds = monotonic_s() - over.began;
    means_.planned.files(over.bytes, over.seconds);
    if (means_.settings.keep > 0) means_.store.retain(means_.settings.keep);
}

// A node that could not do its part may have damaged images.
void FileCopies::failed(const RoundOver& over) {
    means_.account.damage.doubtful = over.unable ? over.newest() : Generation();
    failed_ = true;
    for (Generation one : over.generations)
        if (!means_.account.book.has(one, LevelName::files)) means_.store.forget_copied(one.number());
}

void FileCopies::tell(const RoundOver& over) {
    const std::string name = over.newest().name(), &directory = means_.settings.ckpt_dir;
    if (!over.why_not.empty())
        return say(
            fmt::format("{} could not be copied from its nodes to {}: {}", name, directory, over.why_not));
    spdlog::info("{} is in files: {} in {:.2f} s", name, human_size(over.bytes), over.seconds);
    if (means_.settings.verbose)
        say(fmt::format("{} is in {} now: {} in {:.2f} s", name, directory, human_size(over.bytes),
                        over.seconds));
}

void FileCopies::add_status(nlohmann::json& all) const {
    if (Generation newest = means_.account.book.newest_in(LevelName::files)) all["files"] = newest.name();
    if (is_under_way()) all["copying"] = copying().name();
}

}  // namespace fermata::keeping
