// Process state: captured, thrown away and restored in a child process, then compared.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/cbor.h"
#include "base/fd.h"
#include "process_fixture.h"
#include "split/process/child.h"

namespace threads = fermata::split::threads;

namespace {

TEST_F(Process, FilesComeBackWithOffsetFlagsAndSharing) {
    child([&] {
        int fd = open(path("data").c_str(), O_RDWR | O_CREAT, 0644);
        CHECK(write(fd, "0123456789", 10) == 10);
        lseek(fd, 4, SEEK_SET);
        int twin = dup(fd);
        int log = open(path("log").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        int other = open(path("data").c_str(), O_RDONLY);
        CHECK(dup2(fd, 77) == 77);
        int closed = open("/dev/null", O_RDONLY);
        close(closed);
        CHECK(there_and_back().empty());
        CHECK(read_some(fd, 2) == "45");
        CHECK(lseek(twin, 0, SEEK_CUR) == 6);  // one description
        CHECK(lseek(77, 0, SEEK_CUR) == 6);
        CHECK(lseek(other, 0, SEEK_CUR) == 0);  // another
        CHECK((fcntl(log, F_GETFL) & (O_APPEND | O_ACCMODE)) == (O_APPEND | O_WRONLY));
        CHECK((fcntl(log, F_GETFD) & FD_CLOEXEC) != 0);
        CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
        CHECK(fcntl(closed, F_GETFD) == -1);
        CHECK(write(log, "x", 1) == 1);
    });
}

TEST_F(Process, WhatTheJobAppendedLaterIsSetAsideAndShrunkenFilesAreNamed) {
    child([&] {
        CHECK(mkdir(path("generation").c_str(), 0700) == 0);
        int fd = open(path("grows").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        int shrinks = open(path("shrinks").c_str(), O_RDWR | O_CREAT, 0644);
        CHECK(write(fd, "one\n", 4) == 4 && write(shrinks, "abcdef", 6) == 6);
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), false, nullptr});
        CHECK(write(fd, "two\n", 4) == 4 && ftruncate(shrinks, 2) == 0);
        close_range(3, 499, 0);
        PutBack back = put_files_back(captured.state, fermata::files::Folder::at(path("generation")),
                                      "gen-000001", false);
        CHECK(back.error.empty() && back.warnings.empty() && back.files == 1);
        Restored restored = restore(captured.state, {});
        CHECK(restored.error.empty() && restored.warnings.size() == 1);
        CHECK(restored.warnings[0].find("shrinks") != std::string::npos);
        struct stat status;
        CHECK(fstat(fd, &status) == 0 && status.st_size == 4);
        int aside = open((path("grows") + ".end-after-gen-000001").c_str(), O_RDONLY);
        CHECK(read_some(aside, 8) == "two\n");
        CHECK(write(fd, "2\n", 2) == 2 && fstat(fd, &status) == 0 && status.st_size == 6);
    });
}

TEST_F(Process, OpenFilesAreAsTheyWereAndLocksSurviveTheLook) {
    child([&] {
        CHECK(mkdir(path("generation").c_str(), 0700) == 0);
        int fd = open(path("changed").c_str(), O_RDWR | O_CREAT, 0640);
        CHECK(write(fd, "before", 6) == 6);
        struct flock range = {};
        range.l_type = F_WRLCK;
        CHECK(fcntl(fd, F_SETLK, &range) == 0);
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        pid_t other = fork();
        if (other == 0) {
            struct flock asked = {};
            asked.l_type = F_WRLCK;
            _exit(fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK ? 0 : 1);
        }
        int code = 1;
        CHECK(waitpid(other, &code, 0) == other && code == 0);
        CHECK(pwrite(fd, "after, and more", 15, 0) == 15 &&
              rename(path("changed").c_str(), path("b").c_str()) == 0);
        close_range(3, 499, 0);
        PutBack back = put_files_back(captured.state, fermata::files::Folder::at(path("generation")),
                                      "gen-000001", true);
        CHECK(back.error.empty() && back.warnings.empty() && back.files == 1);
        CHECK(
            put_files_back(captured.state, fermata::files::Folder::at(path("generation")), "gen-000001", true)
                .files == 0);
        Restored restored = restore(captured.state, {});
        CHECK(restored.error.empty() && restored.warnings.empty());
        char text[16] = {};
        CHECK(pread(fd, text, 15, 0) == 6 && std::string(text) == "before");
        struct stat status;
        CHECK(fstat(fd, &status) == 0 && (status.st_mode & 07777) == 0640);
    });
}

