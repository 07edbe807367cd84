// Signal actions and signals that wait for the whole process.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "split/address/window.h"
#include "split/ids/sender.h"
#include "split/ids/table.h"
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

}  // namespace

Json capture_signals(const ids::Table* ids) {
    Json actions = Json::array();
    for (int number = 1; number <= 64; ++number) {
        raw::KernelSigaction action = {};
        if (!settable(number)) continue;
        if (raw::call(SYS_rt_sigaction, number, 0, raw::word(&action), 8) != 0 || !upper_action(action))
            continue;
        actions.push_back({number, action.handler, action.flags, action.restorer, action.mask});
    }
    // Waiting for the process as a whole: taken out with all they carry and put back. The agent blocks
    // everything, so it may dequeue what no thread took.
    Json waiting = Json::array();
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
    for (siginfo_t& info : taken) {
        raw::call(SYS_rt_sigqueueinfo, raw::getpid(), info.si_signo, raw::word(&info));
        // It is of this allocation, and has been heard, or will be: the next one has nothing to do with it.
        if (is_warning(info)) continue;
        change_sender(info, ids, ids::shown_of);
        const auto* bytes = reinterpret_cast<const uint8_t*>(&info);
        waiting.push_back(Json::binary(std::vector<uint8_t>(bytes, bytes + sizeof info)));
    }
    return {{"actions", actions}, {"waiting", waiting}};
}

void restore_signals(const Json& state, const ids::Table* ids) {
    for (const Json& saved : state.at("actions")) {
        raw::KernelSigaction action = {saved.at(1), saved.at(2), saved.at(3), saved.at(4)};
        raw::call(SYS_rt_sigaction, saved.at(0).get<int>(), raw::word(&action), 0, 8);
    }
    for (const Json& saved : state.at("waiting")) {
        const auto& bytes = saved.get_binary();
        siginfo_t info = {};
        std::memcpy(&info, bytes.data(), std::min(bytes.size(), sizeof info));
        change_sender(info, ids, ids::real_of);
        raw::call(SYS_rt_sigqueueinfo, raw::getpid(), info.si_signo, raw::word(&info));
    }
}

}  // namespace fermata::split::process
