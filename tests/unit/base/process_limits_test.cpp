#include "base/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace fermata {
namespace {

std::string core_filter() {
    std::string text;
    std::ifstream("/proc/self/coredump_filter") >> text;
    return text;
}

TEST(ProcessLimits, AreOursOnlyAndGivenBack) {
    rlimit files{}, core{}, now{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    ASSERT_EQ(getrlimit(RLIMIT_CORE, &core), 0);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 200);
    core.rlim_cur = std::min<rlim_t>(core.rlim_max, 4096);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    ASSERT_EQ(setrlimit(RLIMIT_CORE, &core), 0);
    std::ofstream("/proc/self/coredump_filter") << "0x13" << std::flush;
    const std::string filter = core_filter();
    EXPECT_EQ(filter, "00000013");
    take_own_limits();
    take_own_limits();  // the second job of `--max-restarts`
    getrlimit(RLIMIT_NOFILE, &now);
    EXPECT_EQ(now.rlim_cur, std::min<rlim_t>(files.rlim_max, 1 << 20));
    getrlimit(RLIMIT_CORE, &now);
    EXPECT_EQ(now.rlim_cur, 0u);
    EXPECT_EQ(core_filter(), "00000000");
    pid_t child = fork();
    if (child == 0) {
        give_back_limits();
        rlimit f{}, c{};
        getrlimit(RLIMIT_NOFILE, &f);
        getrlimit(RLIMIT_CORE, &c);
        _exit(f.rlim_cur == files.rlim_cur && c.rlim_cur == core.rlim_cur && core_filter() == filter ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace fermata
