// The end of a Slurm job's time: from the environment, or from squeue (a script stands in for it).
#include "life/slot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fermata::life {
namespace {
namespace fs = std::filesystem;

class SlotTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-slot-XXXXXX";
        directory_ = mkdtemp(name);
        path_ = std::getenv("PATH");
        ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
        ::setenv("SLURM_JOB_ID", "4711", 1);
        ::unsetenv("SLURM_JOB_END_TIME");
    }
    void TearDown() override {
        fs::remove_all(directory_);
        ::setenv("PATH", path_.c_str(), 1);
        ::unsetenv("SLURM_JOB_ID");
        ::unsetenv("SLURM_JOB_END_TIME");
    }
    void squeue(const std::string& does) {
        std::ofstream(directory_ + "/squeue") << "#!/bin/sh\n" << does << "\n";
        ::chmod((directory_ + "/squeue").c_str(), 0755);
    }
    std::string directory_, path_;
};

TEST(Slot, ReadsWhatSqueueWrites) {
    time_t now = ::time(nullptr);
    tm parts{};
    ::localtime_r(&now, &parts);
    char text[32];
    ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    EXPECT_EQ(time_of_squeue(text), now);
    EXPECT_EQ(time_of_squeue(std::string(text) + "\n"), now);
    for (const char* none : {"", "N/A", "UNLIMITED", "INVALID", "2026-11-26", "2026-11-26T10:00:00x"})
        EXPECT_FALSE(time_of_squeue(none)) << none;
}

TEST_F(SlotTest, NoneOutsideOfSlurm) {
    ::unsetenv("SLURM_JOB_ID");
    squeue("date -d '+100 seconds' +%Y-%m-%dT%H:%M:%S");
    EXPECT_FALSE(seconds_left_in_slot(true));
}

TEST_F(SlotTest, AsksTheSchedulerForItsJob) {
    squeue("[ \"$*\" = '--noheader --jobs 4711 --format %e' ] && date -d '+100 seconds' +%Y-%m-%dT%H:%M:%S");
    auto left = seconds_left_in_slot(false);
    ASSERT_TRUE(left);
    EXPECT_NEAR(*left, 100, 3);
}

TEST_F(SlotTest, BelievesTheEnvironmentUntilItAsks) {
    ::setenv("SLURM_JOB_END_TIME", std::to_string(::time(nullptr) + 50).c_str(), 1);
    squeue("date -d '+100 seconds' +%Y-%m-%dT%H:%M:%S");
    EXPECT_NEAR(seconds_left_in_slot(false).value_or(0), 50, 3);
    EXPECT_NEAR(seconds_left_in_slot(true).value_or(0), 100, 3);
}

TEST_F(SlotTest, NoneWhereNobodyKnows) {
    squeue("echo N/A");
    EXPECT_FALSE(seconds_left_in_slot(false));
    squeue("date -d '+100 seconds' +%Y-%m-%dT%H:%M:%S; exit 1");
    EXPECT_FALSE(seconds_left_in_slot(false));
    squeue("date -d '-100 seconds' +%Y-%m-%dT%H:%M:%S");
    EXPECT_FALSE(seconds_left_in_slot(false));
}

TEST_F(SlotTest, DoesNotWaitForASchedulerThatHangs) {
    squeue("sleep 60");
    const time_t start = ::time(nullptr);
    EXPECT_FALSE(seconds_left_in_slot(true));
    EXPECT_LT(::time(nullptr) - start, 20);
}

}  // namespace
}  // namespace fermata::life
