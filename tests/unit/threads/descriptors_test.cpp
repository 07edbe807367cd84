// Descriptors at a restart: what does not come back whole, or as the kind that it was, is said or refused,
// and nothing waits. (process_test.cpp has what comes back.)
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "process_fixture.h"

namespace {

using Json = nlohmann::json;

class Descriptors : public Process {
  protected:
    // The state of now with its descriptors changed.
    template <class Change>
    static std::string changed(Change change) {
        Json state = Json::from_cbor(capture({}).state);
        change(state["descriptors"]);
        std::string bytes;
        Json::to_cbor(state, bytes);
        return bytes;
    }
    static bool refused(const std::string& state, std::initializer_list<const char*> words) {
        std::string error = restore(state, {}).error;
        for (const char* word : words)
            if (error.find(word) == std::string::npos) {
                std::fprintf(stderr, "'%s' is not in '%s'\n", word, error.c_str());
                return false;
            }
        return true;
    }
    // Limits of the kernel are for others than root.
    static void be_nobody() { CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0); }
};

TEST_F(Descriptors, ContentThatDoesNotFitIsRefused) {
    child([&] {
        int fd = open(path("gone").c_str(), O_CREAT | O_RDWR, 0600);
        std::string text(100000, 'x');
        CHECK(write(fd, text.data(), text.size()) == 100000 && unlink(path("gone").c_str()) == 0);
        Captured captured = capture({});
        close(fd);
        signal(SIGXFSZ, SIG_IGN);
        rlimit small = {5000, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        Restored restored = restore(captured.state, {});
        CHECK(restored.error.find("the content of the removed file") != std::string::npos);
        CHECK(restored.error.find("cannot be written") != std::string::npos);
    });
}

// A pipe in its place would make the restart wait for ever (child() would end it).
TEST_F(Descriptors, AnotherKindInPlaceOfAFileIsRefusedAtOnceAndALinkIsFollowed) {
    child([&] {
        std::string name = path("data"), away = path("away");
        int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
        CHECK(write(fd, "0123456789", 10) == 10 && close(fd) == 0);
        fd = open(name.c_str(), O_RDONLY | O_NOFOLLOW);
        CHECK(read_some(fd, 4) == "0123");
        Captured captured = capture({});
        CHECK(captured.warnings.empty() && close(fd) == 0);
        CHECK(rename(name.c_str(), away.c_str()) == 0 && mkfifo(name.c_str(), 0600) == 0);
        CHECK(restore(captured.state, {}).error.find("it is a named pipe") != std::string::npos);
        CHECK(unlink(name.c_str()) == 0 && symlink("/dev/full", name.c_str()) == 0);
        CHECK(restore(captured.state, {}).error.find("it is a device") != std::string::npos);
        CHECK(unlink(name.c_str()) == 0 && symlink("away", name.c_str()) == 0);
        CHECK(restore(captured.state, {}).error.empty());
        CHECK(read_some(fd, 2) == "45");
    });
}

TEST_F(Descriptors, AnotherFileInPlaceOfANamedPipeStaysAsItIs) {
    child([&] {
        std::string name = path("fifo");
        CHECK(mkfifo(name.c_str(), 0600) == 0);
        int fd = open(name.c_str(), O_RDWR);
        CHECK(write(fd, "waits", 5) == 5);
        Captured captured = capture({});
        CHECK(close(fd) == 0 && unlink(name.c_str()) == 0);
        int other = open(name.c_str(), O_RDWR | O_CREAT, 0600);
        CHECK(write(other, "precious", 8) == 8 && close(other) == 0);
        CHECK(restore(captured.state, {}).error.find("it is a regular file") != std::string::npos);
        other = open(name.c_str(), O_RDONLY);
        CHECK(read_some(other, 99) == "precious");
    });
}

TEST_F(Descriptors, OnlyASocketIsRemovedFromItsAddress) {
    child([&] {
        auto listener_at = [&](const std::string& name) {
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            sockaddr_un address = {};
            address.sun_family = AF_UNIX;
            path(name).copy(address.sun_path, sizeof address.sun_path - 1);
            CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 5) == 0);
            return fd;
        };
        int fd = listener_at("socket");
        CHECK(there_and_back().empty());  // its own is
        Captured captured = capture({});
        CHECK(close(fd) == 0 && unlink(path("socket").c_str()) == 0);
        close(listener_at("other"));
        CHECK(symlink("other", path("socket").c_str()) == 0);
        Restored restored = restore(captured.state, {});
        CHECK(restored.error.empty() && restored.warnings.size() == 1);
        CHECK(restored.warnings[0].find("cannot be taken") != std::string::npos);
        struct stat there;
        CHECK(lstat(path("socket").c_str(), &there) == 0 && S_ISLNK(there.st_mode));
        CHECK(stat(path("socket").c_str(), &there) == 0);
    });
}

