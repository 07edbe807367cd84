// Copies of ranks: processes that their ranks have left in a renewal, and that follow them from then on.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "noded/ranks.h"
#include "tree/channel.h"

namespace fermata::noded {
namespace {

// Reads what the process has written to its descriptor: a file that only it has.
std::string written_by(pid_t pid, int descriptor) {
    try {
        Fd file = open_file(fmt::format("/proc/{}/fd/{}", pid, descriptor), O_RDONLY | O_CLOEXEC);
        return read_rest(file.get(), "what a copy has written", uint64_t{1} << 30);
    } catch (const std::exception& error) {
        spdlog::warn("the output of process {} is lost: {}", pid, error.what());
        return {};
    }
}

void kill(const Child& child) { ::syscall(SYS_pidfd_send_signal, child.process.get(), SIGKILL, nullptr, 0); }

}  // namespace

void Ranks::stands(Rank who) {
    for (auto& rank : ranks_) {
        if (rank->rank != who || has_copy(who) || !copies_wanted_) continue;
        rank->output.copy_is_made();
        rank->error.copy_is_made();
    }
}

bool Ranks::stays(Rank who, pid_t pid) {
    auto is = [&](const Child& child) { return child.pid == pid; };
    auto at = std::find_if(left_.begin(), left_.end(), is);
    if (at == left_.end() || has_copy(who)) return false;
    copies_.emplace(who, std::move(*at));
    left_.erase(at);
    if (copies_end_) end_copies();
    return true;
}

// A rank that has ended by itself has ended its program's work, well or not: its copy would do the same.
bool Ranks::promote(Started& rank, int status) {
    auto at = copies_.find(rank.rank);
    if (at == copies_.end() || !WIFSIGNALED(status) || nobody_hears_) return false;
    const pid_t copy = at->second.pid;
    left(rank.child.pid);
    rank.child = std::move(at->second);
    copies_.erase(at);
    promoted(rank.rank, copy, fmt::format("was killed by signal {}", WTERMSIG(status)));
    return true;
}

void Ranks::copy_wrote(Rank who, pid_t pid, int output, int error) {
    for (auto& rank : ranks_) {
        if (rank->rank != who || rank->child.pid != pid) continue;
        rank->output.copy_goes_on(written_by(pid, output), tree::now_ms());
        rank->error.copy_goes_on(written_by(pid, error), tree::now_ms());
    }
}

void Ranks::watch_copies() {
    for (auto at = copies_.begin(); at != copies_.end();) {
        if (::waitpid(at->second.pid, nullptr, WNOHANG) == 0) {
            ++at;
            continue;
        }
        left(at->second.pid);
        const Rank rank = at->first;
        at = copies_.erase(at);
        copy_ended(rank);
    }
    if (copies_.empty() && !copies_wanted_) copys_worlds_.clear();
}

void Ranks::end_copies() {
    copies_end_ = true;
    for (auto& [rank, copy] : copies_) kill(copy);
}

}  // namespace fermata::noded
