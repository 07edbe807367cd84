// Process and thread ids as the program knows them, and the kernel's numbers for the same things in this
// life.
//
// A restarted process has another pid, its threads other tids, its parent and group other numbers; the
// program goes on with those it had. A table of pairs (shown, real) lies in upper memory, so it is part of
// the image; the lower half renews the real numbers at a restart. Both directions are total: numbers without
// a pair stand for themselves, unless another number took theirs; then the chain of pairs is followed to its
// end. So both functions are permutations of the numbers, each the inverse of the other: no two processes are
// ever shown under one number, whatever numbers the kernel gives out later.
#pragma once

#include <cstdint>

namespace fermata::split::ids {

// No kernel gives out a number from here on (PID_MAX_LIMIT, 64 bits): for processes that are gone.
inline constexpr int32_t kNoProcess = 1 << 22;
inline constexpr uint32_t kMostPairs = 8192;

enum class Kind : int32_t {
    process,  // this process; its main thread has the same number
    parent,   //
    thread,   // `who`: index of its record
    rank,     // another rank of this job; `who`: its number
    gone,     // of an earlier life, without anything that corresponds to it in this one
};

struct Pair {
    int32_t shown, real;
    Kind kind;
    int32_t who;
};

// The program's parent, process group or session: what it is called is not the number of a process in every
// life. 0 is a name, too: the kernel's for one outside the pid namespace.
struct Whole {
    static constexpr int32_t kLeft = -1;
    int32_t shown, real;  // real kLeft: the program has left it, its numbers are those of processes
};

// In pages of its own: the search for held mutexes, which know their owners by number, leaves them out.
struct alignas(4096) Table {
    volatile uint32_t changed;  // 1: some number is shown as another one
    uint32_t count;
    Whole parent, group, session;
    uint64_t node;  // hash of the name of the node on which `note` was called last
    Pair pair[kMostPairs];
    uint16_t by_shown[kMostPairs], by_real[kMostPairs];  // indexes of pairs, in order
};

// The pair with this number; null: there is none. `by`: indexes in the order of that member.
inline const Pair* find_pair(const Table& table, const uint16_t* by, int32_t Pair::*member,
                             int32_t number) noexcept {
    uint32_t low = 0, high = table.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const Pair& pair = table.pair[by[middle]];
        if (pair.*member == number) return &pair;
        (pair.*member < number ? low : high) = pair.*member < number ? middle + 1 : middle;
    }
    return nullptr;
}
inline const Pair* with_real(const Table& table, int32_t real) noexcept {
    return find_pair(table, table.by_real, &Pair::real, real);
}
inline const Pair* with_shown(const Table& table, int32_t shown) noexcept {
    return find_pair(table, table.by_shown, &Pair::shown, shown);
}

// The number under which the program knows the kernel's number `real`, and back. Positive numbers only. No
// TLS, no libc.
inline int32_t shown_of(const Table& table, int32_t real) noexcept {
    if (const Pair* pair = with_real(table, real)) return pair->shown;
    while (const Pair* pair = with_shown(table, real)) real = pair->real;
    return real;
}
inline int32_t real_of(const Table& table, int32_t shown) noexcept {
    if (const Pair* pair = with_shown(table, shown)) return pair->real;
    while (const Pair* pair = with_real(table, shown)) shown = pair->shown;
    return shown;
}

// The same for parents, process groups and sessions. The program may have made groups of its own, which are
// called after processes.
inline int32_t shown_whole(const Table& table, const Whole& whole, int32_t real) noexcept {
    if (real == whole.real) return whole.shown;
    return real > 0 ? shown_of(table, real) : real;
}
inline int32_t real_whole(const Table& table, const Whole& whole, int32_t shown) noexcept {
    return whole.real != Whole::kLeft && shown == whole.shown ? whole.real : real_of(table, shown);
}

}  // namespace fermata::split::ids
