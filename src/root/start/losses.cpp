#include "root/start/losses.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fermata::root {

// The first loss is the cause of others, but for one: whoever has left by itself kills nobody.
void Losses::note(Kind kind, const std::string& why, int rank, const std::string& host, int pid,
                  int64_t now) {
    if (kind_ != Kind::none && kind_ != Kind::left) return;
    if (kind_ == Kind::left && kind == Kind::left) return;
    kind_ = kind;
    at_ = now;
    blame(why, rank, host, pid);
}

void Losses::blame(const std::string& why, int rank, const std::string& host, int pid) {
    why_ = why;
    rank_ = rank;
    host_ = host;
    pid_ = pid;
}

void Losses::rank_gone(const Rank& rank, int64_t now) {
    const std::string who = fmt::format("rank {} (pid {} on {})", rank.rank, rank.pid, rank.host);
    const bool first = kind_ == Kind::none || kind_ == Kind::left;
    ranks_ended_ = ranks_ended_ || rank.code != 0;
    left_ = left_ || rank.code == 0;
    if (rank.code == 0)
        note(Kind::left, who + " has ended without MPI_Finalize", rank.rank, rank.host, rank.pid, now);
    else if (rank.code > 0)
        note(Kind::dead, fmt::format("{} has ended with {}", who, rank.code), rank.rank, rank.host, rank.pid,
             now);
    else
        note(Kind::dead, who + " is gone", rank.rank, rank.host, rank.pid, now);
    if (first) code_ = rank.code;
}

void Losses::daemon_gone(const std::string& host, int pid, int64_t since, int64_t now) {
    lost_hosts_.push_back(host);
    const std::string why = fmt::format("the node daemon of {} (pid {}) is gone", host, pid);
    // The launcher may have ended other nodes' ranks before anybody heard of it. What is done about a dead
    // rank, and when, stays as it is.
    if (kind_ == Kind::dead && !launcher_ends_ && since < at_) return blame(why, -1, host, pid);
    note(Kind::daemon, why, -1, host, pid, now);
}

void Losses::launcher_ended(const std::string& here, int64_t now) {
    const bool elsewhere = std::any_of(lost_hosts_.begin(), lost_hosts_.end(),
                                       [&](const std::string& host) { return host != here; });
    ranks_ended_ = ranks_ended_ || (elsewhere && now - at_ < kLauncherOfNodeMs);
}

// A node that a scheduler takes away loses its ranks first.
std::vector<std::string> Losses::suspects() const {
    std::vector<std::string> hosts = lost_hosts_;
    if (!host_.empty() && std::find(hosts.begin(), hosts.end(), host_) == hosts.end()) hosts.push_back(host_);
    return hosts;
}

void Losses::launcher_ends(const std::string& line, int64_t now) {
    note(Kind::dead, line, -1, "", 0, now);
    launcher_ends_ = true;
    at_ = now;
}

Losses::Verdict Losses::verdict(const Facts& facts, int64_t now) {
    if (ended_) return Verdict::nothing;
    auto end_after = [&](int64_t patience) {
        if (now - at_ < patience) return Verdict::nothing;
        ended_ = true;
        return Verdict::end;
    };
    switch (kind_) {
        case Kind::none:
            break;
        case Kind::dead:
            return end_after(facts.launcher_ends_job || launcher_ends_ ? kLauncherMs : kNewsMs);
        case Kind::daemon:
            // Its ranks may be dead by now or later, and nobody would hear of it.
            if (!facts.launcher_ends_job) return end_after(0);
            if (facts.can_go_on) return end_after(kLauncherOfNodeMs);
            [[fallthrough]];
        case Kind::left:
            if (said_ || now - at_ < kLauncherOfNodeMs) break;
            said_ = true;
            return Verdict::say;
    }
    return Verdict::nothing;
}

std::string Losses::what_it_means(const Facts& facts, Verdict verdict) const {
    if (verdict == Verdict::say)
        return fmt::format("{}: the job goes on, but no checkpoint can be taken of it any more", why_);
    if (kind_ == Kind::daemon && facts.launcher_ends_job)
        return fmt::format("{}: the job could not be saved any more", why_);
    if (!facts.launcher_ends_job && !launcher_ends_) return why_;
    return fmt::format("{}, and the launcher has not ended the job in {} s", why_, kLauncherMs / 1000);
}

}  // namespace fermata::root
