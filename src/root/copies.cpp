// Ranks that have copies: copies are made, a rank that dies is played by its copy, and the others go on.
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/stream_ring.h"
#include "root/control/json.h"
#include "root/plan/replicas.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

namespace {

constexpr int kTries = 4;

Request renewal(const char* origin, tree::Ranks copies) {
    Request request{origin, false, 0, -1};
    request.renewal.emplace();
    request.copies = std::move(copies);
    return request;
}

double seconds_since(int64_t ms) { return static_cast<double>(tree::now_ms() - ms) / 1000; }

}  // namespace

// ---- copies are made

// False: the words fit no job of so many ranks.
bool Root::plan_copies() {
    if (settings_.replicas.empty()) return true;
    try {
        members_.want(replicated(settings_.replicas, start_.ranks()));
    } catch (const Error& error) {
        fail_job(error.what(), static_cast<int32_t>(error.code()));
        return false;
    }
    make_copies(settings_.restored ? kLaterMs : 0);
    return true;
}

// A rank's process stays behind when it gets another library: a renewal makes all copies that are wanted.
void Root::make_copies(int64_t in_ms) {
    if (!members_.wanted().empty()) copies_.due = tree::now_ms() + in_ms;
}

void Root::copies_are_due() {
    if (copies_.due == 0 || tree::now_ms() < copies_.due || finalize_released_ || over()) return;
    copies_.due = 0;
    if (const tree::Ranks ranks = for_elsewhere(); !ranks.empty()) return make_copies_elsewhere(ranks);
    if (members_.lacking().empty()) return;
    copies_.makes = true;
    const Outcome outcome =
        checkpoint_.take(renewal("copies", members_.lacking()), store::LevelName::files, 0);
    copies_.makes = false;
    copies_.trouble = outcome.ok ? "" : outcome.line;
    if (outcome.ok) members_.renewed();
    note(journal::Kind::renewal,
         {{"ok", outcome.ok}, {"line", outcome.line}, {"seconds", outcome.seconds}, {"origin", "copies"}});
    if (outcome.ok || waits_for_recovery() || over()) return;
    spdlog::info("copies: {}", outcome.line);
    make_copies(kLaterMs);
}

void Root::note_copy(const char* what, int32_t rank, const std::string& host, int32_t pid,
                     const std::string& why) const {
    note(journal::Kind::replica, {{"what", what},
                                  {"rank", rank},
                                  {"host", host},
                                  {"pid", pid},
                                  {"why", why},
                                  {"epoch", members_.epoch()},
                                  {"wanted", members_.wanted().count()},
                                  {"had", members_.had().count()}});
}

