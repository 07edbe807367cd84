// Standard input as a file: the word that rank 0 gets, and files that are not what they were.
#include "tree/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::tree {
namespace {

class InputTest : public testing::Test {
  protected:
    void SetUp() override {
        file_ = Fd(::mkstemp(name_));
        ASSERT_TRUE(file_);
        ASSERT_EQ(::write(file_.get(), "abcdef", 6), 6);
        ASSERT_EQ(::lseek(file_.get(), 2, SEEK_SET), 2);
    }
    void TearDown() override { ::unlink(name_); }

    char name_[64] = "/tmp/fermata-input:a b-XXXXXX";
    Fd file_;
};

TEST_F(InputTest, TheWordTellsPathInodeAndOffset) {
    auto file = InputFile::behind(file_.get());
    ASSERT_TRUE(file);
    auto same = InputFile::decoded(file->encoded());
    ASSERT_TRUE(same);
    EXPECT_EQ(same->path, name_);
    EXPECT_EQ(same->inode, file->inode);
    EXPECT_EQ(same->offset, 2);
}

TEST_F(InputTest, PipesAndFilesWithoutANameAreForTheLauncher) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Fd in(ends[0]), out(ends[1]);
    EXPECT_FALSE(InputFile::behind(in.get()));
    EXPECT_FALSE(InputFile::behind(-1));
    ::unlink(name_);  // as the shell does with a here-document
    EXPECT_FALSE(InputFile::behind(file_.get()));
}

TEST_F(InputTest, DamagedWordsAreRefused) {
    for (const char* word :
         {"", "1", "1:", "1:2", "1:2:", "x:2:/p", "1:y:/p", "-1:2:/p", "99999999999999999999:0:/p"})
        EXPECT_FALSE(InputFile::decoded(word)) << word;
}

TEST_F(InputTest, BecomesStandardInputAtItsOffset) {
    pid_t pid = ::fork();
    if (pid == 0) {
        char text[8] = "";
        InputFile::behind(file_.get())->become_standard_input();
        ::_exit(::read(0, text, 7) == 4 && std::string(text) == "cdef" ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

TEST_F(InputTest, AnotherFileOfThatNameIsRefused) {
    auto file = InputFile::behind(file_.get());
    ASSERT_TRUE(file);
    file->inode ^= 1;
    EXPECT_THROW(file->become_standard_input(), Error);
    file->path += ".gone";
    EXPECT_THROW(file->become_standard_input(), Error);
}

}  // namespace
}  // namespace fermata::tree