// Its capacity is the default one; nobody reads meanwhile, so an ordinary write would wait for ever.
TEST_F(Descriptors, MoreThanAPipeHoldsIsRefusedAtOnce) {
    child([&] {
        int ends[2];
        CHECK(pipe(ends) == 0 && write(ends[1], "waits", 5) == 5);
        std::string state = changed([](Json& descriptors) {
            Json& pipe = *descriptors["pipes"].begin();
            pipe["content"] = Json::binary(std::vector<uint8_t>(1 << 20, 'x'));
            pipe["capacity"] = 1 << 16;
        });
        CHECK(refused(state, {"descriptor 3: only 65536 of the 1048576 bytes that waited in the pipe"}));
    });
}

TEST_F(Descriptors, APipeOfWhichOnlyAPartCanBeCopiedIsNotSaved) {
    child([&] {
        be_nobody();
        int ends[2], more[2];
        CHECK(pipe2(ends, O_NONBLOCK) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20);
        std::string text(1000000, 'x');
        CHECK(write(ends[1], text.data(), text.size()) == 1000000);
        // Until this user may have no more (fs.pipe-user-pages-soft).
        for (int i = 0; i < 200; ++i)
            if (pipe(more) != 0 || fcntl(more[0], F_SETPIPE_SZ, 1 << 20) < 0) break;
        std::string why;
        try {
            capture({});
        } catch (const fermata::Error& error) {
            why = error.what();
        }
        CHECK(why.find("descriptor 3: only ") == 0);
        CHECK(why.find(" of the 1000000 bytes that wait in this pipe can be saved") != std::string::npos);
    });
}

TEST_F(Descriptors, MoreThanASocketHoldsIsRefused) {
    child([&] {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "waits", 5) == 5);
        std::string state = changed([](Json& descriptors) {
            for (Json& one : descriptors["descriptions"])
                if (one["kind"] == "socket" && !one["socket"]["waiting"].empty())
                    one["socket"]["waiting"][0] = Json::binary(std::vector<uint8_t>(32 << 20, 'x'));
        });
        CHECK(refused(state, {"descriptor 4: only ", " of the 33554432 bytes that waited in the socket"}));
    });
}

// recv() says 0 for ever when no more can come, and so it does for a message without a byte.
TEST_F(Descriptors, MessagesBeforeTheEndComeBackOnce) {
    child([&] {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
        CHECK(send(pair[0], "one", 3, 0) == 3 && send(pair[0], "", 0, 0) == 0 &&
              send(pair[0], "two", 3, 0) == 3);
        CHECK(shutdown(pair[0], SHUT_WR) == 0);
        CHECK(there_and_back().empty());
        CHECK(read_some(pair[1], 99) == "one" && read_some(pair[1], 99).empty() &&
              read_some(pair[1], 99) == "two");
        char byte;
        CHECK(recv(pair[1], &byte, 1, MSG_DONTWAIT) == 0);
        CHECK(send(pair[1], "back", 4, 0) == 4 && read_some(pair[0], 99) == "back");
    });
}

