// The Bridge of this process and what upper threads ask of the lower half through it; and the_upper(), by
// which the agent asks the front (its functions are in src/front/services/services.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lower/image_parts.h"
#include "lower/mpi_start.h"
#include "split/bridge.h"
#include "split/private_files.h"
#include "split/process/state.h"

namespace fermata::lower {

// Facts about the job that are known when the Bridge is made; the texts are copied.
struct JobFacts {
    std::string protocol;   // of the collective clock; empty = the default
    std::string moved;      // folders that are elsewhere since the checkpoint, "/old=/new:…"
    uint32_t restarts = 0;  // that lie behind this process
    bool message_log = false;
    uint64_t log_bytes = 0;  // of it in memory
    std::string node_dir;    // the job's own on this node
};

// Fills the process's one Bridge, once, but for the program's name.
split::Bridge* make_bridge(const MpiFacts& facts, const JobFacts& job);
// Names the program of a restarted job, which only the image knows. Before the upper half runs.
void name_program(const std::string& path);
// Where the program's command line lies; the upper half keeps it once it has registered itself.
void note_command_line(const char* begin, const char* end);
split::Bridge* the_bridge();
// The services that the front registered, or that came with the image; null before.
split::UpperServices* the_upper();
void set_upper(split::UpperServices* upper);
// Returns where the upper half of this process is found.
Anchors anchors_here();
// Says why this lower half does not go with an upper half that has these, or nothing: it was made for the
// same interface, or for one that is continued (docs/upgrades.md).
std::string why_not_continued(const Anchors& anchors);

// Where the two halves of this process meet, as far as src/split/process has to know.
split::process::Limits process_limits();

// Lines that upper threads left for the agent to say; the bell was rung for each.
struct FatalRequest {
    std::string line;
    int code = 1;
};
std::optional<std::string> take_warning();
std::optional<FatalRequest> take_fatal();
bool take_finalize_arrival();
// A thread of a copy waits for a shadow of a file (written_files.h, private_files.h; a descriptor is the
// answer, -1: there is none), or for the files themselves (0, -1).
struct FileWish {
    enum class Sort { shadow, private_file, take_private_files } sort;
    int real;      // of a shadow: the file, closed by whoever answers; -1: it has no name any more
    int64_t size;  // and its bytes
    split::PrivateWish wish;
};
std::optional<FileWish> wanted_file();
void answer_file(int answer);
// The program leaves without MPI_Finalize, and waits until that is said.
std::optional<int32_t> leaving_with();
void said_that_it_leaves();
void release_finalize();

}  // namespace fermata::lower
