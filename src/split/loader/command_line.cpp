#include "split/loader/command_line.h"

#include <linux/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "split/address/raw.h"

namespace fermata::split {
namespace {

// proc(5), /proc/PID/stat: fields by their numbers there. Fields before the third may hold anything.
constexpr size_t kStartCode = 26, kEndCode = 27, kStartStack = 28, kStartData = 45, kEndData = 46,
                 kStartBreak = 47, kEnvironment = 50, kEnvironmentEnd = 51, kFields = 53;

std::array<uint64_t, kFields> own_stat() {
    std::array<uint64_t, kFields> fields{};
    std::string text = read_file("/proc/self/stat");
    size_t at = text.rfind(')');
    if (at == std::string::npos) return fields;
    const char* from = text.c_str() + at + 1;
    for (size_t i = 3; i < fields.size() && *from; ++i) {
        while (*from == ' ') ++from;
        if (i > 3) fields[i] = std::strtoull(from, nullptr, 10);  // the third is a letter
        while (*from && *from != ' ') ++from;
    }
    return fields;
}

}  // namespace

void show_command_line(const char* begin, const char* end) noexcept {
    if (begin == nullptr || end == nullptr) return;
    try {
        std::array<uint64_t, kFields> now = own_stat();
        struct prctl_mm_map map {};
        map.start_code = now[kStartCode];
        map.end_code = now[kEndCode];
        map.start_data = now[kStartData];
        map.end_data = now[kEndData];
        map.start_brk = now[kStartBreak];
        map.brk = static_cast<uint64_t>(sys(SYS_brk, 0));
        map.start_stack = now[kStartStack];
        map.arg_start = reinterpret_cast<uint64_t>(begin);
        map.arg_end = reinterpret_cast<uint64_t>(end);
        map.env_start = now[kEnvironment];
        map.env_end = now[kEnvironmentEnd];
        map.exe_fd = ~0u;
        sys(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
    } catch (const std::exception&) {  // no /proc: nobody reads it then
    }
}

}  // namespace fermata::split
