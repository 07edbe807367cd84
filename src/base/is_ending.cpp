#include "base/is_ending.h"

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace fermata {
namespace {

constexpr unsigned long kExiting = 4;  // the kernel's PF_EXITING
constexpr int kFlags = 7;              // of /proc/PID/stat, counted from the state, which is behind the name

}  // namespace

bool is_ending(pid_t pid) {
    std::string text;
    try {
        text = read_file(fmt::format("/proc/{}/stat", pid));
    } catch (const Error&) {
        return true;
    }
    size_t at = text.rfind(')');
    for (int field = 0; field < kFlags && at != text.npos; ++field) at = text.find(' ', at + 1);
    if (at == text.npos) return true;
    return (std::strtoul(text.c_str() + at, nullptr, 10) & kExiting) != 0;
}

}  // namespace fermata
