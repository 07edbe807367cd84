// Runs shell commands for the tests.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

struct Outcome {
    int code = -1;       // exit code, or 128 + signal
    std::string output;  // stdout and stderr
};

inline Outcome run(const std::string& command) {
    Outcome outcome;
    std::FILE* pipe = popen(("exec 2>&1; timeout 60 " + command).c_str(), "r");
    char buffer[65536];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) outcome.output.append(buffer, n);
    int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

#ifdef MINI_LOWER
inline Outcome run_in_split(const std::string& arguments) {
    return run(std::string(MINI_LOWER) + " run " + arguments);
}
#endif
