#include "split/ids/ids.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>

#include "base/invariant.h"
#include "split/noted_files.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::ids {
namespace {

// Kept of processes that ended with earlier lives: the newest.
constexpr size_t kMostGone = 1024;

Pair now(const Table& before, int32_t real, Kind kind, int32_t who) {
    return {shown_of(before, real), real, kind, who};
}

// A number that stands for none. Different ones: a table has each number once.
int32_t unused_real(const Table& table) {
    int32_t real = kNoProcess;
    for (uint32_t i = 0; i < table.count; ++i) real = std::max(real, table.pair[i].real + 1);
    return real;
}

std::vector<Pair> pairs_of(const Table& table, Kind kind) {
    std::vector<Pair> some;
    std::copy_if(table.pair, table.pair + table.count, std::back_inserter(some),
                 [kind](const Pair& pair) { return pair.kind == kind; });
    return some;
}

void put_threads(Table& table, const Table& before) {
    threads::ThreadTable& all = *threads::table();
    for (uint32_t i = 1; i < all.high_water; ++i)
        if (all.record[i].run == Run::stopped || all.record[i].run == Run::running)
            put(table, now(before, all.record[i].tid, Kind::thread, static_cast<int32_t>(i)));
}

// Makes a leader of its group one again, or a signal to the program's group would meet the launcher's.
void lead_again(const Table& table) {
    // (The table still has the numbers of the life before.)
    const std::vector<Pair> self = pairs_of(table, Kind::process);
    const bool led = !self.empty() && table.group.shown == self.front().shown;
    if (led && ::getpgrp() != raw::getpid()) raw::call(SYS_setpgid, 0, 0);
}

void put_ranks(Table& table, const std::vector<RankProcess>& ranks, int32_t self) {
    const RankProcess& mine = ranks[static_cast<size_t>(self)];
    int32_t unused = unused_real(table);
    // The program may have learned their numbers at any time: what they were then comes first.
    for (bool then : {true, false})
        for (size_t i = 0; i < ranks.size(); ++i) {
            const RankProcess& rank = ranks[i];
            const bool was_here = rank.node_then == mine.node_then, is_here = rank.node_now == mine.node_now;
            if (static_cast<int32_t>(i) == self || was_here != then || (!was_here && !is_here)) continue;
            if (put(table, {rank.shown, is_here ? rank.real : unused, Kind::rank, static_cast<int32_t>(i)}) &&
                !is_here)
                ++unused;
        }
}

}  // namespace

bool put(Table& table, const Pair& pair) {
    if (pair.shown <= 0 || pair.real <= 0 || table.count == kMostPairs) return false;
    for (uint32_t i = 0; i < table.count; ++i)
        if (table.pair[i].shown == pair.shown || table.pair[i].real == pair.real) return false;
    table.pair[table.count++] = pair;
    return true;
}

void order(Table& table) {
    always(table.count <= kMostPairs, "the table of ids holds no more pairs than it has room for");
    auto order_by = [&table](uint16_t* by, int32_t Pair::*member) {
        std::iota(by, by + table.count, uint16_t{0});
        std::sort(by, by + table.count,
                  [&](uint16_t a, uint16_t b) { return table.pair[a].*member < table.pair[b].*member; });
    };
    order_by(table.by_shown, &Pair::shown);
    order_by(table.by_real, &Pair::real);
    const bool same = std::all_of(table.pair, table.pair + table.count,
                                  [](const Pair& pair) { return pair.shown == pair.real; });
    auto renamed = [](const Whole& whole) { return whole.shown != whole.real; };
    table.changed = !same || renamed(table.parent) || renamed(table.group) || renamed(table.session);
}

void note(Table& table, const std::string& node, const std::vector<int>& children) {
    // On the heap: it is large, and the agent's stack is not.
    const auto before = std::make_unique<Table>(table);
    table.count = 0;
    put(table, now(*before, raw::getpid(), Kind::process, 0));
    put(table, now(*before, ::getppid(), Kind::parent, 0));
    table.parent = {shown_whole(*before, before->parent, ::getppid()), ::getppid()};
    table.group = {shown_whole(*before, before->group, ::getpgrp()), ::getpgrp()};
    table.session = {shown_whole(*before, before->session, ::getsid(0)), ::getsid(0)};
    put_threads(table, *before);
    for (const Pair& rank : pairs_of(*before, Kind::rank)) put(table, rank);
    for (int child : children) put(table, now(*before, child, Kind::gone, 0));
    const std::vector<Pair> gone = pairs_of(*before, Kind::gone);
    for (size_t i = 0; i < std::min(gone.size(), kMostGone); ++i) put(table, gone[i]);  // newest first
    table.node = noted_hash(node.c_str());
    order(table);
}

RankProcess own_process(const Table& table, const std::string& node) {
    for (const Pair& pair : pairs_of(table, Kind::process))
        return {pair.shown, raw::getpid(), table.node, noted_hash(node.c_str())};
    return {raw::getpid(), raw::getpid(), table.node, noted_hash(node.c_str())};
}

void renew(Table& table, const std::vector<RankProcess>& ranks, int32_t self) {
    const auto before = std::make_unique<Table>(table);
    lead_again(table);
    table.count = 0;
    for (Kind kind : {Kind::process, Kind::parent, Kind::thread, Kind::gone}) {
        for (Pair pair : pairs_of(*before, kind)) {
            const ThreadRecord& record = threads::table()->record[pair.who];
            if (kind == Kind::process) pair.real = raw::getpid();
            if (kind == Kind::parent) pair.real = ::getppid();
            if (kind == Kind::thread)
                pair.real = record.run == Run::stopped ? record.tid : unused_real(table);
            if (kind == Kind::gone) pair.real = unused_real(table);
            put(table, pair);
        }
        if (kind == Kind::thread) put_ranks(table, ranks, self);
    }
    table.parent.real = ::getppid();
    table.group.real = ::getpgrp();
    table.session.real = ::getsid(0);
    order(table);
}

}  // namespace fermata::split::ids
