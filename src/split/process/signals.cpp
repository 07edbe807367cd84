// Signal actions and signals that wait for the whole process.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "split/address/window.h"
#include "split/ids/sender.h"
#include "split/ids/table.h"
#include "split/process/child.h"
#include "split/process/parts.h"
#include "split/process/warden.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

bool settable(int number) { return number != SIGKILL && number != SIGSTOP && number != threads::kStopSignal; }

// Lower handlers are not part of the image: the next lower half has its own.
bool upper_action(const raw::KernelSigaction& action) {
    return action.handler <= 1 || !threads::is_split() || upper_address(action.handler);
}

void change_sender(siginfo_t& info, const ids::Table* ids, int32_t (*change)(const ids::Table&, int32_t)) {
    if (ids != nullptr && info.si_pid > 0 && ids::names_sender(info.si_signo, info))
        info.si_pid = change(*ids, info.si_pid);
}

// Taken out with all they carry. The agent blocks everything, so it may dequeue what no thread took.
std::vector<siginfo_t> take_waiting() {
    raw::SignalSet wanted = raw::kAllSignals & ~raw::signal_bit(threads::kStopSignal);
    std::vector<siginfo_t> taken;
    for (;;) {
        raw::SignalSet pending = 0;
        raw::call(SYS_rt_sigpending, raw::word(&pending), 8);
        if ((pending & wanted) == 0 || taken.size() > 10000) break;
        siginfo_t info = {};
        static const timespec kNow = {0, 0};
        if (raw::call(SYS_rt_sigtimedwait, raw::word(&wanted), raw::word(&info), raw::word(&kNow), 8) <= 0)
            break;
        taken.push_back(info);
    }
    return taken;
}

// For the process as a whole, as it came. The kernel takes a signal by kill() from the main thread only
// (kernel/signal.c compares the thread's id with the process's), from another one by its own pidfd; before
// Linux 6.9 not at all: then it comes as if by sigqueue(), from the same sender. Returns it as it waits now.
siginfo_t queue(siginfo_t info) {
    constexpr unsigned kThread = O_EXCL, kToProcess = 1 << 1;  // PIDFD_THREAD, PIDFD_SIGNAL_THREAD_GROUP
    auto by_number = [&] {
        return raw::call(SYS_rt_sigqueueinfo, raw::getpid(), info.si_signo, raw::word(&info));
    };
    if (by_number() != -EPERM) return info;
    const long self = raw::call(SYS_pidfd_open, raw::gettid(), kThread);
    const long rc =
        self < 0 ? self : raw::call(SYS_pidfd_send_signal, self, info.si_signo, raw::word(&info), kToProcess);
    if (self >= 0) raw::call(SYS_close, self);
    if (rc == 0) return info;
    info.si_code = SI_QUEUE;
    by_number();
    return info;
}

Signals bytes_of(const std::vector<siginfo_t>& all) {
    Signals bytes;
    for (const siginfo_t& info : all) bytes.emplace_back(reinterpret_cast<const char*>(&info), sizeof info);
    return bytes;
}

siginfo_t info_of(std::string_view bytes) {
    siginfo_t info = {};
    std::memcpy(&info, bytes.data(), std::min(bytes.size(), sizeof info));
    return info;
}

// In the state: with the sender that the program knows.
Json shown(siginfo_t info, const ids::Table* ids) {
    change_sender(info, ids, ids::shown_of);
    const auto* from = reinterpret_cast<const uint8_t*>(&info);
    return Json::binary(std::vector<uint8_t>(from, from + sizeof info));
}

std::string bytes_in(const Json& saved) {
    const auto& bytes = saved.get_binary();
    return {bytes.begin(), bytes.end()};
}

// Tells signals of setitimer, alarm and timer_create: a child has the timers themselves.
bool by_timer(const siginfo_t& info) {
    const int number = info.si_signo;
    return info.si_code == SI_TIMER ||
           (info.si_code == SI_KERNEL && (number == SIGALRM || number == SIGVTALRM || number == SIGPROF));
}

}  // namespace

Signals waiting_signals() {
    std::vector<siginfo_t> taken = take_waiting();
    for (siginfo_t& info : taken) info = queue(info);
    return bytes_of(taken);
}

std::string signal_of_end(int child) {
    siginfo_t info = {};
    info.si_signo = SIGCHLD;
    info.si_code = CLD_KILLED;
    info.si_pid = child;
    info.si_uid = ::getuid();
    info.si_status = SIGKILL;
    return bytes_of({info}).front();
}

Signals take_signals_since(Signals before, const ids::Table* ids) {
    std::vector<siginfo_t> fresh;
    for (siginfo_t& info : take_waiting()) {
        const std::string bytes(reinterpret_cast<const char*>(&info), sizeof info);
        if (auto known = std::find(before.begin(), before.end(), bytes); known != before.end())
            before.erase(known);
        else if (!by_timer(info))
            change_sender(info, ids, ids::shown_of), fresh.push_back(info);
    }
    return bytes_of(fresh);
}

void queue_signals(const Signals& all, const ids::Table* ids) {
    for (const std::string& bytes : all) {
        siginfo_t info = info_of(bytes);
        change_sender(info, ids, ids::real_of);
        queue(info);
    }
}

Json capture_signals(const ids::Table* ids, const Signals& wait, const std::vector<threads::OwnSignal>& own) {
    Json actions = Json::array();
    for (int number = 1; number <= 64; ++number) {
        raw::KernelSigaction action = {};
        if (!settable(number)) continue;
        if (raw::call(SYS_rt_sigaction, number, 0, raw::word(&action), 8) != 0 || !upper_action(action))
            continue;
        actions.push_back({number, action.handler, action.flags, action.restorer, action.mask});
    }
    Json waiting = Json::array(), of_threads = Json::array();
    for (const std::string& bytes : wait)
        // The signal is of this allocation, and has been heard, or will be: the next one has nothing to do
        // with it.
        if (const siginfo_t info = info_of(bytes); !is_warning(info)) waiting.push_back(shown(info, ids));
    for (const threads::OwnSignal& one : own) of_threads.push_back({one.tid, shown(one.info, ids)});
    return {{"actions", actions}, {"waiting", waiting}, {"of_threads", of_threads}};
}

void restore_signals(const Json& state, const ids::Table* ids) {
    for (const Json& saved : state.at("actions")) {
        raw::KernelSigaction action = {saved.at(1), saved.at(2), saved.at(3), saved.at(4)};
        raw::call(SYS_rt_sigaction, saved.at(0).get<int>(), raw::word(&action), 0, 8);
    }
    Signals waiting;
    for (const Json& saved : state.at("waiting")) waiting.push_back(bytes_in(saved));
    queue_signals(waiting, ids);
    std::vector<threads::OwnSignal> own;
    for (const Json& saved : state.value("of_threads", Json::array())) {
        own.push_back({saved.at(0), info_of(bytes_in(saved.at(1)))});
        change_sender(own.back().info, ids, ids::real_of);
    }
    threads::give_own_signals(own);
}

}  // namespace fermata::split::process