TEST_F(Process, FilesOfAnOwnerWhoMayNotWriteThemAnyMoreArePutBack) {
    child([&] {
        CHECK(chmod(directory_.c_str(), 0777) == 0);
        CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
        CHECK(mkdir(path("generation").c_str(), 0700) == 0);
        int grows = open(path("grows").c_str(), O_RDWR | O_CREAT, 0444);
        int later = open(path("later").c_str(), O_RDWR | O_CREAT, 0600);
        CHECK(write(grows, "before", 6) == 6 && write(later, "before", 6) == 6 && fchmod(later, 0400) == 0);
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        CHECK(write(grows, " after", 6) == 6 && write(later, " after", 6) == 6);
        close_range(3, 499, 0);
        PutBack back = put_files_back(captured.state, fermata::files::Folder::at(path("generation")),
                                      "gen-000001", true);
        CHECK(back.error.empty() && back.files == 2);
        struct stat status;
        CHECK(stat(path("grows").c_str(), &status) == 0 && status.st_size == 6);
        CHECK((status.st_mode & 0777) == 0444);
        CHECK(stat(path("later").c_str(), &status) == 0 && status.st_size == 6);
        CHECK((status.st_mode & 0777) == 0400);
        CHECK(stat((path("grows") + ".end-after-gen-000001").c_str(), &status) == 0 && status.st_size == 6);
    });
}

TEST_F(Process, WhatIsTooLargeForACopyIsCutOrNamed) {
    constexpr off_t kLarge = 65 << 20;
    child([&] {
        CHECK(mkdir(path("generation").c_str(), 0700) == 0);
        int log = open(path("log").c_str(), O_RDWR | O_CREAT | O_APPEND, 0644);
        int table = open(path("table").c_str(), O_RDWR | O_CREAT, 0644);
        CHECK(ftruncate(log, kLarge) == 0 && ftruncate(table, kLarge) == 0);
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        bool shares_blocks = captured.warnings.empty();  // then both are copied after all
        CHECK(shares_blocks || captured.warnings[0].find("table") != std::string::npos);
        CHECK(write(log, "more", 4) == 4 && pwrite(table, "new", 3, 5 << 20) == 3);
        PutBack back = put_files_back(captured.state, fermata::files::Folder::at(path("generation")),
                                      "gen-000001", true);
        CHECK(back.error.empty() && back.warnings.size() == (shares_blocks ? 0 : 1));
        struct stat status;
        CHECK(stat(path("log").c_str(), &status) == 0 && status.st_size == kLarge);
        CHECK(stat((path("log") + ".end-after-gen-000001").c_str(), &status) == 0 || shares_blocks);
        if (shares_blocks) return;
        // Not only appended to: its end is another one.
        CHECK(ftruncate(log, kLarge - 1) == 0 && write(log, "xyz", 3) == 3);
        back = put_files_back(captured.state, fermata::files::Folder::at(path("generation")), "gen-000001",
                              true);
        CHECK(back.error.empty() && back.files == 0 && back.warnings.size() == 2);
        CHECK(stat(path("log").c_str(), &status) == 0 && status.st_size == kLarge + 2);
    });
}

