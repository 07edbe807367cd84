// Run directories: nobody ever sees one that is half made, and a sweep never takes a newborn for dead.
#include "tree/run_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/fd.h"

namespace fs = std::filesystem;

namespace fermata::tree {
namespace {

class RunDirTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-rundir-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        base_ = name;
    }
    void TearDown() override { fs::remove_all(base_); }
    // Runs `body` in a child; its exit code is what `body` returns.
    template <class Body>
    pid_t child(Body body) {
        pid_t pid = ::fork();
        if (pid == 0) {
            int code = 99;
            try {
                code = body();
            } catch (const Error& error) {
                dprintf(2, "child: %s\n", error.what());
            }
            ::_exit(code);
        }
        return pid;
    }
    int wait_for(pid_t pid) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    // A directory as a killed job leaves it: lock file there, nobody holds it.
    void leave_dead(const std::string& name) {
        EXPECT_EQ(wait_for(child([&] {
                      auto dir = RunDir::create(base_, name, nullptr);
                      dir.abandon();
                      return 0;
                  })),
                  0);
    }
    std::string base_;
};

// A file in /dev/shm, open, that a rank of the dead job `name` has noted. Ranks that have been killed are
// there for a moment.
class RunDirOfTheDyingTest : public RunDirTest {
  protected:
    void SetUp() override {
        RunDirTest::SetUp();
        leave_dead("job");
        const std::string name = fs::path(base_).filename();
        path_ = "/dev/shm/" + name;
        used_ = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        struct stat file {};
        ASSERT_EQ(::fstat(used_.get(), &file), 0);
        std::ofstream(base_ + "/job/shared.1") << file.st_dev << " " << file.st_ino << " " << name << "\n";
    }
    void TearDown() override {
        fs::remove(path_);
        RunDirTest::TearDown();
    }
    std::string path_;
    Fd used_;
};

