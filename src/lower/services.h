// The Bridge of this process and what upper threads ask of the lower half through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lower/mpi_start.h"
#include "split/bridge.h"

namespace fermata::lower {

// Fills the process's one Bridge. `program` is copied.
split::Bridge* make_bridge(const MpiFacts& facts, const std::string& program, uint32_t restarts);
// Where the program's command line lies; the upper half keeps it once it has registered itself.
void note_command_line(const char* begin, const char* end);
split::Bridge* the_bridge();
// What the front registered, or took part in the image; null before.
split::UpperServices* the_upper();
void set_upper(split::UpperServices* upper);

// What upper threads left for the agent to say; the bell was rung for each.
struct FatalRequest {
    std::string line;
    int code = 1;
};
std::optional<std::string> take_warning();
std::optional<FatalRequest> take_fatal();
bool take_finalize_arrival();
void release_finalize();

}  // namespace fermata::lower