// By the program's own link, and by a path as programs write them.
TEST_F(Process, DirectoriesThatAreGoneAreMadeAgain) {
    child([&] {
        for (const char* name : {"generation", "run", "run/a", "run/a/b"})
            CHECK(mkdir(path(name).c_str(), 0700) == 0);
        CHECK(symlink("run", path("link").c_str()) == 0);
        fermata::Fd data(open(path("run/a/b/data").c_str(), O_RDWR | O_CREAT, 0600));
        CHECK(write(data.get(), "before", 6) == 6);
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        CHECK(system(("rm -r " + path("run/a")).c_str()) == 0);
        auto state = nlohmann::json::from_cbor(captured.state);
        for (auto& file : state.at("files"))
            if (file.at("path") == path("run/a/b/data")) file.at("path") = path("link//a//b/data");
        const std::vector<uint8_t> bytes = nlohmann::json::to_cbor(state);
        const PutBack back =
            put_files_back({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           fermata::files::Folder::at(path("generation")), "gen-000001", true);
        CHECK(back.error.empty() && back.files == 1);
        fermata::Fd now(open(path("run/a/b/data").c_str(), O_RDONLY));
        CHECK(read_some(now.get(), 16) == "before");
    });
}

TEST_F(Process, NothingIsPutBackWhereALinkOfAnotherUsersLeads) {
    if (geteuid() != 0) GTEST_SKIP() << "nobody else's link can be made";
    child([&] {
        for (const char* name : {"generation", "run", "precious"})
            CHECK(mkdir(path(name).c_str(), 0700) == 0);
        const auto put = [](int folder, const char* text) {
            fermata::Fd file(openat(folder, "data", O_WRONLY | O_CREAT | O_TRUNC, 0600));
            CHECK(write(file.get(), text, strlen(text)) == static_cast<ssize_t>(strlen(text)));
        };
        fermata::Fd run(open(path("run").c_str(), O_RDONLY | O_DIRECTORY)),
            precious(open(path("precious").c_str(), O_RDONLY | O_DIRECTORY));
        put(precious.get(), "years of work");
        put(run.get(), "before");
        fermata::Fd data(open(path("run/data").c_str(), O_RDWR));
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        const std::string link = path("link"), there = path("run");
        CHECK(symlink(path("precious").c_str(), link.c_str()) == 0);
        CHECK(lchown(link.c_str(), 61000000, 61000000) == 0);
        std::atomic<bool> over{false};
        std::thread exchanges([&] {
            while (!over) renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, there.c_str(), RENAME_EXCHANGE);
        });
        int refused = 0, done = 0;
        for (int i = 0; i < 100; ++i) {
            put(run.get(), "changed");
            const PutBack back = put_files_back(
                captured.state, fermata::files::Folder::at(path("generation")), "gen-000001", true);
            back.error.empty() ? ++done : ++refused;
        }
        over = true;
        exchanges.join();
        CHECK(refused > 0 && done > 0);
        char text[32] = {};
        fermata::Fd kept(openat(precious.get(), "data", O_RDONLY));
        CHECK(read(kept.get(), text, sizeof text) == 13 && std::string(text) == "years of work");
        CHECK(faccessat(precious.get(), "data.after-gen-000001", F_OK, 0) != 0);
    });
}

TEST_F(Process, AnotherUsersLinkInThePlaceOfAFileIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "nobody else's link can be made";
    child([&] {
        CHECK(mkdir(path("generation").c_str(), 0700) == 0);
        const std::string data = path("data"), precious = path("precious");
        fermata::Fd fd(open(data.c_str(), O_RDWR | O_CREAT, 0600));
        Captured captured = capture({}, {fermata::files::Folder::at(path("generation")), true, nullptr});
        CHECK(rename(data.c_str(), precious.c_str()) == 0 && symlink("precious", data.c_str()) == 0);
        const auto back = [&] {
            return put_files_back(captured.state, fermata::files::Folder::at(path("generation")),
                                  "gen-000001", true);
        };
        CHECK(lchown(data.c_str(), 61000000, 61000000) == 0);
        CHECK(back().error.find(data + " is a link of ") != std::string::npos);
        CHECK(lchown(data.c_str(), 0, 0) == 0 && back().error.empty());
    });
}

