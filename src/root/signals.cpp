// Signals that come to `fermata run`. The launcher is in a process group of its own, so that what a shell, a
// terminal, timeout(1) or a batch system sends to ours reaches the root alone: it keeps the work first where
// that is wanted, and hands on what is the launcher's.
#include "base/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "root/root.h"

namespace fermata::root {
namespace {

// timeout(1) signals its child and then the group that both are in.
constexpr int64_t kSameTermMs = 1000;
constexpr int64_t kSameInterruptMs = 150;  // nobody types as fast as that
constexpr double kGrace = 30;

}  // namespace

Fd Root::watch_signals() {
    // SIGTTIN and SIGTTOU are only blocked: in the background a read from the terminal then fails, a line of
    // ours is written.
    sigset_t set = signal_set({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
                               SIGWINCH, SIGTTIN, SIGTTOU});
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) fail_errno("cannot watch for signals");
    return fd;
}

void Root::signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        int signal = static_cast<int>(info.ssi_signo);
        switch (signal) {
            case SIGUSR1:
                requests_.push_back({"signal", false, 0, -1});
                break;
            case SIGTERM:
                asked_to_go();
                break;
            case SIGINT:
                interrupted(info.ssi_code > 0);
                break;
            case SIGHUP:
            case SIGQUIT:
            case SIGUSR2:
                // A terminal's reach all processes of a group, a process's only the one it names.
                hand_on(signal, info.ssi_code > 0);
                break;
            case SIGWINCH:
                hand_on(signal, true);
                break;
            case SIGTSTP:
                suspend();
                break;
            case SIGCONT:
                go_on();
                break;
        }
    }
}

void Root::hand_on(int signal, bool to_all) {
    if (!launcher_ || launcher_end_) return;
    if (signal == SIGINT || signal == SIGHUP || signal == SIGQUIT) {
        signals_seen_.to_end = signal;
        if (launcher_->ends_with_its_ranks()) {
            cancelled_ = true;  // end_launcher() tells the ranks first
            return;
        }
    }
    launcher_->hand_on(signal, to_all);
}

void Root::ask_launcher_to_end() {
    if (!launcher_ || launcher_end_) return;
    signals_seen_.to_end = SIGTERM;
    if (launcher_->ends_with_its_ranks())
        cancelled_ = true;  // end_launcher() tells the ranks first
    else
        launcher_->ask_to_end();
}

// SIGTERM. First: keep the work, then go. Again, or when there is nothing to keep: go.
void Root::asked_to_go() {
    int64_t now = tree::now_ms();
    if (signals_seen_.terms > 0 && now - signals_seen_.last < kSameTermMs) return;
    signals_seen_.last = now;
    // A program that stands still can neither be saved nor end.
    if (signals_seen_.suspended) go_on();
    // The batch system may tell the ranks first, and Fermata much later: that is not a second time.
    if (signals_seen_.terms == 0 && signals_seen_.warned && stopping()) {
        signals_seen_.terms = 1;
        return;
    }
    if (signals_seen_.terms++ > 0 || finalize_released_) {
        ask_launcher_to_end();
    } else if (!running_ && settings_.restored) {
        say(fmt::format("stopped before it went on from {}: `fermata restart` continues it",
                        settings_.restored.name()));
        stopped_ = true;
    } else {
        requests_.push_back({"signal", true, grace(), -1});
    }
}

// Whoever sends SIGTERM sends SIGKILL some time later: to go on trying until then costs nothing that is not
// lost anyway, and to give up before does.
double Root::grace() const {
    if (settings_.limits.grace) return *settings_.limits.grace;
    double grace = kGrace;
    if (auto next = schedule_.forecast().next()) grace = std::max(grace, next->seconds + next->margin);
    if (int64_t end = schedule_.end_of_walltime(); end > 0)
        grace = std::max(grace, static_cast<double>(end - tree::now_ms()) / 1000);
    return grace;
}

// SIGINT. First: keep the work, then go. Again, or when there is nothing to keep: go.
void Root::interrupted(bool at_terminal) {
    const int64_t now = tree::now_ms();
    const bool before = signals_seen_.interrupts > 0 || signals_seen_.terms > 0;
    if (before && now - signals_seen_.last < kSameInterruptMs) return;
    signals_seen_.last = now;
    if (settings_.program_interrupt) return hand_on(SIGINT, at_terminal);
    if (signals_seen_.suspended) go_on();
    if (before || finalize_released_ || (!running_ && !settings_.restored))
        return hand_on(SIGINT, at_terminal);
    ++signals_seen_.interrupts;
    signals_seen_.stop = true;
    if (!running_) {
        say(fmt::format("stopped before it went on from {}: `fermata restart` continues it",
                        settings_.restored.name()));
        stopped_ = true;
        return;
    }
    say(at_terminal ? "a checkpoint, then the end; Ctrl-C once more ends the job as it is"
                    : "SIGINT: a checkpoint, then the end; SIGINT once more ends the job as it is");
    requests_.push_back({at_terminal ? "interrupt" : "signal", true, at_terminal ? 0 : grace(), -1});
}

// A signal of the batch system's that came to ranks, who have held it back from the program
// (front/posix/warden.h), means what it means when it comes to Fermata; but many ranks, and Fermata itself,
// may be told of the same, and none of them is the second time that ends a job at once.
void Root::ranks_warned(int signal) {
    if (over() || finalize_released_) return;
    if (signal == SIGUSR1) {
        int64_t before = std::exchange(signals_seen_.last_usr1, tree::now_ms());
        if (signals_seen_.last_usr1 - before > kSameTermMs) requests_.push_back({"signal", false, 0, -1});
        return;
    }
    if (signals_seen_.terms > 0 || stopping()) return;
    signals_seen_.warned = true;
    say("the batch system has told the ranks to end: they are saved first");
    if (!running_ && settings_.restored)
        stopped_ = true;
    else
        requests_.push_back({"signal", true, grace(), -1});
}

// A checkpoint behind which the job ends is under way, or will be.
bool Root::stopping() const {
    return checkpoint_.stops() || own_state_.stopping() ||
           std::any_of(requests_.begin(), requests_.end(),
                       [](const Request& request) { return request.stop; });
}

// Ctrl-Z: the launcher hears of it, the ranks stop (MPICH's launcher stops alone, and its ranks are sessions
// of their own, which SIGTSTP never stops), then Fermata as any program does. A process group without a
// parent in its session does not stop either: then only the job stands, until SIGCONT.
void Root::suspend() {
    if (!launcher_ || launcher_end_) return;
    hand_on(SIGTSTP, true);
    tree_.broadcast(wire::Stand{true});
    signals_seen_.suspended = true;
    sigset_t set = signal_set({SIGTSTP});
    ::raise(SIGTSTP);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

void Root::go_on() {
    hand_on(SIGCONT, true);
    if (signals_seen_.suspended) tree_.broadcast(wire::Stand{false});
    signals_seen_.suspended = false;
}

}  // namespace fermata::root
