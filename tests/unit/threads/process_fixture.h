// A process whose state is captured, thrown away and restored in a child.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "split/process/state.h"
#include "split/threads/records.h"

using namespace fermata::split::process;

namespace {

// In the child: gtest's own macros would report to nobody.
#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            std::fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            _exit(1);                                                                                      \
        }                                                                                                  \
    } while (0)

class Process : public ::testing::Test {
  protected:
    void SetUp() override {
        fermata::split::threads::set_split(false);
        char name[] = "/tmp/fermata-process-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        directory_ = name;
    }
    void TearDown() override { ASSERT_EQ(system(("rm -rf " + directory_).c_str()), 0); }
    std::string path(const std::string& name) const { return directory_ + "/" + name; }

    // Runs `body` in a child with a time limit; it ends with _exit on a failure.
    template <class F>
    void child(F body) {
        std::fflush(nullptr);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(30);
            // Descriptors of the test driver are not part of the picture.
            close_range(3, ~0u, 0);
            note_inherited();
            body();
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    }

    // capture, close everything, restore.
    static std::vector<std::string> there_and_back(size_t expected_capture_warnings = 0) {
        Captured captured = capture({});
        for (auto& line : captured.warnings)
            if (captured.warnings.size() != expected_capture_warnings)
                std::fprintf(stderr, "%s\n", line.c_str());
        CHECK(captured.warnings.size() == expected_capture_warnings);
        close_range(3, 499, 0);
        sigset_t before;
        sigprocmask(SIG_BLOCK, nullptr, &before);
        Restored restored = restore(captured.state, {});
        sigprocmask(SIG_SETMASK, &before, nullptr);
        if (!restored.error.empty()) std::fprintf(stderr, "%s\n", restored.error.c_str());
        CHECK(restored.error.empty());
        Restored timers = restore_timers(captured.state);
        CHECK(timers.error.empty());
        restored.warnings.insert(restored.warnings.end(), timers.warnings.begin(), timers.warnings.end());
        for (auto& line : restored.warnings) std::fprintf(stderr, "%s\n", line.c_str());
        return restored.warnings;
    }

    std::string directory_;
};

[[maybe_unused]] std::string read_some(int fd, size_t size) {
    std::string text(size, 0);
    ssize_t got = read(fd, text.data(), size);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
}

}  // namespace