TEST_F(Process, AMissingFileIsAnErrorThatNamesIt) {
    child([&] {
        int fd = open(path("input").c_str(), O_RDWR | O_CREAT, 0644);
        CHECK(fd >= 0);
        Captured captured = capture({});
        CHECK(rename(path("input").c_str(), path("elsewhere").c_str()) == 0);
        close(fd);
        Restored restored = restore(captured.state, {});
        CHECK(restored.error.find("input") != std::string::npos &&
              restored.error.find("put it back") != std::string::npos);
    });
}

TEST_F(Process, RemovedFilesAndMemfdsCarryTheirContent) {
    child([&] {
        int fd = open(path("scratch").c_str(), O_RDWR | O_CREAT, 0640);
        int reader = open(path("scratch").c_str(), O_RDONLY);
        CHECK(pwrite(fd, "head", 4, 0) == 4 && pwrite(fd, "tail", 4, 1 << 20) == 4);
        unlink(path("scratch").c_str());
        lseek(fd, 2, SEEK_SET);
        int memory = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        CHECK(write(memory, "sealed", 6) == 6);
        CHECK(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        CHECK(there_and_back().empty());
        CHECK(read_some(fd, 2) == "ad");
        struct stat status, same;
        CHECK(fstat(fd, &status) == 0 && status.st_nlink == 0 && status.st_size == (1 << 20) + 4);
        CHECK((status.st_mode & 07777) == 0640);
        CHECK(fstat(reader, &same) == 0 && same.st_ino == status.st_ino);  // still one file
        char tail[5] = {};
        CHECK(pread(reader, tail, 4, 1 << 20) == 4 && std::string(tail) == "tail");
        CHECK(lseek(memory, 0, SEEK_CUR) == 6 && lseek(memory, 0, SEEK_SET) == 0 &&
              read_some(memory, 9) == "sealed");
        CHECK(fcntl(memory, F_GET_SEALS) == F_SEAL_SHRINK);
        CHECK((fcntl(memory, F_GETFD) & FD_CLOEXEC) != 0);
    });
}

TEST_F(Process, PipesWithinTheProcessKeepWhatWaits) {
    child([&] {
        int ends[2], fifo;
        CHECK(pipe2(ends, O_NONBLOCK) == 0);
        CHECK(fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) == 1 << 17);
        std::string waiting(100000, 'p');
        CHECK(write(ends[1], waiting.data(), waiting.size()) == 100000);
        CHECK(mkfifo(path("fifo").c_str(), 0600) == 0);
        fifo = open(path("fifo").c_str(), O_RDWR);
        CHECK(write(fifo, "named", 5) == 5);
        CHECK(there_and_back().empty());
        CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
        CHECK(fcntl(ends[0], F_GETPIPE_SZ) == 1 << 17);
        CHECK(read_some(ends[0], 200000) == waiting);
        CHECK(write(ends[1], "more", 4) == 4 && read_some(ends[0], 9) == "more");
        close(ends[1]);
        CHECK(read(ends[0], &fifo, 0) == 0);
        CHECK(read_some(fifo, 9) == "named" || true);
    });
}

TEST_F(Process, APipeToSomebodyElseIsNamedAndReadsAsClosed) {
    child([&] {
        int ends[2];
        CHECK(pipe(ends) == 0);
        CHECK(write(ends[1], "last", 4) == 4);
        close(ends[1]);
        CHECK(there_and_back(1).empty());
        CHECK(read_some(ends[0], 9) == "last");
        CHECK(read(ends[0], ends, 1) == 0);
    });
}

