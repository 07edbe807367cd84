#include "front/posix/proc_path.h"

#include <errno.h>
#include <string.h>

#include <charconv>

namespace fermata::front::posix {
namespace {

constexpr size_t kDigits = 10;  // of an int

// A whole component that is a number: behind it, and its value; null: it is none.
const char* number(const char* at, const char* end, int& value) {
    const char* begin = at;
    value = 0;
    for (; at < end && *at >= '0' && *at <= '9' && at - begin < 9; ++at) value = value * 10 + (*at - '0');
    return at == begin || (at < end && *at != '/') ? nullptr : at;
}

bool begins(const char* at, const char* end, const char* with) {
    const size_t n = strlen(with);
    return static_cast<size_t>(end - at) >= n && memcmp(at, with, n) == 0;
}

// The path behind "/proc/", or the text of a link, with each number as `change` makes it.
template <class Change>
char* rewrite(const char* at, const char* end, char* to, Change change) {
    int value;
    if (const char* behind = number(at, end, value)) {
        to = std::to_chars(to, to + kDigits, change(value)).ptr;
        at = behind;
    } else {
        while (at < end && *at != '/') *to++ = *at++;
    }
    if (begins(at, end, "/task/")) {
        if (const char* behind = number(at + 6, end, value)) {
            memcpy(to, "/task/", 6);
            to = std::to_chars(to + 6, to + 6 + kDigits, change(value)).ptr;
            at = behind;
        }
    }
    const auto rest = static_cast<size_t>(end - at);
    memmove(to, at, rest);
    return to + rest;
}

bool is_there(int real) { return sys(SYS_kill, real, 0) != -ESRCH; }

// The program may also have the kernel's number, from what the kernel has written or from a function of libc
// that looks into /proc by itself. Where nobody is shown under it, it is meant, unless there is a thread or
// child with a number of another process, which is shown under this one instead.
int number_in_path(int number) {
    const int real = split::ids::real_of(ids, number);
    const bool shown = split::ids::with_shown(ids, number) != nullptr;
    return shown || real == number || is_there(real) ? real : number;
}

constexpr char kProc[] = "/proc/";
constexpr size_t kProcSize = sizeof kProc - 1;

}  // namespace

void ProcPath::translate() noexcept {
    if (strncmp(path_, kProc, kProcSize) != 0) return;
    const size_t size = strlen(path_);
    if (size + 2 * kDigits >= sizeof room_) return;
    memcpy(room_, kProc, kProcSize);
    *rewrite(path_ + kProcSize, path_ + size, room_ + kProcSize, number_in_path) = 0;
    path_ = room_;
}

size_t show_numbers(const char* text, size_t size, char* shown) noexcept {
    const char* at = text;
    char* to = shown;
    if (begins(at, text + size, kProc)) {
        memcpy(to, kProc, kProcSize);
        at += kProcSize;
        to += kProcSize;
    } else if (size != 0 && *at == '/') {
        memcpy(shown, text, size);
        return size;
    }
    return static_cast<size_t>(rewrite(at, text + size, to, shown_id) - shown);
}

}  // namespace fermata::front::posix
