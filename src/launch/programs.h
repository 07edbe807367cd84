// Programs of this machine that Fermata asks something: where they are, and what they say.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::launch {

// The absolute path of the first such program in PATH; empty: there is none.
std::string in_path(const std::string& name);
// Runs it to its end and takes what it writes, the first 64 KiB; who takes longer is ended, with all that it
// has started.
enum class Errors { too, silent };  // is standard error an answer, or nobody's concern?
struct Answer {
    bool well = false;  // exit code 0, in time
    std::string text;
};
Answer ask(const std::string& program, const std::vector<std::string>& arguments, int64_t patience_ms,
           Errors errors);
// Runs a program and gives what it writes on both of its outputs, within ten seconds.
std::string output_of(const std::string& program, const std::vector<std::string>& arguments);

// Starts it without input and output; after so many seconds it is ended. -1: it could not be.
pid_t start_silently(const std::vector<std::string>& words, unsigned seconds);
// Waits for its end: has it ended with exit code 0?
bool ended_well(pid_t pid);

}  // namespace fermata::launch