TEST_F(Process, EventTimerSignalAndEpollDescriptors) {
    child([&] {
        int event = eventfd(5, EFD_NONBLOCK);
        int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
        int small[] = {eventfd(0, EFD_NONBLOCK), eventfd(1, EFD_NONBLOCK),
                       eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK), eventfd(1, EFD_SEMAPHORE)};
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        itimerspec times = {{7, 0}, {3600, 0}};
        CHECK(timerfd_settime(timer, 0, &times, nullptr) == 0);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, nullptr);
        int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        int notify = inotify_init1(IN_NONBLOCK);
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        epoll_event watch = {};
        watch.events = EPOLLIN;
        watch.data.u64 = 0x123456789abcdef;
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &watch) == 0);
        watch.data.u64 = 2;
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &watch) == 0);
        CHECK(there_and_back().empty());
        epoll_event found[4] = {};
        CHECK(epoll_wait(epoll, found, 4, 0) == 1 && found[0].data.u64 == 0x123456789abcdef);
        uint64_t value = 0;
        CHECK(read(event, &value, 8) == 8 && value == 5);
        CHECK(read(semaphore, &value, 8) == 8 && value == 1);
        CHECK(read(semaphore, &value, 8) == 8 && value == 1);
        CHECK(read(semaphore, &value, 8) == -1 && errno == EAGAIN);
        CHECK(read(small[0], &value, 8) == -1 && errno == EAGAIN && read(small[2], &value, 8) == -1);
        for (int i : {1, 3}) CHECK(read(small[i], &value, 8) == 8 && value == 1);
        value = 3;
        for (int one : small) CHECK(write(one, &value, 8) == 8);
        for (int i : {0, 1}) CHECK(read(small[i], &value, 8) == 8 && value == 3);
        for (int i : {2, 3}) CHECK(read(small[i], &value, 8) == 8 && value == 1);
        CHECK(timerfd_gettime(timer, &times) == 0 && times.it_interval.tv_sec == 7 &&
              times.it_value.tv_sec > 3500);
        raise(SIGUSR1);
        signalfd_siginfo info;
        CHECK(epoll_wait(epoll, found, 4, 1000) == 1 && found[0].data.u64 == 2);
        CHECK(read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
        CHECK(inotify_add_watch(notify, "/tmp", IN_CREATE) > 0);
    });
}

TEST_F(Process, AFileThatMayNoLongerBeOpenedIsOpenedByItsOwner) {
    child([&] {
        std::string name = path("read-only");
        CHECK(chmod(directory_.c_str(), 0777) == 0);
        CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
        note_inherited();
        int fd = open(name.c_str(), O_CREAT | O_RDWR, 0444);
        CHECK(fd >= 0 && write(fd, "before", 6) == 6);
        CHECK(there_and_back().empty());
        CHECK(write(fd, " after", 6) == 6);
        struct stat now;
        CHECK(stat(name.c_str(), &now) == 0 && (now.st_mode & 0777) == 0444 && now.st_size == 12);
    });
}

TEST_F(Process, AWatchOfAClosedDuplicateStays) {
    child([&] {
        int event = eventfd(0, 0), again = dup(event), epoll = epoll_create1(0);
        epoll_event one = {EPOLLIN, {}};
        one.data.u64 = 77;
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, again, &one) == 0 && close(again) == 0);
        int other = open("/dev/null", O_RDONLY);  // has the number now
        CHECK(other == again);
        CHECK(there_and_back().empty());
        uint64_t count = 1;
        CHECK(write(event, &count, sizeof count) == sizeof count);
        CHECK(epoll_wait(epoll, &one, 1, 1000) == 1 && one.data.u64 == 77);
        char byte;
        CHECK(read(other, &byte, 1) == 0);
    });
}

