#include "keeping/keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/invariant.h"
#include "keeping/levels/kind.h"
#include "keeping/levels/words.h"

namespace fermata::keeping {
namespace {

using store::LevelName;

// The levels that copy what nodes have, in the order of their turns.
std::vector<std::unique_ptr<Copies>> levels_of(Means& means) {
    std::vector<std::unique_ptr<Copies>> levels;
    for (const Kind& kind : kinds())
        if (kind.make) levels.push_back(kind.make(means));
    return levels;
}

}  // namespace

Keeper::Keeper(Settings& settings, store::Store& store, Nodes& nodes)
    : means_(settings, store, nodes), levels_(levels_of(means_)) {
    rounds_.push_back(&files_);
    for (auto& level : levels_) rounds_.push_back(level.get());
    rounds_.insert(rounds_.end(), {&mending_, &restart_, &last_copy_});
}

bool Keeper::heard(const wire::Message& message) {
    if (auto* room = std::get_if<wire::Room>(&message)) {
        if (!room->addresses.empty()) means_.account.addresses[room->host] = room->addresses;
        if (room->epoch == epoch_) rooms_[room->host] = *room;
        return true;
    }
    return std::any_of(rounds_.begin(), rounds_.end(), [&](Round* round) { return round->heard(message); });
}

// ---- a checkpoint

LevelName Keeper::first_level() const {
    return on() ? store::level_of(means_.settings.levels.first()) : LevelName::files;
}

void Keeper::ask_for_room(uint32_t epoch, Generation generation, Medium medium, const tree::Ranks& ranks) {
    always(static_cast<bool>(generation), "room for no generation");
    epoch_ = epoch;
    rooms_.clear();
    asked_hosts_ = means_.nodes.hosts_with_ranks();
    means_.nodes.tell(wire::MakeRoom{epoch, generation, medium, ranks.runs()});
}

bool Keeper::room_everywhere() const {
    return std::all_of(asked_hosts_.begin(), asked_hosts_.end(),
                       [this](const std::string& host) { return rooms_.count(host) > 0; });
}

std::string Keeper::why_no_room() const {
    for (auto& [host, room] : rooms_)
        if (!room.why.empty()) return fmt::format("{}: {}", host, room.why);
    return {};
}

Generation Keeper::base_at(LevelName level) const {
    const bool in_doubt = means_.account.damage.is_left && level != LevelName::files;
    return in_doubt ? Generation() : means_.account.book.base_at(level);
}

void Keeper::committed(const store::Manifest& manifest, int64_t now) {
    if (!in_use()) return;
    Account& account = means_.account;
    account.book.committed(Generation(manifest.generation), manifest.level, manifest.needs);
    if (manifest.on_nodes()) {
        always(manifest.nodes.size() == manifest.images.size(), "images on nodes, and not a node for each");
        account.places = manifest.nodes;
        account.hosts = {account.places.begin(), account.places.end()};
        account.bytes = manifest.bytes();
        if (std::any_of(levels_.begin(), levels_.end(), [](auto& level) { return level->reads_manifest(); }))
            account.newest = manifest;
        account.damage.is_left = false;
    } else {
        files_.in_files(now);
    }
    clean_up();
}

void Keeper::clean_up() {
    if (!in_use()) return;
    level::Book& book = means_.account.book;
    std::set<uint32_t> in_files;
    for (const store::GenerationInfo& info : means_.store.list())
        if (info.manifest && !info.manifest->on_nodes()) in_files.insert(info.number);
    book.only_in(LevelName::files, in_files);
    // Without this level nothing new comes: what is older than a generation in files has served its time.
    std::vector<Generation> memory, local;
    if (on() || book.newest_on_nodes() > book.newest_in(LevelName::files)) {
        std::vector<Generation> in_use;
        for (const Round* round : rounds_)
            for (Generation one : round->in_use()) in_use.push_back(one);
        memory = book.to_keep(Medium::memory, in_use);
        local = book.to_keep(Medium::local, in_use);
        for (const Round* round : rounds_) {
            for (Generation one : round->coming_to(Medium::memory)) memory.push_back(one);
            for (Generation one : round->coming_to(Medium::local)) local.push_back(one);
        }
    }
    keep(memory, local);
}

// Has nodes remove all other generations.
void Keeper::keep(const std::vector<Generation>& memory, const std::vector<Generation>& local) {
    means_.account.book.keep(Medium::memory, memory);
    means_.account.book.keep(Medium::local, local);
    std::vector<Generation> any = memory;
    any.insert(any.end(), local.begin(), local.end());
    means_.store.keep_on_nodes(any);
    means_.nodes.tell(wire::KeepCopies{memory, local});
}

// ---- copies

Keeper::Placed Keeper::place() {
    const std::set<std::string> hosts = means_.nodes.hosts_with_ranks();
    const std::vector<std::string> nodes(hosts.begin(), hosts.end());
    Placed placed;
    for (auto& level : levels_) {
        const std::string why_not = level->place_on(nodes), warning = level->warning();
        if (placed.refusal.empty()) placed.refusal = why_not;
        if (!why_not.empty())
            placed.lines.push_back(fmt::format("no {}: {}", level->name(), why_not));
        else if (!warning.empty())
            placed.lines.push_back(warning);
    }
    return placed;
}

void Keeper::turn(int64_t now) {
    if (say_again_ && means_.nodes.whole()) {
        say_again_ = false;
        for (Round* round : rounds_) round->say_again();
    }
    for (Round* round : rounds_)
        if (turn_of(*round, now)) clean_up();
}

void Keeper::turn_of_files(int64_t now) {
    bool ended = turn_of(files_, now);
    for (auto& level : levels_)
        if (level->goes_to_files() && level->end_what_is_over(means_.nodes.hosts())) ended = true;
    if (ended) clean_up();
}

bool Keeper::is_copying_to_files() const { return moment(0).to_files; }

// Some rounds exclude each other: each is asked with what is under way at its turn.
bool Keeper::turn_of(Round& round, int64_t now) { return round.turn(moment(now)); }

Moment Keeper::moment(int64_t now) const {
    Moment moment{now, means_.nodes.hosts(), mending_.under_way(), false, files_.is_under_way()};
    for (auto& level : levels_) {
        moment.writing = moment.writing || (level->is_under_way() && level->writes_memory());
        moment.to_files = moment.to_files || (level->is_under_way() && level->goes_to_files());
    }
    return moment;
}

void Keeper::copy_newest_now(int64_t now) {
    const Generation newest = only_on_nodes();
    if (!newest) return;
    // One of an older one is let through first: it is nearly there, or soon over.
    if (files_.is_under_way()) return files_.hurry();
    if (!is_copying_to_files()) files_.copy_now(newest, now);
}

void Keeper::forget() {
    for (auto& level : levels_) level->drop();
    keep({}, {});
}

// ---- a restart

void Keeper::restarted() {
    Account& account = means_.account;
    level::Book& book = account.book;
    always(restart_.chosen() && restart_.chosen()->manifest, "a restart from no generation");
    const store::GenerationInfo& chosen = *restart_.chosen();
    book.committed(Generation(chosen.number), chosen.manifest->level, chosen.manifest->needs);
    for (auto& [host, answer] : restart_.answers())
        if (!answer.copies.empty() || !answer.local.empty()) account.hosts.insert(host);
    // They stay until there is a newer one.
    for (const store::GenerationInfo* info : restart_.in_local()) {
        if (info->number > chosen.number) continue;
        for (uint32_t needed : info->manifest->needs) book.left_in(Generation(needed), LevelName::local, {});
        book.left_in(Generation(info->number), LevelName::local, info->manifest->needs);
    }
    if (!chosen.manifest->on_nodes()) return;
    for (uint32_t needed : chosen.manifest->needs)
        book.committed(Generation(needed), chosen.manifest->level, {});
    account.places = restart_.places();
    account.hosts = {account.places.begin(), account.places.end()};
    account.bytes = chosen.manifest->bytes();
    for (auto& [host, answer] : restart_.answers()) account.addresses[host] = answer.addresses;
    account.newest = *chosen.manifest;
    if (!restart_.twice()) return;
    book.also_in(Generation(chosen.number), level::kBuddies);
    for (uint32_t needed : chosen.manifest->needs) book.also_in(Generation(needed), level::kBuddies);
}

nlohmann::json Keeper::status() const {
    nlohmann::json all = nlohmann::json::object();
    if (!in_use()) return all;
    const Account& account = means_.account;
    all["levels"] = text_of(means_.settings.levels);
    if (account.book.newest_on_nodes()) {
        all["bytes"] = account.bytes;
        all["nodes"] = account.hosts;
    }
    if (Generation newest = account.book.newest_in(LevelName::memory)) all["memory"] = newest.name();
    if (means_.planned.on()) all["auto"] = means_.planned.status();
    for (const Round* round : rounds_) round->add_status(all);
    return all;
}

}  // namespace fermata::keeping
