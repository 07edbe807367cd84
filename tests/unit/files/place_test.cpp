// Files of the program: the kind is looked at before anything is opened, links of the user's are followed.
#include "files/place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fermata::files {
namespace {
namespace fs = std::filesystem;

class PlaceTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-place-XXXXXX";
        directory_ = mkdtemp(name);
    }
    void TearDown() override { fs::remove_all(directory_); }
    std::string path(const std::string& name) const { return directory_ + "/" + name; }
    void put(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
    void listen_at(const std::string& name) {
        Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path(name).copy(address.sun_path, sizeof address.sun_path - 1);
        ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    std::string directory_;
};

// Each of these would wait, or do something to a device, if it were opened.
TEST_F(PlaceTest, AnotherKindIsNeverOpened) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_symlink("/dev/zero", path("device"));
    fs::create_directory(path("directory"));
    listen_at("socket");
    for (const char* name : {"pipe", "device", "directory", "socket"})
        for (int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
            Opened opened = open_regular(path(name), flags);
            EXPECT_FALSE(opened) << name;
            EXPECT_EQ(opened.error, 0) << name;
        }
    EXPECT_EQ(open_regular(path("pipe"), O_RDONLY).why, "it is a named pipe");
    EXPECT_EQ(open_regular(path("device"), O_RDONLY).why, "it is a device");
    EXPECT_EQ(open_regular(path("nothing"), O_RDONLY).error, ENOENT);
    Opened pipe = open_kind(S_IFIFO, path("pipe"), O_RDONLY | O_NONBLOCK);
    EXPECT_TRUE(pipe);
}

TEST_F(PlaceTest, LinksOfTheUsersAreFollowedUnlessTheyMayNotBe) {
    put("file", "text");
    fs::create_symlink("file", path("link"));
    EXPECT_TRUE(open_regular(path("link"), O_RDONLY));
    EXPECT_EQ(open_regular(path("link"), O_RDONLY, O_NOFOLLOW).why, "it is a link");
}

TEST_F(PlaceTest, WhatWasLookedAtIsWhatIsOpened) {
    put("file", "one");
    put("other", "another");
    Place place(path("file"));
    fs::rename(path("other"), path("file"));
    Fd fd = place.open(O_RDONLY);
    struct stat now {};
    ASSERT_EQ(::fstat(fd.get(), &now), 0);
    EXPECT_EQ(now.st_size, 3);
    EXPECT_TRUE(place.set_mode(0400));
    ASSERT_EQ(::stat(path("file").c_str(), &now), 0);
    EXPECT_NE(now.st_mode & 0777, 0400u);
}

TEST_F(PlaceTest, OnlyASocketIsRemoved) {
    put("file", "precious");
    listen_at("socket");
    fs::create_symlink("socket", path("link"));
    remove_socket(path("file"));
    remove_socket(path("link"));
    remove_socket(path("nowhere/at/all"));
    EXPECT_TRUE(fs::exists(path("file")));
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_TRUE(fs::exists(path("socket")));
    remove_socket(path("socket"));
    EXPECT_FALSE(fs::exists(path("socket")));
}

}  // namespace
}  // namespace fermata::files
