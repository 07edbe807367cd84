// mutex_areas() says where a program's memory may hold mutexes that name their owner
// (split/threads/mutexes.h).
#pragma once

#include <vector>

#include "split/memory/memory.h"
#include "split/threads/mutexes.h"

namespace fermata::lower {

// Small mappings first (libraries' data, the heap); all but the table of ids, which looks like them.
std::vector<split::threads::MutexArea> mutex_areas(const split::MemoryTable& table);

}  // namespace fermata::lower
