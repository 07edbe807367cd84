// The file of a shared window is opened by its name: only the one that was made is taken.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "fermata_types.h"
#include "front/objects/segment_file.h"

namespace {

using namespace fermata::front;
using namespace fermata::mpi;

constexpr int64_t kLength = 8192;

class SegmentFileTest : public testing::Test {
  protected:
    void SetUp() override {
        file_.number = 0x7e57000000000000u + static_cast<uint64_t>(getpid());
        char name[64];
        std::snprintf(name, sizeof name, "/dev/shm/fermata-window-%016lx", file_.number);
        name_ = name;
        ASSERT_EQ(segment_file_make(&file_, kLength, &made_), FM_SUCCESS);
    }
    void TearDown() override {
        unlink(name_.c_str());
        munmap(made_, kLength);
    }
    int map() {
        char* start = nullptr;
        int rc = segment_file_map(file_, kLength, &start);
        if (rc == FM_SUCCESS) {
            std::strcpy(made_, "seen");
            EXPECT_STREQ(start, "seen");
            munmap(start, kLength);
        }
        return rc;
    }
    // Another file of the same size under its name.
    void exchange() {
        unlink(name_.c_str());
        int fd = open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        ASSERT_EQ(ftruncate(fd, kLength), 0);
        close(fd);
    }
    SegmentFile file_;
    std::string name_;
    char* made_ = nullptr;
};

TEST_F(SegmentFileTest, TheOneThatWasMadeIsShared) {
    EXPECT_EQ(map(), FM_SUCCESS);
    char* start = nullptr;
    SegmentFile again = file_;
    EXPECT_EQ(segment_file_make(&again, kLength, &start), FM_ERR_RMA_SHARED);  // the name is taken
    segment_file_unname(file_);
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
}

TEST_F(SegmentFileTest, AnotherFileUnderItsNameIsRefused) {
    exchange();
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
    unlink(name_.c_str());
    ASSERT_EQ(mkfifo(name_.c_str(), 0600), 0);
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
}

TEST_F(SegmentFileTest, ALinkToItIsNotFollowed) {
    std::string away = name_ + "-away";
    ASSERT_EQ(rename(name_.c_str(), away.c_str()), 0);
    ASSERT_EQ(symlink(away.c_str(), name_.c_str()), 0);
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
    unlink(away.c_str());
}

TEST_F(SegmentFileTest, WhatOthersMayOpenIsRefused) {
    ASSERT_EQ(chmod(name_.c_str(), 0666), 0);
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
    ASSERT_EQ(chmod(name_.c_str(), 0600), 0);
    EXPECT_EQ(map(), FM_SUCCESS);
    if (geteuid() != 0) return;  // only root can give it away
    ASSERT_EQ(chown(name_.c_str(), 12345, 12345), 0);
    EXPECT_EQ(map(), FM_ERR_RMA_SHARED);
}

}  // namespace
