// /proc/self/maps and smaps as values.
#pragma once

#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

struct Mapping {
    Range range;
    int prot = 0;  // PROT_*
    bool shared = false;
    uint64_t offset = 0;
    uint32_t device_major = 0;
    uint32_t device_minor = 0;
    uint64_t inode = 0;
    std::string name;   // path, "[stack]", "" for anonymous memory
    std::string flags;  // VmFlags of smaps, e.g. "rd wr mr mw me dd"; empty when read from maps
};

// In address order. Lower context with malloc; throws fermata::Error when /proc cannot be read.
std::vector<Mapping> read_maps();
// The same in two steps, for who wants the text, too.
std::string maps_text();
std::vector<Mapping> parse_maps(const std::string& text);
// The same with VmFlags; the kernel walks page tables for it, so only at a checkpoint.
std::vector<Mapping> read_smaps();

// One line in the manner of /proc/self/maps.
std::string to_string(const Mapping& mapping);

}  // namespace fermata::split
