#include "noded/cores.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <map>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::noded {
namespace {

constexpr size_t kMost = 8192;  // the kernel's largest configuration; cpu_set_t ends at 1024
using Set = std::array<unsigned char, kMost / 8>;

// Processors of one core have the same text here; where the kernel says nothing each is a core.
std::string core_of(int cpu) {
    std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu);
    try {
        return read_file(path);
    } catch (const Error&) {
        return std::to_string(cpu);
    }
}

}  // namespace

std::vector<std::vector<int>> own_cores() {
    Set mine{};
    std::vector<std::vector<int>> cores;
    if (::syscall(SYS_sched_getaffinity, 0, mine.size(), mine.data()) <= 0) return {{0}};
    std::map<std::string, size_t> seen;
    for (int cpu = 0; cpu < static_cast<int>(kMost); ++cpu) {
        if ((mine[static_cast<size_t>(cpu) / 8] & 1u << cpu % 8) == 0) continue;
        auto [at, fresh] = seen.try_emplace(core_of(cpu), cores.size());
        if (fresh) cores.emplace_back();
        cores[at->second].push_back(cpu);
    }
    return cores;
}

void bind_to(const std::vector<int>& processors) noexcept {
    Set set{};
    for (int cpu : processors)
        set[static_cast<size_t>(cpu) / 8] =
            static_cast<unsigned char>(set[static_cast<size_t>(cpu) / 8] | 1u << cpu % 8);
    ::syscall(SYS_sched_setaffinity, 0, set.size(), set.data());
}

}  // namespace fermata::noded
