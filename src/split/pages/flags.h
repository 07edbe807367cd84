// Flags of mappings: what /proc/self/smaps calls VmFlags (advice, locked memory, what may be written).
#pragma once

#include <vector>

#include "split/address/maps.h"

namespace fermata::split {

// Reads the flags of all mappings, for the next checkpoint. The kernel walks page tables for that (smaps:
// 0.1 s per GiB of 4 KiB pages on Linux 6.18), so call it while the program still runs; what changes until
// the threads stop is missed. Throws fermata::Error.
void sample_memory_flags();
// Fills in the flags of these, in address order, as sampled; reads them now when nothing was sampled.
void add_memory_flags(std::vector<Mapping>& maps);
// Makes the next add_memory_flags() read them anew.
void forget_memory_flags();

}  // namespace fermata::split
