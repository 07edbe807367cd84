#include "split/threads/not_stopped.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "split/address/maps.h"
#include "split/threads/interrupted.h"
#include "split/threads/masked.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

std::string read_whole(const std::string& path) {
    std::string text;
    long fd = raw::call(SYS_openat, AT_FDCWD, raw::word(path.c_str()), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char piece[4096];
    for (long size; (size = raw::call(SYS_read, fd, raw::word(piece), sizeof piece)) > 0;)
        text.append(piece, static_cast<size_t>(size));
    raw::call(SYS_close, fd);
    return text;
}

// "libfoo.so+0x1234", by the file that is mapped there; else the address.
std::string place_of_code(uint64_t address) {
    for (const Mapping& one : parse_maps(read_whole("/proc/self/maps")))
        if (one.range.contains(address) && !one.name.empty())
            return fmt::format("{}+{:#x}", one.name.substr(one.name.rfind('/') + 1),
                               address - one.range.begin() + one.offset);
    return fmt::format("{:#x}", address);
}

// "system call 202 at libc.so.6+0x8a, stack 0x7f…": where it stands in the kernel, or that it runs.
std::string place_in_kernel(int tid) {
    const std::string text = task_file(tid, "syscall");
    unsigned long long word[8] = {};
    long number = 0;
    int found = std::sscanf(text.c_str(), "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &word[0],
                            &word[1], &word[2], &word[3], &word[4], &word[5], &word[6], &word[7]);
    if (found == 9)
        return fmt::format(", in system call {} at {}, stack {:#x}", number, place_of_code(word[7]), word[6]);
    if (found == 3) return fmt::format(", at {}, stack {:#x}", place_of_code(word[1]), word[0]);
    return ", running";
}

std::string word_of(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::string outside_mpi(int tid, int index) {
    const std::string status = task_file(tid, "status");
    std::string text = fmt::format("thread {} ({}) ", tid, word_of(task_file(tid, "comm")));
    const int error = not_opened(index);
    if ((status_mask(status, "SigBlk:") & raw::signal_bit(kStopSignal)) == 0 && error == 0)
        text += fmt::format("does not take signal {}", kStopSignal);
    else if (error == 0)
        text += fmt::format("blocks signal {}", kStopSignal);
    else
        text +=
            fmt::format("blocks signal {}, and tracing it failed ({}{})", kStopSignal, std::strerror(-error),
                        error == -EPERM ? ": a debugger has it, or kernel.yama.ptrace_scope forbids" : "");
    size_t state = status.find("State:\t");
    if (state != std::string::npos) text += fmt::format(", state {}", status[state + 7]);
    std::string wchan = word_of(task_file(tid, "wchan"));
    text += place_in_kernel(tid);
    if (wchan.size() > 1) text += ", kernel " + wchan;
    return text;
}

}  // namespace

std::string task_file(int tid, const char* name) {
    return read_whole(fmt::format("/proc/self/task/{}/{}", tid, name));
}

uint64_t status_mask(const std::string& status, const char* key) {
    size_t at = status.find(key);
    return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + std::strlen(key), nullptr, 16);
}

NotStopped why_not_stopped(int tid, ThreadRecord* record) {
    NotStopped missing;
    missing.tid = tid;
    if (record == nullptr) {
        missing.where = fmt::format("thread {} has no record: the limit is {}", tid, kMaxThreads - 1);
        return missing;
    }
    missing.index = record->index;
    if (record->in_mpi != 0 && record->waiting_in != nullptr) {
        missing.where = fmt::format("thread {} in {}", tid, const_cast<const char*>(record->waiting_in));
        int peer = record->waiting_for;
        if (peer >= 0) missing.where += fmt::format(", waiting for rank {}", peer);
        if (peer == -2) missing.where += ", waiting for any rank";
    } else {
        missing.where = outside_mpi(tid, record->index);
    }
    return missing;
}

}  // namespace fermata::split::threads