TEST_F(Process, SocketsWithinTheProcessStayConnected) {
    child([&] {
        int pair[2], packets[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
        CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, packets) == 0);
        CHECK(write(pair[0], "stream", 6) == 6);
        CHECK(write(packets[0], "one", 3) == 3 && write(packets[0], "three", 5) == 5);
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener, 9) == 0);
        CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        int client = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0);
        int server = accept(listener, nullptr, nullptr);
        CHECK(server >= 0 && write(client, "tcp", 3) == 3);
        pollfd arrived = {server, POLLIN, 0};
        CHECK(poll(&arrived, 1, 5000) == 1);
        CHECK(there_and_back().empty());
        CHECK(read_some(pair[1], 99) == "stream" && (fcntl(pair[1], F_GETFL) & O_NONBLOCK) != 0);
        CHECK(read_some(packets[1], 99) == "one" && read_some(packets[1], 99) == "three");
        CHECK(write(packets[1], "back", 4) == 4 && read_some(packets[0], 99) == "back");
        arrived.revents = 0;
        CHECK(poll(&arrived, 1, 5000) == 1 && read_some(server, 99) == "tcp");
        CHECK(write(server, "answer", 6) == 6 && read_some(client, 99) == "answer");
        sockaddr_in again = {};
        size = sizeof again;
        CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&again), &size) == 0 &&
              again.sin_port == address.sin_port);
        int second = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(second, reinterpret_cast<sockaddr*>(&address), size) == 0);
    });
}

TEST_F(Process, StandardStreamsAreTheNewLaunchersAndWhatWasClosedStaysClosed) {
    child([&] {
        int copy = dup(2);
        int out = open(path("out").c_str(), O_WRONLY | O_CREAT, 0600);
        CHECK(dup2(out, 1) == 1);
        close(0);
        close(out);
        CHECK(there_and_back().empty());
        CHECK(fcntl(0, F_GETFD) == -1);
        CHECK(write(1, "text", 4) == 4);
        struct stat status, error, duplicate;
        CHECK(stat(path("out").c_str(), &status) == 0 && status.st_size == 4);
        CHECK(fstat(2, &error) == 0 && fstat(copy, &duplicate) == 0 && error.st_ino == duplicate.st_ino);
    });
}

