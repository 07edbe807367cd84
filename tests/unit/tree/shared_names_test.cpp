// Of the files in /dev/shm that dead ranks have noted, those that nobody uses go, and no others.
#include "tree/shared_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fs = std::filesystem;

namespace fermata::tree {
namespace {

class SharedNamesTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-shared-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory_ = name;
    }
    void TearDown() override {
        fs::remove_all(directory_);
        for (const std::string& path : made_) fs::remove(path);
    }
    std::string name(const std::string& what) const {
        return "fermata-shared-names-" + std::to_string(::getpid()) + "-" + what;
    }
    std::string path(const std::string& what) const { return "/dev/shm/" + name(what); }
    void make(const std::string& what) {
        Fd fd(::open(path(what).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        ASSERT_TRUE(fd);
        ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
        made_.push_back(path(what));
    }
    // As the rank's lower half does.
    void note(pid_t rank, const std::string& what) {
        struct stat file {};
        ASSERT_EQ(::stat(path(what).c_str(), &file), 0);
        std::ofstream(directory_ + "/" + name_of_shared_names(rank), std::ios::app)
            << file.st_dev << " " << file.st_ino << " " << name(what) << "\n";
    }
    bool there(const std::string& what) const { return fs::exists(path(what)); }
    std::string directory_;
    std::vector<std::string> made_;
};

TEST_F(SharedNamesTest, WhatTheDeadHaveLeftGoes) {
    for (const char* what : {"one", "two", "theirs", "noted"}) make(what);
    note(1, "one");
    note(1, "noted");
    note(2, "noted");  // by a rank that lives
    note(3, "two");
    SharedNames names(files::Folder::at(directory_));
    names.gone(1);
    names.remove_unused();
    EXPECT_FALSE(there("one"));
    EXPECT_TRUE(there("noted"));
    EXPECT_TRUE(there("two"));
    names.all_gone();
    names.remove_unused();
    EXPECT_FALSE(there("two"));
    EXPECT_FALSE(there("noted"));
    EXPECT_TRUE(there("theirs"));
    EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(SharedNamesTest, WhatSomebodyUsesStays) {
    make("mapped");
    make("open");
    note(1, "mapped");
    note(1, "open");
    Fd fd(::open(path("mapped").c_str(), O_RDWR | O_CLOEXEC));
    void* map = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(map, MAP_FAILED);
    fd = Fd(::open(path("open").c_str(), O_RDWR | O_CLOEXEC));
    SharedNames names(files::Folder::at(directory_));
    names.gone(1);
    names.remove_unused();
    EXPECT_TRUE(there("mapped"));
    EXPECT_TRUE(there("open"));
    ::munmap(map, 4096);
    fd.reset();
    names.gone(2);  // another death: once more
    names.remove_unused();
    EXPECT_FALSE(there("mapped"));
    EXPECT_FALSE(there("open"));
}

// As when the node daemon is killed before it has removed anything, or somebody uses what is left.
TEST_F(SharedNamesTest, NotesStayUntilTheirFilesAreGone) {
    make("mapped");
    note(1, "mapped");
    SharedNames(files::Folder::at(directory_)).gone(1);
    Fd fd(::open(path("mapped").c_str(), O_RDWR | O_CLOEXEC));
    for (bool used : {true, true, false}) {
        if (!used) fd.reset();
        SharedNames names(files::Folder::at(directory_));
        names.all_gone();
        names.remove_unused();
        EXPECT_EQ(names.empty(), !used);
        EXPECT_EQ(there("mapped"), used);
    }
    EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(SharedNamesTest, AnotherFileOfThatNameStays) {
    make("new");
    note(1, "new");
    make("held");
    fs::rename(path("held"), path("new"));
    std::ofstream(directory_ + "/" + name_of_shared_names(2))
        << "1 2 ../etc/passwd\n1 2\n1 x y\n 1 2 3\n1 2 \n";
    SharedNames names(files::Folder::at(directory_));
    names.all_gone();
    names.remove_unused();
    EXPECT_TRUE(there("new"));
}

}  // namespace
}  // namespace fermata::tree
