// The agent's part of a restart and of a child (hop.h), up to Go; and its words on the rank's message log, by
// which both rebuild.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "lower/agent.h"
#include "lower/services.h"
#include "lower/shared_ranks.h"
#include "lower/stay.h"
#include "split/fds/connections.h"
#include "split/process/child.h"

namespace fermata::lower {

// The root asks once all images are loaded.
void Agent::await_logs() {
    kill_point("child.tells_log");
    progress_.enter(wire::RestartPhase::rebuild);
    say_phase();
    always(parts_ != nullptr, "a message log that is asked for, and nothing was restored");
    if (!parts_->error.empty())
        link_->send(wire::Restored{false, fmt::format("rank {}: {}", rank().number(), parts_->error)});
    else
        the_upper()->log_copy_gone();  // its copy was another process
}

// As the copy of a rank on another node: what the daemon hears of it first.
void Agent::follow_elsewhere() {
    std::string error = parts_->error;
    int stream = -1;
    try {
        if (error.empty()) stream = make_stream_memory();
    } catch (const std::exception& why) {
        error = why.what();
    }
    if (error.empty())
        if (const char* why = the_upper()->log_be_copy_elsewhere(stream)) error = why;
    if (error.empty()) error = rebuild_objects(*parts_, rank());
    if (error.empty()) {
        link_->send(wire::Stays{task_.config.job_id, wire_rank()});
        link_->send(wire::Streams{wire_rank(), stream});
        return;
    }
    link_->send(wire::NoCopy{wire_rank(), "", error});
    ::_exit(static_cast<int>(ExitCode::failed));
}

void Agent::rebuild() {
    if (task_.config.copy_of && !task_.second) return follow_elsewhere();
    kill_point("child.rebuilds");
    progress_.enter(wire::RestartPhase::rebuild);
    say_phase();
    always(parts_ != nullptr, "objects are made again, and nothing was restored");
    std::string error;
    if (!orders_.bytes.empty())
        if (const char* why = the_upper()->log_orders(orders_.bytes.data(), orders_.bytes.size()))
            error = fmt::format("rank {}: {}", rank().number(), why);
    if (error.empty()) error = rebuild_objects(*parts_, rank());
    if (task_.second) split::process::end_with_peer(link_->fd(), false);  // it has an answer to wait for
    kill_point("child.before_restored");
    link_->send(wire::Restored{error.empty(), error});  // which says as well that it is in `go`
    kill_point("child.restored");
}

// The daemon, or the process that a child was to take over from, is gone. That one goes on without it, or was
// killed: then the child is the rank, perhaps, whose copy takes no place of one that has ended by itself.
void Agent::end_before_go() {
    if (task_.second) ::kill(::getpid(), SIGKILL);
    if (task_.config.copy_of) ::_exit(0);
    say(fmt::format("error: rank {}: lost the node daemon before every rank was back: restart again",
                    rank().number()));
    ::_exit(static_cast<int>(ExitCode::failed));
}

void Agent::go() {
    if (task_.second) {
        link_->go_on_with(Fd(task_.second->descriptor));
        ended_epoch_ = task_.second->epoch;
    }
    kill_point("child.goes");
    if (!orders_.bytes.empty()) the_upper()->log_go(orders_.epoch);
    if (task_.second) split::process::queue_signals(task_.second->signals, the_upper()->ids);
    always(parts_ != nullptr, "a program that goes on, and nothing was restored");
    for (const std::string& line : let_program_run(*parts_)) warn(line);
    parts_.reset();
    if (task_.pager) task_.pager->prefetch(1);
    if (std::exchange(task_.second, {})) answer();
}

void Agent::say_frozen() {
    kill_point("stop.stands");
    if (!checkpoint_->anywhere) {
        link_->send(wire::Frozen{checkpoint_->epoch, checkpoint_->sent});
        return;
    }
    say_log({checkpoint_->epoch});
}

// Said once a second at most, and only where somebody would see the difference. Never by the child of a hop
// before Go: what nobody reads on its connection takes along what it is told there.
void Agent::say_log_size() {
    const split::UpperServices* upper = the_upper();
    if (!task_.config.message_log || upper == nullptr || stage_ != Stage::running || is_copy()) return;
    if (upper->interface != the_bridge()->interface) return;  // an earlier front has no such words
    static constexpr uint64_t kEveryNs = 1'000'000'000, kLeast = 1 << 20;
    const auto differs = [](uint64_t now, uint64_t then) {
        const uint64_t by = now > then ? now - then : then - now;
        return by >= std::max(kLeast, then / 8) || (now == 0) != (then == 0);
    };
    const uint64_t held = upper->log_size->held, spilled = upper->log_size->spilled;
    if (!differs(held, log_said_.held) && !differs(spilled, log_said_.spilled)) return;
    const uint64_t now = monotonic_ns();
    if (now - log_said_.when < kEveryNs) return;
    log_said_ = {now, held, spilled};
    link_->send(wire::LogSize{wire_rank(), held, spilled});
}

// A library hides the death of a peer, and closes connections for other reasons, too. As say_log_size, never
// before Go. The answer is for this process alone: another one of the rank has other connections. The end of
// the wait is here, for the program's threads may be inside the library.
void Agent::ask_who_lives() {
    // As failing.cpp of the front has it.
    static constexpr uint64_t kPatienceNs = 120'000'000'000;
    if (!task_.config.message_log || stage_ != Stage::running || is_copy()) return;
    const split::Connections& ends = split::connections();
    const uint32_t lost = __atomic_load_n(&ends.lost, __ATOMIC_ACQUIRE);
    const uint32_t broken = __atomic_load_n(&ends.broken, __ATOMIC_ACQUIRE);
    if (lost == ends.cleared && broken == 0) {
        doubt_.since = 0;
        return;
    }
    const uint64_t now = monotonic_ns();
    if (doubt_.since == 0) doubt_.since = now;
    if (now - doubt_.since > kPatienceNs)
        return end_job(
            fmt::format(
                "rank {}: the MPI library has lost connections to other ranks ({} closed, {} broken by "
                "the network), and neither has a copy taken a rank's place nor was it seen that all "
                "ranks live",
                rank().number(), lost - ends.cleared, broken),
            70);
    if (lost == ends.cleared || lost == doubt_.lost) return;
    doubt_.lost = lost;
    link_->send(wire::AskLiving{wire_rank(), doubt_number()});
}

void Agent::hear_who_lives(const wire::Living& said) {
    if (said.number == doubt_number())
        __atomic_store_n(&split::connections().cleared, doubt_.lost, __ATOMIC_RELEASE);
}

uint64_t Agent::doubt_number() const { return uint64_t(::getpid()) << 32 | doubt_.lost; }

void Agent::say_log(const wire::AskLog& question) {
    wire::LogSaid said{question.epoch, wire_rank(), {}};
    std::string why;
    if (question.uses) {
        try {
            said.bytes = own_uses();
        } catch (const std::exception& error) {
            why = error.what();
        }
    } else {
        said.bytes.resize(the_upper()->log_said(nullptr, 0));
        if (said.bytes.empty()) why = "the program keeps no message log";
        the_upper()->log_said(said.bytes.data(), said.bytes.size());
    }
    if (why.empty())
        link_->send(said);
    else if (checkpoint_)
        link_->send(wire::Refuse{question.epoch, why});
    else
        link_->send(wire::Restored{false, fmt::format("rank {}: {}", rank().number(), why)});
}

}  // namespace fermata::lower