// False: no message of copies.
bool Root::heard_of_copies(int node, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Promoted>(&message)) {
        promoted(*m);
    } else if (auto* m = std::get_if<wire::Injected>(&message)) {
        injected(*m);
    } else if (auto* m = std::get_if<wire::CopyMade>(&message)) {
        // Too late: its rank writes its stream for nobody, and it may miss what others know.
        if (node != start_.roster().node_of(m->rank) && !copies_.coming.contains(m->rank))
            return tree_.broadcast(wire::EndCopies{tree::Ranks(m->rank).runs()}), true;
        copies_.coming.take_away(tree::Ranks(m->rank));
        copies_.behind = 0;
        const bool wanted = members_.made(m->rank, {m->pid, m->host, node});
        note_copy("made", m->rank, m->host, m->pid, "");
        if (!wanted) tree_.broadcast(wire::EndCopies{tree::Ranks(m->rank).runs()});
    } else if (auto* m = std::get_if<wire::CopyEnded>(&message)) {
        copy_ended(node, *m);
    } else if (auto* m = std::get_if<wire::LeaderDied>(&message)) {
        leader_died(node, *m);
    } else if (auto* m = std::get_if<wire::Cloned>(&message)) {
        copies_.written.copied(m->rank, {m->output, m->error});
        copies_.cloned[m->rank] = *m;
    } else if (auto* m = std::get_if<wire::LogSize>(&message)) {
        if (copies_.logs.heard(*m))
            note(journal::Kind::log, {{"rank", m->rank}, {"held", m->held}, {"spilled", m->spilled}});
    } else if (auto* m = std::get_if<wire::AskLiving>(&message)) {
        copies_.doubts.asked(m->rank, m->number);
    } else if (auto* m = std::get_if<wire::Living>(&message)) {
        const bool all = m->all && !has_heard_of_a_death();
        for (auto [rank, number] : copies_.doubts.answered(node, m->number, all, tree::now_ms()))
            if (const int where = start_.roster().node_of(rank); where >= 0)
                tree_.send(where, wire::Living{rank, number, true});
    } else if (auto* m = std::get_if<wire::NoCopy>(&message)) {
        const bool waited_for = copies_.coming.contains(m->rank);
        copies_.coming.take_away(tree::Ranks(m->rank));
        // On another node, from where nobody waits for it any more: its image may have gone.
        if (!waited_for && node != start_.roster().node_of(m->rank)) return make_copies(kLaterMs), true;
        // A program that computes for long between its calls hears its stream no faster.
        if (m->why == kStillFollows) return make_copies(kLaterMs << std::min(copies_.behind++, 4)), true;
        if (members_.refused(m->rank, m->why)) {
            say(fmt::format("rank {} on {} gets no copy: {}", m->rank, m->host, m->why));
            note_copy("refused", m->rank, m->host, 0, m->why);
        }
    } else {
        return false;
    }
    return true;
}

// One that was killed is made again; one that has ended itself would do so again.
void Root::copy_ended(int node, const wire::CopyEnded& said) {
    // From the rank's own daemon: the stream has broken. The copy is ended, and then the rank is told.
    if (said.pid == 0) {
        if (members_.copy_of(said.rank) || copies_.coming.contains(said.rank))
            tree_.broadcast(wire::EndCopies{tree::Ranks(said.rank).runs()});
        return;
    }
    copies_.coming.take_away(tree::Ranks(said.rank));
    const bool wanted = members_.wanted().contains(said.rank);
    const std::string why = !wanted ? "not wanted any more" : said.line.empty() ? said.how : said.line;
    if (!members_.ended(said.rank, said.pid, why)) return;
    note_copy("ended", said.rank, said.host, said.pid, why);
    copy_is_gone(said.rank, node);
    if (const Takeovers::One lost = copies_.takeovers.over(said.rank); lost.rank >= 0)
        return nobody_plays(node, said.rank, said.pid, said.host, SIGKILL);
    if (!wanted || over() || finalize_released_) return;
    const bool again = said.line.empty() && said.how.starts_with("was killed") && replaces_copies();
    // Its own line has been said.
    if (said.line.empty())
        say(fmt::format("rank {} on {} has no copy now: process {} {}{}", said.rank, said.host, said.pid,
                        said.how, again ? "; another one is made" : ""));
    if (again) make_copies(kLaterMs);
}

// ---- a rank dies

// The copy has the rank's place already; all ranks need a world in which it is.
void Root::promoted(const wire::Promoted& said) {
    start_.roster().moved(said.rank, said.pid);
    members_.promoted(said.rank);
    if (copies_.injector) copies_.injector->leads(said.rank);
    const Takeovers::One from = copies_.takeovers.over(said.rank);
    std::string line = from.line;
    if (line.empty()) {
        line = from.rank < 0 ? fmt::format("rank {} on {} {}: its copy goes on in its place", said.rank,
                                           said.host, said.how)
                             : fmt::format("rank {} on {} {}: its copy on {} goes on in its place", said.rank,
                                           from.from, from.how, said.host);
        say(line);
    }
    note_copy("leads", said.rank, said.host, said.pid, said.how);
    copies_.deaths.push_back({said.rank, from.rank < 0 ? said.host : from.from, line, tree::now_ms()});
    if (checkpoint_.in_progress()) checkpoint_.disturbed(line);
    copies_.waits = true;
    copies_.tries = 0;
}

