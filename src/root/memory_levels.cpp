#include "root/memory_levels.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "image/hash.h"

namespace fermata::root {
namespace {

using store::LevelName;

// A copy to files is to be over when half of the time to the next one has passed; slower than this it need
// not be.
constexpr uint64_t kLeastLimit = 64u << 20;  // bytes a second, of a node

std::string hex_of(const std::array<uint8_t, 16>& checksum) {
    return image::hex_of(checksum.data(), checksum.size());
}

level::Candidate candidate_of(const store::GenerationInfo& info) {
    level::Candidate one{Generation(info.number), info.manifest->level, {}, info.manifest->nodes};
    for (const store::ImageEntry& entry : info.manifest->images)
        one.images.push_back({entry.bytes, entry.checksum.hex()});
    return one;
}

}  // namespace

MemoryLevels::MemoryLevels(const Settings& settings, store::Store& store, const tree::Tree& tree, Send send)
    : settings_(settings), store_(store), tree_(tree), send_(std::move(send)) {
    for (const store::GenerationInfo& one : settings_.candidates)
        chooses_ = chooses_ || one.manifest->in_memory_of_nodes();
}

std::set<std::string> MemoryLevels::hosts_with_ranks() const {
    std::set<std::string> hosts;
    for (auto& [id, node] : tree_.nodes())
        if (node.ranks > 0) hosts.insert(node.host);
    return hosts;
}

bool MemoryLevels::heard(const wire::Message& message) {
    if (auto* room = std::get_if<wire::Room>(&message)) {
        if (room->epoch == epoch_) rooms_[room->host] = *room;
    } else if (auto* copies = std::get_if<wire::Copies>(&message)) {
        answers_[copies->host] = *copies;
    } else if (auto* done = std::get_if<wire::Flushed>(&message)) {
        if (!copying_ || done->number != copying_->number) return true;
        if (copying_->waiting.erase(done->host) == 0) return true;  // said again
        copying_->bytes += done->bytes;
        if (copying_->error.empty() && !done->error.empty())
            copying_->error = fmt::format("{}: {}", done->host, done->error);
    } else {
        return false;
    }
    return true;
}

// ---- a checkpoint

// What people and schedulers ask for is to last, and what ends the job has to.
LevelName MemoryLevels::level_for(const Request& request) const {
    return on() && request.origin == "interval" && !request.stop ? LevelName::memory : LevelName::files;
}

void MemoryLevels::ask_for_room(uint32_t epoch, Generation generation) {
    epoch_ = epoch;
    rooms_.clear();
    asked_hosts_ = hosts_with_ranks();
    send_(wire::MakeRoom{epoch, generation});
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
    if (manifest.level == LevelName::memory) {
        hosts_ = {manifest.nodes.begin(), manifest.nodes.end()};
        bytes_ = manifest.bytes();
    } else {
        in_files_since_ = now;
    }
    clean_up();
}

void MemoryLevels::clean_up() {
    if (!in_use()) return;
    std::set<uint32_t> in_files;
    for (const store::GenerationInfo& info : store_.list())
        if (info.manifest && !info.manifest->in_memory_of_nodes()) in_files.insert(info.number);
    book_.only_in_files(in_files);
    // Without this level nothing new comes: what is older than a generation in files has served its time.
    const Generation copied = copying_ ? copying_->generations.back() : Generation();
    std::vector<Generation> kept;
    if (on() || book_.newest_in(LevelName::memory) > book_.newest_in(LevelName::files))
        kept = book_.to_keep_in_memory(copied);
    book_.keep_in_memory(kept);
    store_.keep_in_memory(kept);
    send_(wire::KeepCopies{kept});
}

// ---- copies to files

void MemoryLevels::turn(int64_t now) {
    if (copying_) {
        // Who is gone answers no more.
        std::set<std::string> here;
        for (auto& [id, node] : tree_.nodes()) here.insert(node.host);
        for (const std::string& host : copying_->waiting)
            if (!here.count(host) && copying_->error.empty())
                copying_->error = fmt::format("the node daemon of {} is gone", host);
        if (copying_->waiting.empty() || !copying_->error.empty()) end_copy();
        return;
    }
    if (in_files_since_ == 0) in_files_since_ = now;
    if (!on() || !settings_.levels.files) return;
    const double period = *settings_.levels.files;
    if (static_cast<double>(now - in_files_since_) < period * 1000) return;
    const Generation newest = book_.newest_in(LevelName::memory);
    if (!newest || book_.has(newest, LevelName::files)) return;
    const auto fair = static_cast<uint64_t>(
        static_cast<double>(bytes_) / static_cast<double>(std::max<size_t>(hosts_.size(), 1)) / (period / 2));
    in_files_since_ = now;  // the next one is due then, whatever becomes of this
    start_copy(newest,
               settings_.levels.copy_limit > 0 ? settings_.levels.copy_limit : std::max(fair, kLeastLimit));
}

void MemoryLevels::start_copy(Generation generation, uint64_t limit) {
    std::vector<Generation> list = book_.to_copy(generation);
    if (list.empty()) return;
    for (Generation one : list) store_.forget_copied(one.number());
    copying_ = Copying{++copies_, list, hosts_, 0, "", monotonic_s(), limit == 0};
    send_(wire::Flush{copies_, list, settings_.ckpt_dir, limit});
}

void MemoryLevels::end_copy() {
    Copying done = std::move(*copying_);
    copying_.reset();
    const Generation generation = done.generations.back();
    copy_failed_ = false;
    try {
        if (!done.error.empty()) fail("{}", done.error);
        for (Generation one : done.generations) {
            store_.commit_copied(one.number());
            book_.flushed(one);
        }
        spdlog::info("{} is in files: {} in {:.2f} s", generation.name(), human_size(done.bytes),
                     monotonic_s() - done.began);
        if (settings_.verbose)
            say(fmt::format("{} is in {} now: {} in {:.2f} s", generation.name(), settings_.ckpt_dir,
                            human_size(done.bytes), monotonic_s() - done.began));
        if (settings_.keep > 0) store_.retain(settings_.keep);
    } catch (const std::exception& error) {
        copy_failed_ = true;
        for (Generation one : done.generations)
            if (!book_.has(one, LevelName::files)) store_.forget_copied(one.number());
        say(fmt::format("{} could not be copied from memory to {}: {}", generation.name(), settings_.ckpt_dir,
                        error.what()));
    }
    clean_up();
}

void MemoryLevels::copy_newest_now() {
    const Generation newest = only_in_memory();
    if (!newest) return;
    if (copying_ && copying_->generations.back() == newest) {
        if (copying_->full_speed) return;
        copying_->full_speed = true;
        return send_(wire::Flush{copying_->number, copying_->generations, settings_.ckpt_dir, 0});
    }
    // One that is under way is let through: it is older, and nearly there or soon over.
    if (copying_) return send_(wire::Flush{copying_->number, copying_->generations, settings_.ckpt_dir, 0});
    start_copy(newest, 0);
}

Generation MemoryLevels::only_in_memory() const {
    const Generation newest = book_.newest_in(LevelName::memory);
    return newest > book_.newest_in(LevelName::files) ? newest : Generation();
}

void MemoryLevels::forget() {
    if (!in_use()) return;
    book_.keep_in_memory({});
    store_.keep_in_memory({});
    send_(wire::KeepCopies{});
}

std::string MemoryLevels::where() const { return fmt::format("the memory of {}", fmt::join(hosts_, ", ")); }

// ---- a restart

void MemoryLevels::ask_for_copies() {
    asked_ = true;
    std::vector<Generation> generations;
    for (const store::GenerationInfo& one : settings_.candidates)
        if (one.manifest->in_memory_of_nodes()) generations.push_back(Generation(one.number));
    send_(wire::AskCopies{generations});
}

bool MemoryLevels::all_answered() const {
    return std::all_of(tree_.nodes().begin(), tree_.nodes().end(), [this](const auto& one) {
        const tree::NodeInfo& node = one.second;
        return answers_.count(node.host) > 0;
    });
}

const store::GenerationInfo* MemoryLevels::choose() {
    std::vector<level::Candidate> candidates;
    for (const store::GenerationInfo& one : settings_.candidates) candidates.push_back(candidate_of(one));
    level::Choice choice(std::move(candidates));
    std::string damage;
    for (auto& [host, answer] : answers_) {
        for (const wire::Copy& copy : answer.copies)
            choice.has(host, copy.generation, static_cast<uint32_t>(copy.rank),
                       {copy.bytes, hex_of(copy.checksum)});
        for (int32_t rank : answer.ranks) choice.waits(host, static_cast<uint32_t>(rank));
        if (!answer.damage.empty()) damage += fmt::format(" ({}: {})", host, answer.damage);
    }
    const level::Choice::Verdict verdict = choice.verdict();
    if (!verdict.lost.empty()) lost_ = verdict.lost + damage;
    if (!verdict.candidate) return nullptr;
    const store::GenerationInfo& chosen = settings_.candidates[*verdict.candidate];
    chooses_ = false;
    const bool memory = chosen.manifest->in_memory_of_nodes();
    book_.committed(Generation(chosen.number), chosen.manifest->level, chosen.manifest->needs);
    for (auto& [host, answer] : answers_)
        if (!answer.copies.empty()) hosts_.insert(host);
    if (memory) {
        hosts_ = {chosen.manifest->nodes.begin(), chosen.manifest->nodes.end()};
        bytes_ = chosen.manifest->bytes();
    }
    send_(wire::Chosen{Generation(chosen.number), chosen.directory, chosen.seal.hex(), memory, ""});
    return &chosen;
}

nlohmann::json MemoryLevels::status() const {
    nlohmann::json all = nlohmann::json::object();
    if (!in_use()) return all;
    all["levels"] = settings_.levels.to_text();
    if (Generation newest = book_.newest_in(LevelName::memory)) {
        all["memory"] = newest.name();
        all["bytes"] = bytes_;
        all["nodes"] = hosts_;
    }
    if (Generation newest = book_.newest_in(LevelName::files)) all["files"] = newest.name();
    if (copying_) all["copying"] = copying_->generations.back().name();
    return all;
}

}  // namespace fermata::root
