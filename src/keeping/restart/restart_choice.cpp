#include "keeping/restart/restart_choice.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"
#include "image/hash.h"
#include "keeping/orders/errand.h"
#include "tree/ranks.h"

namespace fermata::keeping {
namespace {

std::string hex_of(const std::array<uint8_t, 16>& checksum) {
    return image::hex_of(checksum.data(), checksum.size());
}

level::Candidate candidate_of(const store::GenerationInfo& info) {
    level::Candidate one{Generation(info.number), info.manifest->level, {}, info.manifest->nodes};
    for (const store::ImageEntry& entry : info.manifest->images) one.images.push_back(image_in(entry));
    one.broken = info.broken;
    return one;
}

}  // namespace

bool RestartChoice::heard(const wire::Message& message) {
    if (auto* copies = std::get_if<wire::Copies>(&message)) return asking_ && asking_->heard(*copies);
    if (auto* fetched = std::get_if<wire::Fetched>(&message)) return fetching_ && fetching_->heard(*fetched);
    if (auto* rebuilt = std::get_if<wire::Rebuilt>(&message))
        return rebuilding_ && rebuilding_->heard(*rebuilt);
    return false;
}

bool RestartChoice::go_on() {
    if (over_) return true;
    if (!asking_) ask();
    if (rebuilding_) rebuilding_->only(means_.nodes.hosts());
    if (rebuilding_ && rebuilding_->done()) rebuilt();
    asking_->only(means_.nodes.hosts());
    if (rebuilding_ || !asking_->done()) return false;
    if (!choice_) {
        answers_ = asking_->answers();
        compare();
        decide();
    }
    while (fetching_ && fetching_->done()) {
        const std::vector<Fetching::Failed> failed = fetching_->failed();
        fetching_.reset();
        for (const Fetching::Failed& one : failed) {
            level::Move move{one.errand.source(), one.errand.to, {}};
            tree::Ranks::of(one.errand.ranks)->each([&](int32_t rank) {
                move.ranks.push_back(static_cast<uint32_t>(rank));
            });
            choice_->failed(one.errand.generations.back(), move, one.why);
            spdlog::warn("a copy could not be had: {}", one.why);
        }
        if (failed.empty())
            end();
        else
            decide();
    }
    return over_;
}

void RestartChoice::say_again() {
    if (over_ || !asking_) return;
    if (fetching_)
        means_.nodes.tell(fetching_->order());
    else if (rebuilding_)
        means_.nodes.tell(rebuilding_->order());
    else
        means_.nodes.tell(asking_->question());
}

void RestartChoice::ask() {
    // Those that they refer to as well: these may be in files by now, but it is the node that images look on.
    std::set<Generation> numbers, in_place;
    for (const store::GenerationInfo& one : means_.settings.candidates) {
        if (!one.is_up_to_nodes()) continue;
        std::set<Generation> its = {Generation(one.number)};
        for (uint32_t needed : one.manifest->needs) its.insert(Generation(needed));
        numbers.insert(its.begin(), its.end());
        if (one.manifest->level == store::LevelName::local) in_place.insert(its.begin(), its.end());
    }
    asking_.emplace(
        wire::AskCopies{
            means_.numbers.next(), {numbers.begin(), numbers.end()}, {in_place.begin(), in_place.end()}},
        means_.nodes.hosts());
    means_.nodes.tell(asking_->question());
}

void RestartChoice::compare() {
    std::vector<level::Candidate> candidates;
    for (const store::GenerationInfo& one : means_.settings.candidates)
        candidates.push_back(candidate_of(one));
    choice_.emplace(std::move(candidates));
    for (auto& [host, answer] : answers_) {
        for (Medium medium : kMediums)
            for (const wire::Copy& copy : medium == Medium::memory ? answer.copies : answer.local)
                choice_->has({host, medium}, copy.generation, static_cast<uint32_t>(copy.rank),
                             {copy.bytes, hex_of(copy.checksum)});
        for (int32_t rank : answer.ranks) choice_->waits(host, static_cast<uint32_t>(rank));
        if (!answer.damage.empty()) damage_ += fmt::format(" ({}: {})", host, answer.damage);
    }
}

// Again after each round of fetching that has not brought all.
void RestartChoice::decide() {
    always(choice_ && !over_, "a choice that is made twice, or among nothing");
    verdict_ = choice_->verdict();
    lost_ = verdict_.lost.empty() ? "" : verdict_.lost + damage_;
    if (rebuild()) return;
    if (!verdict_.candidate || verdict_.moves.empty()) return end();
    fetch(verdict_);
}

// Asks whether parity gives back a generation that is newer than the verdict's, and lost. Each generation is
// tried once.
bool RestartChoice::rebuild() {
    const size_t end = verdict_.candidate.value_or(means_.settings.candidates.size());
    if (end == 0) return false;
    // Generations that an increment needs may be older than the last candidate, the newest in files.
    const std::vector<store::GenerationInfo> all = means_.store.list();
    for (size_t i = 0; i < end; ++i) {
        const store::GenerationInfo& wanted = means_.settings.candidates[i];
        if (rebuilt_.count(wanted.number)) continue;
        auto order = Rebuilding::order_for(wanted, all, answers_, Rebuilding::places_of(answers_),
                                           means_.numbers.next());
        if (!order) continue;
        rebuilt_.insert(wanted.number);
        rebuilding_.emplace(*order);
        means_.nodes.tell(*order);
        return true;
    }
    return false;
}

// Nodes say again what they have: what was rebuilt is compared as all other images are.
void RestartChoice::rebuilt() {
    always(rebuilding_ && rebuilding_->done(), "the end of rebuilding that is not over");
    if (!rebuilding_->error().empty()) spdlog::warn("rebuilding: {}", rebuilding_->error());
    from_parity_ = rebuilding_->rebuilt();
    rebuilding_.reset();
    choice_.reset();
    damage_.clear();
    ask();
}

void RestartChoice::fetch(const level::Choice::Verdict& verdict) {
    always(
        verdict.candidate && *verdict.candidate < means_.settings.candidates.size() && !verdict.moves.empty(),
        "images that are fetched for no generation");
    const store::GenerationInfo& wanted = means_.settings.candidates[*verdict.candidate];
    std::vector<Generation> generations;
    for (uint32_t needed : wanted.manifest->needs) generations.push_back(Generation(needed));
    std::sort(generations.begin(), generations.end());
    generations.push_back(Generation(wanted.number));
    wire::Fetch order{means_.numbers.next(), true, 0, {}, store::medium_of(wanted.manifest->level)};
    for (const level::Move& move : verdict.moves) {
        const wire::Copies& source = answers_.at(move.from.node);
        order.errands.push_back(
            errand_of(move, *wanted.manifest, generations,
                      move.from.medium == Medium::memory ? source.addresses : source.local_addresses));
    }
    fetching_.emplace(order);
    means_.nodes.tell(order);
}

// The ranks load, or the restart is refused.
void RestartChoice::end() {
    always(!over_ && !fetching_ && !rebuilding_, "a choice that ends while nodes are at work for it");
    over_ = true;
    if (!verdict_.candidate) return;
    chosen_ = &means_.settings.candidates[*verdict_.candidate];
    taken_ = choice_->taken(verdict_);
    if (!taken_.empty() && lost_.empty()) taken_ += damage_;
    if (!from_parity_.empty()) taken_ = from_parity_ + (taken_.empty() ? "" : "; " + taken_);
    const level::Levels& levels = means_.settings.levels;
    twice_ = choice_->twice(verdict_, [&](const std::string& node) {
        return levels.buddy_anywhere ? node : levels.domains.of(node);
    });
    means_.nodes.tell(wire::Chosen{Generation(chosen_->number), chosen_->directory, chosen_->seal.hex(),
                                   chosen_->manifest->on_nodes(), "",
                                   store::medium_of(chosen_->manifest->level)});
}

std::vector<const store::GenerationInfo*> RestartChoice::in_local() const {
    std::vector<const store::GenerationInfo*> found;
    for (size_t i = 0; choice_ && i < means_.settings.candidates.size(); ++i)
        if (means_.settings.candidates[i].manifest->on_nodes() &&
            choice_->is_in_local(choice_->candidates()[i]))
            found.push_back(&means_.settings.candidates[i]);
    return found;
}

std::vector<std::string> RestartChoice::places() const {
    std::vector<std::string> places;
    if (choice_)
        for (auto& [rank, host] : choice_->places()) {
            if (rank >= places.size()) places.resize(rank + 1);
            places[rank] = host;
        }
    return places;
}

}  // namespace fermata::keeping
