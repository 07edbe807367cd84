#include "root/memory_levels.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "tree/ranks.h"

namespace fermata::root {
namespace {

using store::LevelName;

// But for sizes and generations.
bool is_same_reason(std::string one, std::string other) {
    for (std::string* text : {&one, &other})
        std::erase_if(*text, [](char c) { return c >= '0' && c <= '9'; });
    return one == other;
}

}  // namespace

MemoryLevels::MemoryLevels(const Settings& settings, AutoLevels& planned, store::Store& store,
                           const tree::Tree& tree, Send send)
    : settings_(settings), planned_(planned), store_(store), tree_(tree), send_(std::move(send)) {}

std::set<std::string> MemoryLevels::hosts_with_ranks() const {
    std::set<std::string> hosts;
    for (auto& [id, node] : tree_.nodes())
        if (node.ranks > 0) hosts.insert(node.host);
    return hosts;
}

bool MemoryLevels::heard(const wire::Message& message) {
    if (auto* room = std::get_if<wire::Room>(&message)) {
        if (!room->addresses.empty()) addresses_[room->host] = room->addresses;
        if (room->epoch == epoch_) rooms_[room->host] = *room;
        return true;
    }
    return files_.heard(message) || restart_.heard(message) || buddies_.rounds().heard(message) ||
           local_.rounds().heard(message) || parity_.heard(message) || last_copy_.heard(message) ||
           mending_.heard(message);
}

// ---- a checkpoint

// What people and schedulers ask for is to last, and what ends the job has to.
LevelName MemoryLevels::level_for(const Request& request) const {
    return on() && request.origin == "interval" && !request.stop ? store::level_of(settings_.levels.first())
                                                                 : LevelName::files;
}

void MemoryLevels::ask_for_room(uint32_t epoch, Generation generation, Medium medium) {
    epoch_ = epoch;
    rooms_.clear();
    asked_hosts_ = hosts_with_ranks();
    send_(wire::MakeRoom{epoch, generation, medium});
}

bool MemoryLevels::room_everywhere() const {
    return std::all_of(asked_hosts_.begin(), asked_hosts_.end(),
                       [this](const std::string& host) { return rooms_.count(host) > 0; });
}

std::string MemoryLevels::why_no_room() const {
    for (auto& [host, room] : rooms_)
        if (!room.why.empty()) return fmt::format("{}: {}", host, room.why);
    return {};
}

void MemoryLevels::committed(const store::Manifest& manifest, int64_t now) {
    if (!in_use()) return;
    book_.committed(Generation(manifest.generation), manifest.level, manifest.needs);
    if (manifest.on_nodes()) {
        places_ = manifest.nodes;
        hosts_ = {places_.begin(), places_.end()};
        bytes_ = manifest.bytes();
        if (settings_.levels.buddy || local_.on()) newest_ = manifest;
        damage_ = false;
    } else {
        files_.in_files(now);
    }
    clean_up();
}

void MemoryLevels::clean_up() {
    if (!in_use()) return;
    std::set<uint32_t> in_files;
    for (const store::GenerationInfo& info : store_.list())
        if (info.manifest && !info.manifest->on_nodes()) in_files.insert(info.number);
    book_.only_in_files(in_files);
    // Without this level nothing new comes: what is older than a generation in files has served its time.
    std::vector<Generation> memory, local;
    if (on() || book_.newest_on_nodes() > book_.newest_in(LevelName::files)) {
        std::vector<Generation> copied = buddies_.rounds().under_way();
        if (files_.busy()) copied.push_back(files_.under_way());
        for (Generation one : mending_.in_use()) copied.push_back(one);
        for (Generation one : parity_.under_way()) copied.push_back(one);
        const std::vector<Generation> to_local = local_.rounds().under_way();
        copied.insert(copied.end(), to_local.begin(), to_local.end());
        memory = book_.to_keep(Medium::memory, copied);
        local = book_.to_keep(Medium::local, copied);
        // Nodes have some of them already.
        local.insert(local.end(), to_local.begin(), to_local.end());
    }
    keep(memory, local);
}

// All else on nodes goes.
void MemoryLevels::keep(const std::vector<Generation>& memory, const std::vector<Generation>& local) {
    book_.keep(Medium::memory, memory);
    book_.keep(Medium::local, local);
    std::vector<Generation> any = memory;
    any.insert(any.end(), local.begin(), local.end());
    store_.keep_on_nodes(any);
    send_(wire::KeepCopies{memory, local});
}

// ---- second copies in the memory of other nodes

MemoryLevels::Pairing MemoryLevels::pair_up() {
    const std::set<std::string> hosts = hosts_with_ranks();
    const std::vector<std::string> nodes(hosts.begin(), hosts.end());
    return {buddies_.pair_up(nodes), parity_.group_up(nodes)};
}

// `done`: what to say of a size and seconds, `failed` of a reason; the same reason is said once.
void MemoryLevels::tell(const RoundOver& over, const char* done, const char* failed, std::string& trouble) {
    const std::string name = over.generations.back().name();
    if (over.why_not.empty()) {
        const std::string line =
            name + " " + fmt::format(fmt::runtime(done), human_size(over.bytes), over.seconds);
        spdlog::info("{}", line);
        if (settings_.verbose) say(line);
    } else if (!is_same_reason(over.why_not, trouble)) {
        say(fmt::format("{} {}: {}", name, failed, over.why_not));
    }
    trouble = over.why_not;
    clean_up();
}

void MemoryLevels::turn_of_buddies(int64_t now) {
    if (auto over = buddies_.rounds().over(tree_.hosts())) {
        if (over->why_not.empty()) {
            for (Generation one : over->generations) book_.buddied(one);
            planned_.buddies(over->bytes, over->seconds);
        } else {
            planned_.buddies_failed(over->why_not);
        }
        tell(*over, "is in the memory of buddies, too: {} in {:.2f} s",
             "could not be copied to the memory of buddies", trouble_);
    }
    const Generation newest = book_.newest_in(LevelName::memory);
    if (mending_.under_way() || !buddies_.due(newest, now) || book_.has_buddies(newest) ||
        Generation(newest_.generation) != newest)
        return;
    const std::vector<Generation> generations = book_.to_buddies(newest);
    if (generations.empty()) return;
    buddies_.start(newest_of(generations), now);
}

BuddyCopies::What MemoryLevels::newest_of(std::vector<Generation> generations) const {
    return {std::move(generations), &newest_, &places_, &addresses_};
}

// ---- copies to local directories

void MemoryLevels::turn_of_local(int64_t now) {
    if (auto over = local_.rounds().over(tree_.hosts())) {
        try {
            if (over->why_not.empty())
                for (Generation one : over->generations) store_.sync_manifest(one);
        } catch (const std::exception& error) {
            over->why_not = error.what();
        }
        if (over->why_not.empty())
            for (Generation one : over->generations) book_.localed(one);
        tell(*over, "is in local directories, too: {} in {:.2f} s",
             "could not be copied to local directories", local_trouble_);
    }
    const Generation newest = book_.newest_in(LevelName::memory);
    if (!local_.due(newest, now) || Generation(newest_.generation) != newest) return;
    const std::vector<Generation> generations = book_.to_local(newest);
    if (!generations.empty()) local_.start(newest_of(generations), now);
}

// ---- parity

void MemoryLevels::turn_of_parity(int64_t now) {
    if (auto over = parity_.over(tree_.hosts())) {
        if (over->why_not.empty())
            for (Generation one : over->generations) book_.encoded(one);
        tell(*over, "has parity: {} of it in {:.2f} s", "could not get parity", parity_trouble_);
    }
    const Generation newest = book_.newest_in(LevelName::memory);
    if (mending_.under_way() || !parity_.due(newest, now)) return;
    const std::vector<Generation> generations = book_.to_encode(newest);
    if (!generations.empty()) parity_.start({generations, bytes_, &places_, &addresses_}, now);
}

// ---- damage

void MemoryLevels::mend(Generation only, int client) {
    Mending::What what{client, only, book_.all_in(LevelName::memory), {}, {}, buddies_.all()};
    for (Generation one : what.in_memory) {
        if (book_.has_buddies(one)) what.twice.insert(one);
        if (book_.has_parity(one)) what.with_parity.insert(one);
    }
    mending_.start(std::move(what));
}

void MemoryLevels::turn_of_mending(int64_t now) {
    // What could not be copied to files may be damaged: it is tried again when that is mended.
    const Generation doubtful = files_.take_doubtful();
    if (doubtful > looked_at_ && !mending_.under_way()) {
        looked_at_ = doubtful;
        mend(doubtful, -1);
    }
    // Nodes do one such thing at a time.
    if (!buddies_.rounds().under_way().empty() || !parity_.under_way().empty()) return;
    const std::vector<Generation> damaged = mending_.take_to_encode();
    if (!damaged.empty() && parity_.on()) return parity_.start({damaged, bytes_, &places_, &addresses_}, now);
    if (!mending_.go_on()) return;
    clean_up();
    if (mending_.is_asked_for()) return;
    for (const Mending::Line& line : mending_.mended())
        say(fmt::format("{}: repaired: {}", line.generation.name(), line.text));
    for (const Mending::Line& line : mending_.left())
        say(fmt::format("{}: {}", line.generation.name(), line.text));
    damage_ = !mending_.left().empty() || mending_.mended().empty();
    if (!damage_) files_.due_again();
}

// ---- copies to files

void MemoryLevels::turn(int64_t now) {
    if (say_again_ && tree_.whole()) {
        say_again_ = false;
        restart_.say_again();
        buddies_.rounds().say_again();
        local_.rounds().say_again();
        parity_.say_again();
        files_.say_again();
        last_copy_.say_again();
        mending_.say_again();
    }
    turn_of_files(now);
    if (on()) turn_of_buddies(now);
    if (on()) turn_of_local(now);
    if (on()) turn_of_parity(now);
    turn_of_mending(now);
}

void MemoryLevels::turn_of_files(int64_t now) {
    if (files_.ended(tree_.hosts())) return clean_up();
    const Generation newest = book_.newest_on_nodes();
    if (files_.busy() || !files_.take_due(newest, now)) return;
    files_.start(newest, shares(newest),
                 static_cast<double>(bytes_) / static_cast<double>(std::max<size_t>(hosts_.size(), 1)));
}

// Each node copies the images of its own ranks, and those of a node that is gone whose buddy it is, or which
// it has rebuilt.
std::vector<wire::Share> MemoryLevels::shares(Generation generation) const {
    const std::set<std::string> here = tree_.hosts();
    std::map<std::string, tree::Ranks> ranks;
    const auto whole =
        generation == last_copy_.generation() ? last_copy_.places() : std::vector<std::string>();
    const std::vector<std::string>& places = whole.empty() ? places_ : whole;
    for (size_t rank = 0; rank < places.size(); ++rank) {
        const std::string& place = places[rank];
        ranks[here.count(place) || !buddies_.on() ? place : buddies_.buddy_of(place)].add(
            tree::Ranks(static_cast<int32_t>(rank)));
    }
    std::vector<wire::Share> shares;
    for (auto& [host, its] : ranks) shares.push_back({host, its.runs()});
    return shares;
}

void MemoryLevels::copy_newest_now() {
    const Generation newest = only_on_nodes();
    if (!newest) return;
    // One of an older one is let through first: it is nearly there, or soon over.
    if (files_.busy()) return files_.hurry();
    files_.start_now(newest, shares(newest));
}

// What was made whole again is there, too.
Generation MemoryLevels::newest_there() const {
    const Generation whole =
        last_copy_.under_way() || last_copy_.places().empty() ? Generation() : last_copy_.generation();
    return std::max(whole, newest_of_nodes());
}

// With the nodes that are there: without some, only what has buddies.
Generation MemoryLevels::newest_of_nodes() const {
    const std::set<std::string> here = tree_.hosts();
    bool all = true;
    for (const std::string& host : hosts_) {
        if (here.count(host)) continue;
        all = false;
        if (!here.count(buddies_.buddy_of(host))) return {};
    }
    return all ? book_.newest_on_nodes() : book_.newest_with_buddies();
}

Generation MemoryLevels::only_on_nodes() const {
    const Generation newest = newest_there();
    return newest > book_.newest_in(LevelName::files) ? newest : Generation();
}

Generation MemoryLevels::only_with_parity() const {
    const Generation newest = book_.newest_with_parity();
    return newest > std::max(newest_there(), book_.newest_in(LevelName::files)) ? newest : Generation();
}

bool MemoryLevels::made_whole() const {
    const std::vector<std::string> places = last_copy_.places();
    return !places.empty() && (places != places_ || !last_copy_.rebuilt().empty());
}

std::string MemoryLevels::lost_with_nodes() const {
    const Generation newest = book_.newest_on_nodes(), there = newest_there();
    if (newest <= std::max(there, book_.newest_in(LevelName::files))) return {};
    std::vector<std::string> gone;
    const std::set<std::string> here = tree_.hosts();
    std::set_difference(hosts_.begin(), hosts_.end(), here.begin(), here.end(), std::back_inserter(gone));
    return fmt::format(
        "{}: a part of it was in {}, whose node daemon is gone: `fermata restart` goes on from there if it "
        "still is",
        newest.name(), words_of(book_.medium_of(newest), fmt::format("{}", fmt::join(gone, ", "))));
}

void MemoryLevels::forget() {
    parity_.drop();
    keep({}, {});
}

std::string MemoryLevels::where() const {
    return words_of(book_.medium_of(book_.newest_on_nodes()), fmt::format("{}", fmt::join(hosts_, ", ")));
}

// ---- a restart

void MemoryLevels::restarted() {
    const store::GenerationInfo& chosen = *restart_.chosen();
    book_.committed(Generation(chosen.number), chosen.manifest->level, chosen.manifest->needs);
    for (auto& [host, answer] : restart_.answers())
        if (!answer.copies.empty() || !answer.local.empty()) hosts_.insert(host);
    // They stay until there is a newer one.
    for (const store::GenerationInfo* info : restart_.in_local()) {
        if (info->number > chosen.number) continue;
        for (uint32_t needed : info->manifest->needs) book_.localed(Generation(needed));
        book_.localed(Generation(info->number), info->manifest->needs);
    }
    if (!chosen.manifest->on_nodes()) return;
    for (uint32_t needed : chosen.manifest->needs)
        book_.committed(Generation(needed), chosen.manifest->level, {});
    places_ = restart_.places();
    hosts_ = {places_.begin(), places_.end()};
    bytes_ = chosen.manifest->bytes();
    for (auto& [host, answer] : restart_.answers()) addresses_[host] = answer.addresses;
    newest_ = *chosen.manifest;
    if (!restart_.twice()) return;
    book_.buddied(Generation(chosen.number));
    for (uint32_t needed : chosen.manifest->needs) book_.buddied(Generation(needed));
}

nlohmann::json MemoryLevels::status() const {
    nlohmann::json all = nlohmann::json::object();
    if (!in_use()) return all;
    all["levels"] = settings_.levels.to_text();
    if (Generation newest = book_.newest_on_nodes()) {
        all["bytes"] = bytes_;
        all["nodes"] = hosts_;
    }
    if (Generation newest = book_.newest_in(LevelName::memory)) all["memory"] = newest.name();
    if (Generation newest = book_.newest_in(LevelName::local)) all["local"] = newest.name();
    if (auto copied = local_.rounds().under_way(); !copied.empty()) all["to_local"] = copied.back().name();
    if (!local_trouble_.empty()) all["local_trouble"] = local_trouble_;
    if (settings_.levels.buddy) {
        all["buddies"] = buddies_.all();
        if (Generation newest = book_.newest_with_buddies()) all["buddied"] = newest.name();
        if (auto copied = buddies_.rounds().under_way(); !copied.empty())
            all["to_buddies"] = copied.back().name();
        if (!trouble_.empty()) all["buddies_trouble"] = trouble_;
    }
    if (settings_.levels.parity) {
        if (Generation newest = book_.newest_with_parity()) all["parity"] = newest.name();
        if (auto encoded = parity_.under_way(); !encoded.empty()) all["to_parity"] = encoded.back().name();
        if (!parity_trouble_.empty()) all["parity_trouble"] = parity_trouble_;
    }
    if (planned_.on()) all["auto"] = planned_.status();
    if (Generation newest = book_.newest_in(LevelName::files)) all["files"] = newest.name();
    if (files_.busy()) all["copying"] = files_.under_way().name();
    return all;
}

}  // namespace fermata::root