// All ranks get another world then, and nobody asks about the old one.
bool Root::has_heard_of_a_death() const {
    return waits_for_recovery() || !copies_.deaths.empty() || losses_.any();
}

// True from a rank's death until all begin to go on with its copy, between two tries as well.
bool Root::waits_for_recovery() const { return copies_.waits || copies_.takeovers.any(); }

void Root::see_who_lives() {
    if (over() || has_heard_of_a_death() || !tree_.whole()) return;
    std::set<int> nodes;
    for (auto& [id, node] : tree_.nodes()) nodes.insert(id);
    if (auto round = copies_.doubts.begin(std::move(nodes), tree::now_ms()))
        tree_.broadcast(wire::AskLiving{-1, *round});
}

// Before all other requests. One that fails is tried again: another rank may have died in it.
void Root::recover() {
    give_places();
    see_who_lives();
    if (copies_.takeovers.any()) return;
    if (!copies_.waits) copies_are_due();
    if (!copies_.waits || over() || finalize_released_) return;
    copies_.waits = false;
    const Request request = renewal("recovery", {});
    const size_t deaths = copies_.deaths.size();
    note(journal::Kind::request, {{"origin", request.origin}, {"stop", false}});
    const Outcome outcome = checkpoint_.take(request, store::LevelName::files, 0);
    answer_renewal(request, outcome);
    if (outcome.ok) return all_went_on(outcome, deaths);
    if (waits_for_recovery() || over() || losses_.any()) return;  // the next one sees to it
    copies_.waits = ++copies_.tries < kTries;
    if (!copies_.waits) fail_job(fmt::format("a rank's copy could not take its place: {}", outcome.line));
}

// One that came after the ranks were told to go on has a renewal of its own.
void Root::all_went_on(const Outcome& outcome, size_t deaths) {
    for (; deaths > 0; --deaths) {
        const Death death = copies_.deaths.front();
        copies_.deaths.pop_front();
        const double seconds = seconds_since(death.at);
        // Until this renewal began, with all that were given up.
        json phases = {{"wait", std::max(0.0, seconds - outcome.seconds)}};
        for (auto& [name, took] : outcome.phases) phases[name] = took;
        note(journal::Kind::masked, {{"rank", death.rank},
                                     {"host", death.host},
                                     {"line", death.line},
                                     {"seconds", seconds},
                                     {"phases", phases},
                                     {"epoch", members_.epoch()}});
        ++copies_.masked;
        copies_.seconds += seconds;
    }
    if (replaces_copies()) make_copies(kLaterMs);
}

// ---- what there is

// Why this rank, which shall have a copy, has none.
std::string Root::why_no_copy(int32_t rank) const {
    if (const std::string why = members_.why_none(rank); !why.empty()) return why;
    return copies_.trouble;
}

bool Root::copies_are_on_their_way() const {
    return copies_.makes || copies_.due > 0 || waits_for_recovery();
}

json Root::copies_json() const {
    if (!settings_.message_log) return {};
    json ranks = json::array();
    auto list = [&](int32_t rank) {
        if (ranks.size() >= kMostListed) return;
        json one = {{"rank", rank}};
        if (const Members::Copy* copy = members_.copy_of(rank)) {
            one.update({{"copy", "follows"}, {"pid", copy->pid}, {"host", copy->host}});
        } else {
            one["why"] = why_no_copy(rank);
            one["copy"] = copies_are_on_their_way() ? "being made" : "none";
        }
        ranks.push_back(std::move(one));
    };
    members_.wanted().each(list);
    return {{"wanted", members_.wanted().count()},
            {"wanted_ranks", members_.wanted().text(200)},
            {"had", members_.had().count()},
            {"epoch", members_.epoch()},
            {"masked", copies_.masked},
            {"masked_seconds", copies_.seconds},
            {"unmasked_yet", copies_.deaths.size()},
            {"log", copies_.logs.to_json()},
            {"ranks", ranks}};
}

}  // namespace fermata::root
