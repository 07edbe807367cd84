// Error and ExitCode are the errors that reach a user and the exit codes of the command. An Error is one line
// that says what happened, where, and what to do.
#pragma once

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace fermata {

// Exit codes of the `fermata` command (docs/usage.md).
enum class ExitCode : int {
    ok = 0,
    failed = 1,            // the operation failed; the line on stderr says why
    usage = 2,             // the command line is wrong
    refused = 3,           // the job refused the checkpoint and goes on
    timeout = 4,           // not committed in the time given; the job goes on
    no_job = 5,            // no such job, or more than one to choose from
    damaged = 6,           // a generation is incomplete or damaged
    ended = 7,             // the job has ended with 0: nothing is left to be continued
    to_be_continued = 85,  // the job was checkpointed and stopped on request
};

class Error : public std::runtime_error {
  public:
    explicit Error(std::string line, ExitCode code = ExitCode::failed)
        : std::runtime_error(std::move(line)), code_(code) {}
    ExitCode code() const { return code_; }

  private:
    ExitCode code_;
};

// The bodies of the two below, compiled once.
[[noreturn]] void fail_with(fmt::string_view format, fmt::format_args args);
[[noreturn]] void fail_errno_with(fmt::string_view format, fmt::format_args args);

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    fail_with(format, fmt::make_format_args(args...));
}

// Appends what errno says: "cannot open x: No such file or directory".
template <typename... Args>
[[noreturn]] void fail_errno(fmt::format_string<Args...> format, Args&&... args) {
    fail_errno_with(format, fmt::make_format_args(args...));
}

// One line for any exception. Exceptions of the standard library would name calls of that library.
std::string line_of(const std::exception& error);

}  // namespace fermata
