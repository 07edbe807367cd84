// What lies under a name is never followed, waited for, truncated or believed because of its name.
#include "files/folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "files/owners.h"

namespace fermata::files {
namespace {
namespace fs = std::filesystem;

class FolderTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-files-XXXXXX";
        directory_ = mkdtemp(name);
        folder_ = Folder::at(directory_);
    }
    void TearDown() override { fs::remove_all(directory_); }
    void put(const std::string& name, const std::string& text) {
        std::ofstream(directory_ + "/" + name) << text;
    }
    template <class Action>
    static std::string why(Action action) {
        try {
            action();
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    std::string directory_;
    Folder folder_;
};

TEST_F(FolderTest, LinksPipesAndDirectoriesAreNoFiles) {
    put("victim", "precious");
    fs::create_symlink("victim", directory_ + "/link");
    ASSERT_EQ(::mkfifo((directory_ + "/pipe").c_str(), 0600), 0);
    fs::create_directory(directory_ + "/directory");
    EXPECT_NE(why([&] { folder_.read("link"); }).find("is a link"), std::string::npos);
    EXPECT_NE(why([&] { folder_.write("link"); }).find("is a link"), std::string::npos);
    EXPECT_NE(why([&] { folder_.lock_file("link"); }).find("is a link"), std::string::npos);
    EXPECT_NE(why([&] { folder_.create("link"); }), "");
    EXPECT_NE(why([&] { folder_.read("pipe"); }).find("not a regular file"), std::string::npos);
    EXPECT_NE(why([&] { folder_.write("pipe"); }), "");
    EXPECT_NE(why([&] { folder_.read("directory"); }), "");
    EXPECT_NE(why([&] { folder_.read("nothing"); }).find("No such file"), std::string::npos);
    EXPECT_FALSE(folder_.size_of("link"));
    EXPECT_FALSE(folder_.size_of("pipe"));
    EXPECT_EQ(folder_.size_of("victim"), 8u);
    EXPECT_FALSE(folder_.find("link"));
    EXPECT_FALSE(folder_.find("victim"));
    EXPECT_TRUE(folder_.find("directory"));
    EXPECT_FALSE(folder_.make("link"));
    EXPECT_EQ(folder_.text("victim"), "precious");
    EXPECT_NE(why([&] { folder_.text("victim", 7); }).find("longer than"), std::string::npos);
    EXPECT_EQ(fs::file_size(directory_ + "/victim"), 8u);
}

TEST_F(FolderTest, NamesStayInTheFolder) {
    for (const char* name : {"", ".", "..", "a/b", "/etc/passwd", "../x"})
        EXPECT_NE(why([&] { folder_.read(name); }), "") << name;
    EXPECT_NE(why([&] { folder_.create(std::string("a\0b", 3)); }), "");
}

TEST_F(FolderTest, AHardLinkIsNoLock) {
    put("victim", "precious");
    fs::create_hard_link(directory_ + "/victim", directory_ + "/.lock");
    EXPECT_NE(why([&] { folder_.lock_file(".lock"); }), "");
    fs::remove(directory_ + "/.lock");
    EXPECT_EQ(why([&] { folder_.lock_file(".lock"); }), "");
}

TEST_F(FolderTest, ItStaysTheSameDirectoryWhateverHappensToItsName) {
    Folder one = *folder_.make("one");
    put("one/file", "first");
    fs::rename(directory_ + "/one", directory_ + "/moved");
    fs::create_directory(directory_ + "/one");
    put("one/file", "second");
    EXPECT_EQ(one.text("file"), "first");
    EXPECT_FALSE(one.is(folder_, "one"));
    EXPECT_TRUE(one.is(folder_, "moved"));
    EXPECT_EQ(one.beside("one").text("file"), "second");
    EXPECT_EQ(one.mode(), 0700u);
}

TEST_F(FolderTest, ReplaceLeavesALinkOfItsTemporaryNameAlone) {
    put("victim", "precious");
    fs::create_symlink("victim", directory_ + "/manifest.new");
    folder_.replace("manifest", "new content");
    EXPECT_EQ(folder_.text("manifest"), "new content");
    EXPECT_EQ(folder_.text("victim"), "precious");
    EXPECT_EQ(folder_.names(), (std::vector<std::string>{"manifest", "victim"}));
}

TEST_F(FolderTest, WhatIsOnesOwnIsNobodyElses) {
    auto own = folder_.own("own");
    ASSERT_TRUE(own);
    EXPECT_EQ(own->mode(), 0700u);
    EXPECT_TRUE(folder_.own("own"));  // it is there
    fs::create_directory_symlink("own", directory_ + "/link");
    put("file", "x");
    fs::create_directory(directory_ + "/open");
    ::chmod((directory_ + "/open").c_str(), 0711);
    for (const char* name : {"link", "file", "open"}) EXPECT_FALSE(folder_.own(name)) << name;
    EXPECT_NE(why([&] { folder_.own("own/below"); }), "");
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    fs::create_directory(directory_ + "/closed");
    ASSERT_EQ(::chown((directory_ + "/closed").c_str(), 4711, 4711), 0);
    ::chmod((directory_ + "/closed").c_str(), 0700);
    ::chmod(directory_.c_str(), 0777);
    ASSERT_EQ(::seteuid(4712), 0);
    EXPECT_FALSE(folder_.own("closed"));
    EXPECT_FALSE(folder_.find("closed"));
    EXPECT_NE(why([&] { folder_.find("own"); }).find("Permission denied"),
              std::string::npos);  // not another user's
    ASSERT_EQ(::seteuid(0), 0);
}

TEST_F(FolderTest, OnlyBelievedOwners) {
    if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
    put("theirs", "x");
    fs::create_directory(directory_ + "/d");
    ASSERT_EQ(::chown((directory_ + "/theirs").c_str(), 4711, 4711), 0);
    ASSERT_EQ(::chown((directory_ + "/d").c_str(), 4711, 4711), 0);
    EXPECT_NE(why([&] { folder_.read("theirs"); }).find("uid 4711"), std::string::npos);
    EXPECT_NE(why([&] { folder_.lock_file("theirs"); }).find("uid 4711"), std::string::npos);
    EXPECT_NE(why([&] { folder_.below("d").check_owner("d"); }).find("--allow-owner 4711"),
              std::string::npos);
    allow_owner(4711);
    EXPECT_EQ(folder_.text("theirs"), "x");
    EXPECT_EQ(why([&] { folder_.below("d").check_owner("d"); }), "");
    allow_owner(static_cast<uid_t>(-1));
    EXPECT_FALSE(believed(4711));
    EXPECT_EQ(user_from("root"), 0u);
    EXPECT_EQ(user_from("4711"), 4711u);
    EXPECT_NE(why([&] { (void)user_from("nobody of this name"); }), "");
}

TEST_F(FolderTest, PathsAreMadeAbsoluteByTheirText) {
    EXPECT_EQ(absolute_path("/a//b/./c/../d/"), "/a/b/d");
    EXPECT_EQ(absolute_path("/../.."), "/");
    char* here = ::getcwd(nullptr, 0);
    EXPECT_EQ(absolute_path("x"), std::string(here) + "/x");
    ::free(here);
    EXPECT_EQ(split_path("a"), (std::pair<std::string, std::string>{".", "a"}));
    EXPECT_EQ(split_path("/a"), (std::pair<std::string, std::string>{"/", "a"}));
    EXPECT_EQ(split_path("/a/b"), (std::pair<std::string, std::string>{"/a", "b"}));
    make_path(directory_ + "/p/q");
    struct stat info;
    ASSERT_EQ(::stat((directory_ + "/p").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    put("file", "x");
    EXPECT_NE(why([&] { make_path(directory_ + "/file"); }).find("it is a file"), std::string::npos);
}

}  // namespace
}  // namespace fermata::files