TEST_F(Process, LocksAreTakenAgain) {
    child([&] {
        int fd = open(path("locked").c_str(), O_RDWR | O_CREAT, 0600);
        int whole = open(path("whole").c_str(), O_RDWR | O_CREAT, 0600);
        struct flock range = {};
        range.l_type = F_WRLCK;
        range.l_start = 10;
        range.l_len = 5;
        CHECK(fcntl(fd, F_SETLK, &range) == 0 && flock(whole, LOCK_EX) == 0);
        CHECK(there_and_back().empty());
        pid_t other = fork();
        if (other == 0) {
            range.l_type = F_WRLCK;
            bool held = fcntl(fd, F_GETLK, &range) == 0 && range.l_type == F_WRLCK && range.l_start == 10 &&
                        range.l_len == 5;
            int mine = open(path("whole").c_str(), O_RDWR);
            _exit(held && flock(mine, LOCK_EX | LOCK_NB) == -1 ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(other, &status, 0) == other && status == 0);
    });
}

volatile sig_atomic_t g_alarms;
volatile sig_atomic_t g_value;

TEST_F(Process, DirectoryUmaskLimitsSignalsAndTimers) {
    child([&] {
        CHECK(chdir(directory_.c_str()) == 0);
        umask(027);
        rlimit limit;
        getrlimit(RLIMIT_CORE, &limit);
        rlim_t hard = limit.rlim_max;
        limit.rlim_cur = hard >= 4096 ? 4096 : 0;
        CHECK(setrlimit(RLIMIT_CORE, &limit) == 0);
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        alarm(0);
        struct sigaction action = {};
        action.sa_handler = [](int) { g_alarms = g_alarms + 1; };
        sigaction(SIGALRM, &action, nullptr);
        action.sa_flags = SA_SIGINFO;
        action.sa_sigaction = [](int, siginfo_t* info, void*) { g_value = info->si_value.sival_int; };
        sigaction(SIGRTMIN + 3, &action, nullptr);
        signal(SIGTERM, SIG_IGN);
        itimerval soon = {{0, 0}, {0, 200'000}};
        setitimer(ITIMER_REAL, &soon, nullptr);
        sigevent event = {};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = SIGRTMIN + 3;
        event.sigev_value.sival_int = 41;
        timer_t unused, timer;
        CHECK(timer_create(CLOCK_REALTIME, &event, &unused) == 0);
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        timer_delete(unused);
        itimerspec times = {{0, 0}, {100, 0}};
        CHECK(timer_settime(timer, 0, &times, nullptr) == 0);
        // Waiting for the process, with a value.
        sigset_t all, before;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        sigval value;
        value.sival_int = 23;
        CHECK(sigqueue(getpid(), SIGRTMIN + 3, value) == 0);

        Captured captured = capture({});
        CHECK(captured.warnings.empty());
        // Another process would have none of it.
        CHECK(chdir("/") == 0);
        umask(0);
        signal(SIGALRM, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        soon = {};
        setitimer(ITIMER_REAL, &soon, nullptr);
        CHECK(timer_delete(timer) == 0);
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
        siginfo_t taken;
        static const timespec kNow = {0, 0};
        CHECK(sigtimedwait(&all, &taken, &kNow) == SIGRTMIN + 3);
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
        // Before Linux 6.15 a process never gets a number of a timer again.
        if (pid_t fresh = fork(); fresh != 0) {
            int status = 0;
            CHECK(waitpid(fresh, &status, 0) == fresh);
            _exit(status == 0 ? 0 : 1);
        }

        Restored restored = restore(captured.state, {});
        CHECK(restored.error.empty() && restored.warnings.empty());
        Restored timers = restore_timers(captured.state);
        CHECK(timers.error.empty() && timers.warnings.empty());
        sigprocmask(SIG_SETMASK, &before, nullptr);
        CHECK(g_value == 23);
        char now[4096];
        CHECK(getcwd(now, sizeof now) != nullptr && directory_ == now);
        CHECK(umask(0) == 027);
        getrlimit(RLIMIT_CORE, &limit);
        CHECK(limit.rlim_cur == (hard >= 4096 ? 4096u : 0u));
        CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
        sigaction(SIGTERM, nullptr, &action);
        CHECK(action.sa_handler == SIG_IGN);
        CHECK(timer_gettime(timer, &times) == 0 && times.it_value.tv_sec > 90);
        times = {{0, 0}, {0, 1}};
        CHECK(timer_settime(timer, 0, &times, nullptr) == 0);
        for (int i = 0; i < 10000 && (g_value != 41 || g_alarms == 0); ++i) usleep(1000);
        CHECK(g_value == 41 && g_alarms == 1);
    });
}

TEST_F(Process, ADirectoryThatWasRemovedIsImitated) {
    child([&] {
        CHECK(mkdir(path("gone").c_str(), 0700) == 0 && chdir(path("gone").c_str()) == 0);
        CHECK(rmdir(path("gone").c_str()) == 0);
        CHECK(there_and_back().empty());
        char now[4096];
        CHECK(getcwd(now, sizeof now) == nullptr && errno == ENOENT);
    });
}

TEST_F(Process, ADamagedStateIsRefused) {
    child([&] {
        Captured captured = capture({});
        Restored restored = restore(captured.state.substr(0, captured.state.size() / 2), {});
        CHECK(restored.error.find("damaged") != std::string::npos);
        CHECK(restore("", {}).error.find("damaged") != std::string::npos);
    });
}

// Each of these ended a rank by SIGSEGV, or would have asked for memory that the bytes do not hold.
TEST_F(Process, AStateThatIsNestedOrLiesIsRefused) {
    const std::string many = "\x9b\x0f\xff\xff\xff\xff\xff\xff\xff";
    for (std::string bytes : {"\x81", "\xa1\x61x", "\x9f", "\xbf\x61x", "\x7f", "\x5f", "\xc1"}) {
        std::string nested;
        for (int i = 0; i < 1000000; ++i) nested += bytes;
        child([&] {
            CHECK(restore(nested, {}).error.find("damaged") != std::string::npos);
            CHECK(restore(nested + '\0', {}).error.find("damaged") != std::string::npos);
            CHECK(restore_timers(nested + '\0').error.find("damaged") != std::string::npos);
        });
    }
    child([&] {
        CHECK(restore(many, {}).error.find("damaged") != std::string::npos);
        CHECK(restore("\xa1\x61x" + many, {}).error.find("damaged") != std::string::npos);
    });
}

TEST_F(Process, WhatOursWritePassesAndNoPartOfIt) {
    child([&] {
        std::string state = capture({}).state;
        CHECK(fermata::cbor_fault(state.data(), state.size()) == nullptr);
        for (size_t size = 0; size < state.size(); ++size)
            CHECK(fermata::cbor_fault(state.data(), size) != nullptr);
        state += '\0';
        CHECK(fermata::cbor_fault(state.data(), state.size()) != nullptr);
    });
    // As deep as it may be, and one level more.
    for (unsigned levels : {fermata::kDeepestCbor - 1, fermata::kDeepestCbor}) {
        std::string nested(levels, '\x81');
        nested += '\x01';
        EXPECT_EQ(fermata::cbor_fault(nested.data(), nested.size()) == nullptr,
                  levels < fermata::kDeepestCbor);
    }
}

// Launchers set one (Fermata's own) or none: the next one's choice stays.
TEST(OwnAttributes, TheLaunchersDeathSignalIsNotTheProgramsOwn) {
    auto death_signal = [] {
        int signal = 0;
        prctl(PR_GET_PDEATHSIG, &signal);
        return signal;
    };
    threads::OwnAttributes saved;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    threads::note_launchers_death_signal();
    threads::note_own_attributes(&saved);
    for (int other : {0, SIGTERM}) {
        prctl(PR_SET_PDEATHSIG, other);
        threads::set_own_attributes(&saved);
        EXPECT_EQ(death_signal(), other);
    }
    prctl(PR_SET_PDEATHSIG, SIGUSR2);
    threads::note_own_attributes(&saved);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    threads::set_own_attributes(&saved);
    EXPECT_EQ(death_signal(), SIGUSR2);
    prctl(PR_SET_PDEATHSIG, 0);
    threads::note_launchers_death_signal();
}

// The agent is not the main thread. Looking twice shows the same, byte by byte, so that who keeps account of
// what waits knows it again.
TEST_F(Process, SignalsThatWaitAreKnownAgain) {
    child([] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        std::thread agent([] {
            const pid_t other = fork();
            if (other == 0) _exit(kill(getppid(), SIGRTMIN + 3) | kill(getppid(), SIGUSR1));
            int status = 1;
            CHECK(waitpid(other, &status, 0) == other && status == 0);
            siginfo_t ended;
            sigset_t children;
            sigemptyset(&children);
            sigaddset(&children, SIGCHLD);
            sigwaitinfo(&children, &ended);
            const Signals before = waiting_signals();
            CHECK(before.size() == 2);
            CHECK(waiting_signals() == before);
            CHECK(take_signals_since(before, nullptr).empty());
            siginfo_t info;
            std::memcpy(&info, before[0].data(), sizeof info);
            CHECK(info.si_signo == SIGUSR1 && info.si_pid == other);
            // As it came, where the kernel has pidfds of threads (Linux 6.9).
            const int thread = static_cast<int>(syscall(SYS_pidfd_open, gettid(), O_EXCL));
            CHECK(info.si_code == (thread >= 0 ? SI_USER : SI_QUEUE));
        });
        agent.join();
    });
}

}  // namespace
