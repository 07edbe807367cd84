// Copies of ranks on other nodes: the death of a rank, or of a whole node, is masked where the copies are.
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "root/root.h"

namespace fermata::root {
namespace {

constexpr int64_t kMarginMs = 1000;
constexpr int kMostFailures = 6;  // then once a minute

}  // namespace

// ---- copies are made

// Ranks that lack a copy, where there is another node than theirs, which may have one.
tree::Ranks Root::for_elsewhere() const {
    tree::Ranks ranks;
    members_.lacking().each([&](int32_t rank) {
        if (node_for_copy(rank) >= 0 && !members_.is_refused(rank)) ranks.add(tree::Ranks(rank));
    });
    return ranks;
}

// The one with the fewest processes of ranks behind its own, round about, so that two nodes have each other's
// and the copies of one node's ranks are on several; -1: there is no other.
int Root::node_for_copy(int32_t rank) const {
    const int own = start_.roster().node_of(rank);
    const auto& nodes = tree_.nodes();
    if (own < 0 || nodes.count(own) == 0) return -1;
    int best = -1;
    size_t least = 0;
    auto at = nodes.find(own);
    for (size_t i = 1; i < nodes.size(); ++i) {
        if (++at == nodes.end()) at = nodes.begin();
        tree::Ranks there = members_.copies_on(at->first);
        if (auto more = copies_.coming_to.find(at->first); more != copies_.coming_to.end())
            there.add(more->second);
        const size_t busy = there.count() + start_.roster().ranks_at(at->first).count();
        if (best >= 0 && busy >= least) continue;
        best = at->first;
        least = busy;
    }
    return best;
}

void Root::make_copies_elsewhere(const tree::Ranks& ranks) {
    Request request{"copies", false, 0, -1};
    request.elsewhere = ranks;
    copies_.makes = true;
    copies_.cloned.clear();
    copies_.coming = {};
    copies_.coming_to.clear();
    const Outcome outcome = checkpoint_.take(request, store::LevelName::memory, 0);
    copies_.makes = false;
    copies_.coming = {};
    for (auto& [rank, said] : copies_.cloned)
        if (!members_.copy_of(rank)) copy_is_gone(rank, -1);
    copies_.trouble = outcome.ok ? "" : outcome.line;
    note(journal::Kind::renewal,
         {{"ok", outcome.ok}, {"line", outcome.line}, {"seconds", outcome.seconds}, {"origin", "copies"}});
    if (waits_for_recovery() || over()) return;
    // Ranks whose nodes have no other are next.
    if (!outcome.ok) spdlog::info("copies: {}", outcome.line);
    copies_.failures = outcome.ok ? 0 : std::min(copies_.failures + 1, kMostFailures);
    if (!outcome.ok || !members_.lacking().empty()) make_copies(kLaterMs << copies_.failures);
}

// The ranks go on, and write their streams.
void Root::start_copies(const tree::Ranks& of, Generation images) {
    of.each([&](int32_t rank) {
        auto said = copies_.cloned.find(rank);
        const int node = said == copies_.cloned.end() ? -1 : node_for_copy(rank);
        if (node < 0) return;
        copies_.coming.add(tree::Ranks(rank));
        copies_.coming_to[node].add(tree::Ranks(rank));
        tree_.send(node, wire::StartCopy{++worlds_, rank, said->second.host, said->second.images,
                                         said->second.stream, images, start_.ranks()});
    });
}

// ---- a rank

// Takes it off its node: its output has come before.
void Root::leader_died(int node, const wire::LeaderDied& said) {
    if (over()) return;
    start_.roster().leave(node, tree::Ranks(said.rank));  // Gone, before, may fall into a call of the roll
    tree_.expect(node, static_cast<uint32_t>(start_.roster().at(node)),
                 static_cast<uint32_t>(start_.roster().here()));
    const Members::Copy* copy = copy_elsewhere(said.rank, node);
    if (!copy || finalize_released_) return nobody_plays(node, said.rank, said.pid, said.host, said.status);
    Takeovers::One one;
    one.rank = said.rank;
    one.to = copy->node;
    one.from = said.host;
    one.how = said.how;
    one.at = tree::now_ms();
    takes_over(std::move(one));
    checkpoint_.disturbed(fmt::format("rank {} on {} {}", said.rank, said.host, said.how));
}

// Null: it has none on another node than this one.
const Members::Copy* Root::copy_elsewhere(int32_t rank, int node) const {
    const Members::Copy* copy = members_.copy_of(rank);
    return copy && copy->node != node && tree_.nodes().count(copy->node) ? copy : nullptr;
}

// The launcher ends the job, as with each rank that dies.
void Root::nobody_plays(int node, int32_t rank, int32_t pid, const std::string& host, int32_t status) {
    launcher_->heard(wire::RankEnded{rank, pid, host, status, wire::RankEnd::running, node});
}

// The copy had ended when it was to take the rank's place.
void Root::nobody_takes_over(int node, const tree::Ranks& ranks, const std::string& host) {
    copies_.takeovers.to(node).each([&](int32_t rank) {
        if (!ranks.contains(rank)) return;
        copies_.takeovers.over(rank);
        nobody_plays(node, rank, 0, host, SIGKILL);
    });
}

// The launcher's ranks are where the root says from now on: its next world is of these places.
void Root::takes_over(Takeovers::One one) {
    launcher_->rank_moved(Rank(static_cast<uint32_t>(one.rank)), one.to);
    copies_.takeovers.add(std::move(one));
}

// While no checkpoint is in progress: who speaks for the rank then has a part in none. And once all have
// answered the call of the roll: no message finds its way to one daemon before.
void Root::give_places() {
    if (!copies_.takeovers.any() || over() || !tree_.whole()) return;
    for (const Takeovers::One& one : copies_.takeovers.due(tree::now_ms())) {
        const Written::Bytes written = copies_.written.moved(one.rank);
        tree_.send(one.to, wire::TakePlace{one.rank, written.output, written.error, one.how});
    }
}

// ---- a node

// False: it takes ranks with it that nobody else plays.
bool Root::goes_on_without(int node, const tree::NodeInfo& info) {
    if (settings_.replicas.empty() || !running_ || finalize_released_ || over()) return false;
    tree::Ranks ranks = start_.roster().ranks_at(node);
    ranks.add(copies_.takeovers.to(node));
    const tree::Ranks copies = members_.copies_on(node);
    if (auto coming = copies_.coming_to.find(node); coming != copies_.coming_to.end())
        coming->second.each([this](int32_t rank) { copies_.coming.take_away(tree::Ranks(rank)); });
    if (ranks.empty() && copies.empty()) return true;
    int32_t unmasked = -1;
    ranks.each([&](int32_t rank) {
        if (unmasked < 0 && !copy_elsewhere(rank, node)) unmasked = rank;
    });
    if (unmasked >= 0) {
        say(fmt::format("rank {} on {} has no copy on another node", unmasked, info.host));
        return false;
    }
    copies_.lost_hosts.push_back(info.host);
    const std::string line =
        fmt::format("node {} is lost (its daemon, process {}, is gone)", info.host, info.pid);
    if (!ranks.empty())
        say(fmt::format("{}: rank{} {} go{} on in {} on other nodes", line, ranks.count() == 1 ? "" : "s",
                        ranks.text(100), ranks.count() == 1 ? "es" : "",
                        ranks.count() == 1 ? "its copy" : "their copies"));
    leave_to_copies(ranks, info, line);
    lose_copies(copies, line);
    return true;
}

void Root::leave_to_copies(const tree::Ranks& ranks, const tree::NodeInfo& info, const std::string& line) {
    // A daemon that may live ends its ranks when it knows that it is cut off.
    const int64_t at = tree::now_ms() + (info.silent ? tree_.until_cut_off_ms() + kMarginMs : 0);
    if (info.silent && !ranks.empty())
        say(fmt::format("they do so in {} s, when the ranks there have ended themselves",
                        (at - tree::now_ms() + 999) / 1000));
    ranks.each([&](int32_t rank) {
        Takeovers::One one;
        one.rank = rank;
        one.to = members_.copy_of(rank)->node;
        one.from = info.host;
        one.how = "was lost with its node";
        one.line = line;
        one.at = at;
        takes_over(std::move(one));
    });
}

void Root::lose_copies(const tree::Ranks& copies, const std::string& line) {
    copies.each([&](int32_t rank) {
        const Members::Copy copy = *members_.copy_of(rank);
        members_.ended(rank, copy.pid, line);
        note_copy("ended", rank, copy.host, copy.pid, line);
        copy_is_gone(rank, copy.node);
    });
    if (!copies.empty() && replaces_copies()) make_copies(kLaterMs);
}

// The rank writes its stream for nobody.
void Root::copy_is_gone(int32_t rank, int where) {
    const int node = start_.roster().node_of(rank);
    if (node >= 0 && node != where) tree_.broadcast(wire::CopyGone{rank});
}

}  // namespace fermata::root