TEST_F(RunDirOfTheDyingTest, ADeadOneStaysWhileSomebodyUsesWhatItsRanksHaveMade) {
    EXPECT_EQ(sweep(base_), 0);
    EXPECT_EQ(sweep(base_), 0);
    EXPECT_TRUE(fs::exists(path_));
    used_.reset();
    EXPECT_EQ(sweep(base_), 1);
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(RunDirOfTheDyingTest, ANewOneOfThatNameWaitsForThem) {
    std::thread dies([&] {
        ::usleep(100'000);
        used_.reset();
    });
    EXPECT_TRUE(RunDir::create(base_, "job", nullptr));
    dies.join();
    EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RunDirTest, LivesAndGoes) {
    {
        auto dir = RunDir::create(base_, "job",
                                  [](const std::string& path) { std::ofstream(path + "/info") << "x"; });
        ASSERT_TRUE(dir);
        EXPECT_EQ(dir.path(), base_ + "/job");
        EXPECT_TRUE(fs::exists(base_ + "/job/info"));
        struct stat info;
        ASSERT_EQ(::stat(dir.path().c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0700u);
        EXPECT_EQ(living(base_), std::vector<std::string>{"job"});
        EXPECT_EQ(sweep(base_), 0);
        EXPECT_FALSE(RunDir::create(base_, "job", nullptr));  // two living owners of one name: no
    }
    EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(RunDirTest, DeadOnesAreSweptAndTakenOver) {
    leave_dead("a");
    leave_dead("b");
    EXPECT_TRUE(living(base_).empty());
    {
        auto dir = RunDir::create(base_, "a", nullptr);
        EXPECT_TRUE(dir);
        EXPECT_EQ(sweep(base_), 1);
        EXPECT_EQ(living(base_), std::vector<std::string>{"a"});
    }
    EXPECT_TRUE(fs::is_empty(base_));
}

// The worst that was ever found here: a user's own folders were taken for dead jobs.
// libpmix's files, when its process was killed with the node daemon.
TEST_F(RunDirTest, WhatTheHelperHasLeftGoes) {
    leave_dead("a");
    leave_dead("b");
    for (const char* name : {"/a", "/b"}) {
        fs::create_directories(base_ + name + "/pmix-aB3dE6/0/1");
        std::ofstream(base_ + name + "/pmix-aB3dE6/hwloc.sm") << "x";
        std::ofstream(base_ + name + "/pmix-aB3dE6/0/1/file") << "x";
    }
    fs::create_symlink("/", base_ + "/b/pmix-aB3dE6/0/link");
    EXPECT_EQ(sweep(base_), 1);
    EXPECT_FALSE(fs::exists(base_ + "/a"));
    EXPECT_TRUE(fs::exists(base_ + "/b/pmix-aB3dE6/0/1/file"));
}

TEST_F(RunDirTest, WhatIsNotOursIsNeverTouched) {
    fs::create_directories(base_ + "/thesis/data");
    std::ofstream(base_ + "/thesis/data/chapter") << "years";
    fs::create_directory(base_ + "/empty");
    fs::create_directory(base_ + "/locked");
    std::ofstream(base_ + "/locked/lock") << "";  // somebody else's habit
    fs::create_directory(base_ + "/.new-things");
    fs::create_directory(base_ + "/.dead-1-2-x");
    leave_dead("kept");
    fs::create_directory(base_ + "/kept/notes");
    leave_dead("linked");
    fs::create_directory_symlink(base_ + "/thesis", base_ + "/linked/mpi");
    leave_dead("target");
    fs::rename(base_ + "/target", base_ + "/thesis/target");
    fs::create_directory_symlink(base_ + "/thesis/target", base_ + "/target");
    EXPECT_EQ(sweep(base_), 0);
    EXPECT_TRUE(living(base_).empty());
    for (const char* name :
         {"thesis/data/chapter", "empty", "locked/lock", ".new-things", ".dead-1-2-x", "kept/lock",
          "kept/notes", "linked/mpi", "linked/lock", "thesis/target/lock", "target"})
        EXPECT_TRUE(fs::exists(fs::symlink_status(base_ + "/" + name))) << name;
    EXPECT_FALSE(fs::exists(base_ + "/empty/lock")) << "nothing is planted, either";
    EXPECT_THROW(RunDir::create(base_, "thesis", nullptr), Error);
    EXPECT_THROW(RunDir::create(base_, "kept", nullptr), Error);
}

TEST_F(RunDirTest, WaitsForAnOwnerThatIsLeaving) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    pid_t owner = child([&] {
        auto dir = RunDir::create(base_, "job", nullptr);
        [[maybe_unused]] auto n = ::write(ready[1], "x", 1);
        ::usleep(100000);
        return dir ? 0 : 1;
    });
    char c;
    ASSERT_EQ(::read(ready[0], &c, 1), 1);
    EXPECT_TRUE(RunDir::create(base_, "job", nullptr, 20000));
    EXPECT_EQ(wait_for(owner), 0);
    ::close(ready[0]), ::close(ready[1]);
}

// The race that once broke a restart: the name of a dead job is taken again while others sweep. Each worker
// makes, checks and drops (or abandons, as if killed) the same name while the others do the same and sweep.
TEST_F(RunDirTest, CreatingAndSweepingAtOnce) {
    constexpr int kWorkers = 3, kTurns = 250;
    std::vector<pid_t> workers;
    for (int w = 0; w < kWorkers; ++w)
        workers.push_back(child([&, w] {
            for (int turn = 0; turn < kTurns; ++turn) {
                sweep(base_);
                auto dir = RunDir::create(
                    base_, "same", [](const std::string& path) { std::ofstream(path + "/born") << "x"; },
                    30000);
                if (!dir) return 1;
                // While it is ours the lock file under the name is the one we hold, and nothing is missing.
                if (!fs::exists(base_ + "/same/born")) return 2;
                int fd = ::open((base_ + "/same/lock").c_str(), O_RDWR);
                if (fd < 0) return 3;
                if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return 4;
                ::close(fd);
                if ((turn + w) % 3 == 0) dir.abandon();  // as if killed: the lock goes, the directory stays
            }
            return 0;
        }));
    for (pid_t pid : workers) EXPECT_EQ(wait_for(pid), 0);
    sweep(base_);
}

// The place may be a user's home: everything happens in a folder of its own.
TEST_F(RunDirTest, ABaseThatIsForeignOrOpenToOthersIsPassedOver) {
    ::setenv("FERMATA_RUN_DIR", base_.c_str(), 1);
    std::string name = base_ + "/fermata-" + std::to_string(::geteuid());
    EXPECT_TRUE(run_bases().empty());
    EXPECT_EQ(run_base(), name);
    EXPECT_EQ(run_base(), name);
    ::chmod(name.c_str(), 0755);
    EXPECT_EQ(run_base(), name + ".1");
    fs::create_directory_symlink(base_, name + ".2");
    EXPECT_EQ(run_bases(), std::vector<std::string>{name + ".1"});
    EXPECT_THROW(ensure_run_base(name), Error);
    EXPECT_THROW(ensure_run_base(name + ".2"), Error);
    ensure_run_base(name + ".1");
    ::chmod(name.c_str(), 0700);
    EXPECT_EQ(run_base(), name);
    EXPECT_EQ(run_bases(), (std::vector<std::string>{name, name + ".1"}));
    for (int i = 0; i <= 9; ++i) fs::remove_all(i == 0 ? name : name + "." + std::to_string(i));
    for (int i = 0; i <= 9; ++i) std::ofstream(i == 0 ? name : name + "." + std::to_string(i)) << "a file";
    EXPECT_THROW(run_base(), Error);
    ::unsetenv("FERMATA_RUN_DIR");
}

}  // namespace
}  // namespace fermata::tree
