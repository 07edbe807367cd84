// Copies of ranks: processes that their ranks have left in a renewal, and that follow them from then on.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/text.h"
#include "noded/ranks.h"
#include "tree/channel.h"

namespace fermata::noded {
namespace {

constexpr uint64_t kMostOutput = uint64_t{1} << 30;  // bytes of a copy, which are taken into memory at once

// A file that only the process has.
Fd file_of(pid_t pid, int descriptor) {
    return open_file(fmt::format("/proc/{}/fd/{}", pid, descriptor), O_RDONLY | O_CLOEXEC);
}

std::string text_of(pid_t pid, int descriptor) {
    return read_rest(file_of(pid, descriptor).get(), "what a copy has written", kMostOutput);
}

// As a library says why it gives up: its last line. (UCX draws the stack below it, between lines of "=".)
std::string last_words(const Child& copy) {
    char text[4096];
    const off_t size = copy.words ? ::lseek(copy.words.get(), 0, SEEK_END) : 0;
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(sizeof text));
    const ssize_t n = size > 0 ? ::pread(copy.words.get(), text, sizeof text, from) : 0;
    std::string all(text, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (const size_t stack = all.rfind("\n==== backtrace"); stack != std::string::npos) all.resize(stack);
    all.erase(all.find_last_not_of('\n') + 1);
    return visible(all.substr(all.rfind('\n') + 1));
}

int32_t number(Rank rank) { return static_cast<int32_t>(rank.number()); }

std::string how_it_ended(const Child& copy, int status) {
    if (!WIFSIGNALED(status)) return "has ended";
    std::string how = fmt::format("was killed by signal {}", WTERMSIG(status));
    // Nobody inside has sent that one.
    if (WTERMSIG(status) == SIGKILL) return how;
    if (std::string words = last_words(copy); !words.empty()) how += fmt::format(" ({})", words);
    return how;
}

void kill(const Child& child) { ::syscall(SYS_pidfd_send_signal, child.process.get(), SIGKILL, nullptr, 0); }

}  // namespace

void Ranks::stands(Rank who) {
    if (!next_) return;  // it stands for a checkpoint
    for (auto& rank : ranks_) {
        if (rank->rank != who || has_copy(who) || !copies_wanted_.contains(number(who))) continue;
        rank->copy_unmade = true;
        rank->output.copy_is_made();
        rank->error.copy_is_made();
    }
}

void Ranks::gets_no_copy(Rank who) {
    copies_wanted_.take_away(tree::Ranks(number(who)));
    for (auto& rank : ranks_) {
        if (rank->rank != who) continue;
        rank->output.copy_is_gone();
        rank->error.copy_is_gone();
    }
}

// A renewal was given up: nobody writes what its ranks write. A copy that was there before, and has its
// rank's place since, will say what it has written.
void Ranks::forget_unmade_copies() {
    for (auto& rank : ranks_) {
        if (!rank->copy_unmade) continue;
        rank->output.copy_is_gone();
        rank->error.copy_is_gone();
    }
}

bool Ranks::stays(Rank who, pid_t pid) {
    if (auto copy = remote_copies_.find(who); copy != remote_copies_.end())
        return copy->second.child.pid == pid;
    auto is = [&](const Child& child) { return child.pid == pid; };
    auto at = std::find_if(left_.begin(), left_.end(), is);
    if (at == left_.end() || has_copy(who)) return false;
    try {
        at->words = file_of(pid, STDERR_FILENO);
    } catch (const std::exception&) {  // it has ended
    }
    copies_.emplace(who, std::move(*at));
    left_.erase(at);
    if (copies_end_) end_copies();
    return true;
}

// A rank that has ended by itself has ended its program's work, well or not: its copy would do the same.
bool Ranks::promote(Started& rank, int status) {
    auto at = copies_.find(rank.rank);
    if (at == copies_.end() || !WIFSIGNALED(status) || nobody_hears_ || copies_end_) return false;
    if (copies_unwanted_.contains(number(rank.rank))) return false;
    const pid_t copy = at->second.pid;
    kill_point("daemon.promotes");
    left(rank.child.pid);
    rank.child = std::move(at->second);
    rank.known = false;  // its library is of an earlier world
    copies_.erase(at);
    promoted(rank.rank, copy, fmt::format("was killed by signal {}", WTERMSIG(status)));
    return true;
}

void Ranks::copy_wrote(Rank who, pid_t pid, int output, int error) {
    for (auto& rank : ranks_) {
        if (rank->rank != who || rank->child.pid != pid) continue;
        try {
            rank->output.copy_goes_on(text_of(pid, output), tree::now_ms());
            rank->error.copy_goes_on(text_of(pid, error), tree::now_ms());
        } catch (const std::exception& failed) {
            up_(wire::Fatal{fmt::format("error: the output of rank {}'s copy on {} is lost: {}", who.number(),
                                        place_.name, failed.what()),
                            1});
        }
        refuse_parted(*rank);
    }
}

// A copy that has written something else is in another state: nobody could trust what follows.
void Ranks::refuse_parted(Started& rank) {
    if (rank.parted || !(rank.output.parted() || rank.error.parted())) return;
    rank.parted = true;
    up_(wire::Fatal{
        fmt::format("error: rank {} on {} and its copy have written different output: the program "
                    "does not do the same twice (clocks? random numbers?): run it without "
                    "--replicas",
                    rank.rank.number(), place_.name),
        1});
}

void Ranks::watch_copies() {
    for (auto at = copies_.begin(); at != copies_.end();) {
        int status = 0;
        if (::waitpid(at->second.pid, &status, WNOHANG) == 0) {
            ++at;
            continue;
        }
        const pid_t pid = at->second.pid;
        const std::string how = how_it_ended(at->second, status);
        left(pid);
        const Rank rank = at->first;
        at = copies_.erase(at);
        copies_unwanted_.take_away(tree::Ranks(number(rank)));
        for (auto& one : ranks_)
            if (one->rank == rank) {
                one->output.copy_is_gone();
                one->error.copy_is_gone();
            }
        copy_ended(rank, pid, copies_end_ ? "" : how);
    }
    std::erase_if(remote_copies_, [this](auto& copy) {
        int status = 0;
        const pid_t pid = copy.second.child.pid;
        if (::waitpid(pid, &status, WNOHANG) == 0) return false;
        left(pid);
        copy_ended(copy.first, pid, copies_end_ ? "" : how_it_ended(copy.second.child, status));
        return true;
    });
    const bool some =
        std::any_of(ranks_.begin(), ranks_.end(), [](auto& rank) { return !rank->known || rank->moves; });
    if (copies_.empty() && copies_wanted_.empty() && left_.empty() && !some) earlier_worlds_.clear();
}

void Ranks::end_copies(const tree::Ranks& of) {
    for (auto& [rank, copy] : copies_) {
        if (!of.contains(number(rank))) continue;
        copies_unwanted_.add(tree::Ranks(number(rank)));
        kill(copy);
    }
    for (auto& [rank, copy] : remote_copies_)
        if (of.contains(number(rank))) kill(copy.child);
    std::erase_if(arrivals_, [&](auto& one) { return of.contains(number(one.first)); });
}

void Ranks::end_copies() {
    copies_end_ = true;
    for (auto& [rank, copy] : copies_) kill(copy);
    for (auto& [rank, copy] : remote_copies_) kill(copy.child);
}

}  // namespace fermata::noded
