// Moments at which a test ends this process, by their names (tests/suites/kill_points.py). They are there in
// builds with -DFERMATA_KILL_POINTS=ON alone, and nothing elsewhere.
#pragma once

#ifdef FERMATA_KILL_POINTS
#include <fcntl.h>
#include <signal.h>

#include "base/sys.h"
#endif

namespace fermata {

#ifdef FERMATA_KILL_POINTS

// The order is a file of the build, FERMATA_KILL_POINTS: "NAME KIND PID PASSES NUMBER kill|say\n", a KIND of
// -1 and a PID of 0 for any. The process that passes so often renames it to FILE.hit, once, and ends, or goes
// on. By system calls alone: both halves of a rank and its daemon come here.
namespace kill_points {

class Words {
  public:
    explicit Words(const char* text) noexcept : at_(text) {}
    bool is(const char* word) noexcept {
        while (*word != 0 && *at_ == *word) ++at_, ++word;
        return *word == 0 && (*at_ == ' ' || *at_ == '\n');
    }
    long number() noexcept {
        while (*at_ == ' ') ++at_;
        const long sign = *at_ == '-' ? -1 : 1;
        if (*at_ == '-') ++at_;
        long all = 0;
        while (*at_ >= '0' && *at_ <= '9') all = all * 10 + (*at_++ - '0');
        return sign * all;
    }
    bool says_kill() noexcept {
        while (*at_ == ' ') ++at_;
        return *at_ == 'k';
    }

  private:
    const char* at_;
};

inline long passes, ordered;  // of the order that was read last, by its number

// Adds the process to the file.
inline void say_who() noexcept {
    const long file = sys(SYS_open, FERMATA_KILL_POINTS ".hit", O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    char text[24];
    char* at = text + sizeof text;
    *--at = '\n';
    for (long left = sys(SYS_getpid); left > 0; left /= 10) *--at = static_cast<char>('0' + left % 10);
    sys(SYS_write, file, at, text + sizeof text - at);
    sys(SYS_close, file);
}

[[gnu::noinline]] inline void pass(const char* name, long kind) noexcept {
    const long file = sys(SYS_open, FERMATA_KILL_POINTS, O_RDONLY | O_CLOEXEC, 0);
    if (failed(file)) return;
    char text[128] = {};
    const long size = sys(SYS_read, file, text, sizeof text - 1);
    sys(SYS_close, file);
    if (size <= 0) return;
    Words words(text);
    if (!words.is(name)) return;
    const long wanted = words.number(), pid = words.number(), often = words.number(), number = words.number();
    if ((wanted != -1 && wanted != kind) || (pid != 0 && pid != sys(SYS_getpid))) return;
    if (ordered != number) passes = 0;
    ordered = number;
    if (++passes < often || failed(sys(SYS_rename, FERMATA_KILL_POINTS, FERMATA_KILL_POINTS ".hit"))) return;
    say_who();
    if (words.says_kill()) sys(SYS_kill, sys(SYS_getpid), SIGKILL);
}

}  // namespace kill_points

inline void kill_point(const char* name, long kind = -1) noexcept { kill_points::pass(name, kind); }

#else

constexpr void kill_point(const char*, long = -1) noexcept {}

#endif

}  // namespace fermata
