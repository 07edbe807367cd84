// Which ranks have copies is changed while the job runs (`fermata replicas`), and failures are made for tests
// (`--inject`).
#include <algorithm>

#include "base/log.h"
#include "root/control/json.h"
#include "root/plan/replicas.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

namespace {

constexpr double kPatience = 60;  // seconds

}  // namespace

// ---- fermata replicas

void Root::answer_steering(int client, ExitCode code, const std::string& line) {
    control_.say(client, dump({{"done", true},
                               {"ok", code == ExitCode::ok},
                               {"code", static_cast<int>(code)},
                               {"line", line},
                               {"job", settings_.job},
                               {"replicas", copies_json()}}));
    control_.finish(client);
}

// Copies that are not wanted any more end at once, quietly; the next renewal makes those that are.
void Root::steer(int client, const ControlRequest& request) {
    if (!settings_.message_log)
        return answer_steering(
            client, ExitCode::refused,
            "only a job that was begun with --message-log or --replicas has copies of ranks");
    if (request.replicas.empty()) return answer_steering(client, ExitCode::ok, "");
    if (!running_ || finalize_released_ || over())
        return answer_steering(client, ExitCode::refused,
                               running_ ? "the job is just ending" : "not every rank of the job runs yet");
    try {
        const tree::Ranks end =
            members_.want(replicated(request.replicas, start_.ranks(), members_.wanted()));
        if (!end.empty()) tree_.broadcast(wire::EndCopies{end.runs()});
    } catch (const Error& error) {
        return answer_steering(client, error.code(), error.what());
    }
    settings_.replicas = words_of(members_.wanted());
    note(journal::Kind::replica, {{"what", "wanted"},
                                  {"ranks", members_.wanted().text(200)},
                                  {"wanted", members_.wanted().count()},
                                  {"had", members_.had().count()},
                                  {"epoch", members_.epoch()}});
    members_.forget_reasons();
    copies_.trouble.clear();
    copies_.due = 0;
    if (!members_.lacking().empty()) make_copies(0);
    const double patience = request.timeout > 0 ? request.timeout : kPatience;
    copies_.asked.push_back({client, tree::now_ms() + static_cast<int64_t>(patience * 1000), patience});
}

// Names what is wanted and is not there, in a line; `known`: why, of all of it, and nobody is about to change
// it.
std::string Root::what_is_missing(bool& known) const {
    const tree::Ranks lacking = members_.lacking();
    tree::Ranks unwanted = members_.had();
    unwanted.take_away(members_.wanted());
    known = !lacking.empty() && unwanted.empty() && !copies_are_on_their_way();
    std::string why;
    lacking.each([&](int32_t rank) {
        const std::string reason = why_no_copy(rank);
        known = known && !reason.empty();
        if (why.size() < 1000)
            why += fmt::format("{}rank {} has no copy{}{}", why.empty() ? "" : "; ", rank,
                               reason.empty() ? "" : ": ", reason);
    });
    if (why.empty() && !unwanted.empty())
        why = fmt::format("copies have not ended: of rank {}", unwanted.text(100));
    return why;
}

// Each client hears when what is wanted is there, when it cannot be, or when its time is over.
void Root::answer_steering(bool last) {
    if (copies_.asked.empty()) return;
    bool known = false;
    const std::string why = what_is_missing(known);
    const tree::Ranks& wanted = members_.wanted();
    const int64_t now = tree::now_ms();
    for (size_t left = copies_.asked.size(); left > 0; --left) {
        const Steering one = copies_.asked.front();
        copies_.asked.pop_front();
        if (why.empty())
            answer_steering(
                one.client, ExitCode::ok,
                wanted.empty() ? "no rank has a copy"
                               : fmt::format("{} of {} ranks ha{} a copy: {}", wanted.count(), start_.ranks(),
                                             wanted.count() == 1 ? "s" : "ve", wanted.text(100)));
        else if (last)
            answer_steering(one.client, ExitCode::failed, "the job has ended");
        else if (known)
            answer_steering(one.client, ExitCode::refused, why);
        else if (now >= one.until)
            answer_steering(one.client, ExitCode::timeout,
                            fmt::format("not within {:.0f} s: {}", one.patience, why));
        else
            copies_.asked.push_back(one);
    }
}

// ---- --inject

// Those that live, in the order of their ranks, a rank before its copy.
std::vector<Injector::Process> Root::processes() const {
    std::vector<Injector::Process> all;
    for (auto& [node, place] : start_.roster().places()) {
        auto pid = place.pids.begin();
        place.ranks.each([&](int32_t rank) { all.push_back({rank, false, *pid++}); });
    }
    members_.had().each([&](int32_t rank) { all.push_back({rank, true, members_.copy_of(rank)->pid}); });
    std::sort(all.begin(), all.end());
    return all;
}

// Its clock begins when the copies are there that are wanted.
void Root::inject() {
    if (!settings_.injection || !running_ || finalize_released_ || over()) return;
    const int64_t now = tree::now_ms();
    if (!copies_.injector) copies_.injector.emplace(*settings_.injection, settings_.restarts);
    if (!copies_.injector->has_begun()) {
        if (copies_are_on_their_way()) return;
        copies_.injector->begin(now);
    }
    if (auto who = copies_.injector->due(now, processes()))
        tree_.broadcast(wire::Inject{copies_.injector->count() + 1, who->rank, who->pid});
}

void Root::injected(const wire::Injected& said) {
    if (!copies_.injector || said.number != copies_.injector->count() + 1) return;
    copies_.injector->killed(said.pid);
    const double seconds = copies_.injector->seconds(tree::now_ms());
    say(fmt::format("injected failure {}, after {:.1f} s: rank {}{}, process {} on {}, is killed",
                    said.number, seconds, said.rank, said.copy ? "'s copy" : "", said.pid, said.host));
    note(journal::Kind::injected, {{"number", said.number},
                                   {"rank", said.rank},
                                   {"copy", said.copy},
                                   {"pid", said.pid},
                                   {"host", said.host},
                                   {"seconds", seconds}});
}

}  // namespace fermata::root