TEST_F(Descriptors, ContentThatCannotBeReadIsNamedWithItsBytes) {
    child([&] {
        CHECK(chmod(directory_.c_str(), 0777) == 0);
        be_nobody();
        int fd = open(path("written").c_str(), O_CREAT | O_WRONLY, 0200);
        CHECK(fd >= 0 && write(fd, "precious", 8) == 8 && unlink(path("written").c_str()) == 0);
        Captured captured = capture({});
        CHECK(!captured.warnings.empty());
        const std::string& said = captured.warnings.back();
        CHECK(said.find("descriptor 3: 8 bytes of the removed file ") == 0);
        CHECK(said.find("Permission denied") != std::string::npos);
    });
}

TEST_F(Descriptors, AKindOfALaterFermataIsRefused) {
    child([&] {
        CHECK(open("/dev/null", O_RDONLY) == 3);
        std::string state = changed([](Json& descriptors) {
            for (Json& one : descriptors["descriptions"])
                if (one["kind"] == "device") one["kind"] = "hologram";
        });
        CHECK(refused(state, {"hologram", "does not know"}));
    });
}

TEST_F(Descriptors, ANumberOfNoDescriptionIsRefused) {
    child([&] {
        for (const char* index : {"7", "-1"}) {
            std::string state =
                changed([&](Json& descriptors) { descriptors["descriptors"][0][1] = Json::parse(index); });
            CHECK(refused(state, {"damaged"}));
        }
    });
}

// As Fermata of 2026-11-26 (b3d8ef5) had written it, before descriptors had a file for each kind: a
// duplicated and locked file, a removed one, a memfd, both kinds of pipes, a pair of sockets and all that is
// anonymous.
TEST_F(Descriptors, AStateOfBeforeIsRead) {
    child([&] {
        std::string bytes = fermata::read_file(STATE_OF_BEFORE), where = "/tmp/fermata-before";
        Json before = Json::from_cbor(bytes);
        for (Json& one : before["descriptions"])
            if (std::string name = one.value("path", ""); name.starts_with(where))
                one["path"] = directory_ + name.substr(where.size());
        int data = open(path("data").c_str(), O_RDWR | O_CREAT, 0644);
        CHECK(write(data, "0123456789", 10) == 10 && close(data) == 0 &&
              mkfifo(path("fifo").c_str(), 0600) == 0);
        Restored restored = restore(changed([&](Json& descriptors) { descriptors = before; }), {});
        for (auto& line : restored.warnings) std::fprintf(stderr, "%s\n", line.c_str());
        CHECK(restored.error.empty() && restored.warnings.empty());
        CHECK(lseek(3, 0, SEEK_CUR) == 10 && lseek(4, 5, SEEK_SET) == 5 && lseek(3, 0, SEEK_CUR) == 5);
        CHECK(flock(open(path("data").c_str(), O_RDONLY), LOCK_SH | LOCK_NB) != 0);
        CHECK(lseek(5, 0, SEEK_SET) == 0 && read_some(5, 99) == "removed");
        CHECK(lseek(6, 0, SEEK_SET) == 0 && read_some(6, 99) == "memory");
        CHECK(read_some(11, 99) == "pipe" && read_some(13, 99) == "fifo" && read_some(15, 99) == "stream");
        CHECK(write(15, "answer", 6) == 6 && read_some(14, 99) == "answer");
        epoll_event event = {};
        uint64_t count = 0;
        CHECK(epoll_wait(19, &event, 1, 0) == 1 && event.data.u64 == 77);
        for (int i = 0; i < 5; ++i) CHECK(read(16, &count, sizeof count) == sizeof count && count == 1);
        CHECK(epoll_wait(19, &event, 1, 0) == 0 && (fcntl(16, F_GETFD) & FD_CLOEXEC) != 0);
        CHECK(fcntl(20, F_GETFD) >= 0 && fcntl(21, F_GETFD) >= 0);
    });
}

}  // namespace
