// The address partition: made once per process, after MPI_Init and before the upper half exists.
//
// Order in the lower half's main:
//     ensure_layout(argv)    first statement of main (may re-exec; remembers what the application inherited)
//     prepare_lower()        alloc/lower_alloc.h
//     begin_descriptors()    fds/descriptors.h
//     MPI_Init_thread …
//     end_descriptors()
//     partition()
//     load_program()/enter_program(), or load_memory() and T's resume
// and at every checkpoint check().
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "split/address/maps.h"
#include "split/address/window.h"

namespace fermata::split {

enum class Owner : uint32_t { upper, lower, kernel, filler };
const char* name_of(Owner owner);

// One annotated range. `why` is a literal.
struct Region {
    Range range;
    Owner owner = Owner::lower;
    const char* why = "";
    std::string what;    // name of the file, or "[heap]", …
    double seconds = 0;  // since partition(); negative: before it
};

class RegionTable {
  public:
    // Regions in address order, those known when asked: fixed ones from partition() plus what lies in the
    // lower area and in the upper half's ranges now, read from /proc/self/maps.
    std::vector<Region> regions() const;
    const std::vector<Region>& fixed() const { return fixed_; }
    void add(Region region) { fixed_.push_back(std::move(region)); }
    void clear() { fixed_.clear(); }

  private:
    std::vector<Region> fixed_;  // fillers and everything mapped when partition() ran
};

// The process's table (lower memory).
RegionTable& region_table();

// Makes sure that the kernel searches top-down from above the window. When the stack limit is unlimited, or
// the legacy layout is asked for by personality, sets a finite stack limit and executes this program again
// (once); the application's own limits come back as application_stack_limit(). Also remembers which signals
// were ignored at the start. Throws fermata::Error when the layout cannot be had.
void ensure_layout(char* const argv[]);

// Notes of ensure_layout(), for a second lower half of this process, which has no use for the rest of it.
struct LayoutNotes {
    uint64_t stack_limit = 0;
    uint64_t ignored = 0;  // bit per signal
};
LayoutNotes layout_notes();
void resume_layout(const LayoutNotes& notes);

// RLIMIT_STACK (soft) as the launcher set it; RLIM_INFINITY when unlimited.
uint64_t application_stack_limit();
// Was signal `number` ignored when the process started?
bool ignored_at_start(int number);

// Fills every gap above the window and the gap behind the heap; afterwards unhinted mmaps of anybody land in
// the window, and the lower half's own go to the lower area. Throws fermata::Error (RLIMIT_AS, something in
// the window). Call once; `upper_is_there`: the program's memory is in the window already.
void partition(bool upper_is_there = false);
bool partitioned();

// Opens a gap of this size in the fillers above the window, for a mapping at a chosen address; close_gaps()
// closes what is left of it. Throws fermata::Error.
Range open_gap(uint64_t size);
void close_gaps();

// Compares the table with /proc/self/maps, and closes gaps above the window that the lower half's unmapping
// left. Returns "" or one line: which mapping is where it must not be. Lower context, upper threads stopped.
std::string check();
std::string check(const std::vector<Mapping>& maps);  // which were read just now

// `fermata inspect --regions` and FERMATA_DUMP_REGIONS=FILE (written by partition(), check() and
// enter_program()).
std::string dump_regions();
void dump_regions(std::FILE* file);

}  // namespace fermata::split
