// The lower half's part of the table of ids (table.h): noted at a checkpoint, renewed at a restart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "split/ids/table.h"

namespace fermata::split::ids {

// One rank's word to the others at a restart: which process it is.
struct RankProcess {
    int32_t shown, real;
    uint64_t node_then, node_now;  // noted_hash() of the names of nodes, at the checkpoint and now
};

// Empties the table but for pairs that are still of use, and adds what this process is now, its threads and
// `children` (their numbers) included: what it is called from now on is what it is called today. At a
// checkpoint, while all threads stand.
void note(Table& table, const std::string& node, const std::vector<int>& children);

RankProcess own_process(const Table& table, const std::string& node);

// Gives all pairs the numbers of this life: process, parent, threads (split/threads/records.h has them all by
// then) and the other ranks: those that were on this rank's node then, and those that are now. `ranks`: by
// number, of all ranks of the job; `self`: this one. At a restart, before anything of the program runs.
void renew(Table& table, const std::vector<RankProcess>& ranks, int32_t self);

// Puts a pair in, unless one of its numbers is taken or the table is full; order() has to follow. `order`
// sorts what was put in and says whether anything has changed.
bool put(Table& table, const Pair& pair);
void order(Table& table);

}  // namespace fermata::split::ids
