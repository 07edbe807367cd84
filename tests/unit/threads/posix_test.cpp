// The upper half's interposers, linked into this program: signals over a crossing, waits over a stop,
// /proc/self/exe.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <thread>

#include "agent_fixture.h"
#include "front/core/fatal.h"
#include "front/core/front.h"
#include "front/core/recorded.h"
#include "front/posix/warden.h"
#include "split/address/window.h"
#include "split/noted_files.h"
#include "split/threads/interrupted.h"

using namespace fermata::split;
using namespace fermata::split::threads;
using namespace fermata::split::threads::testing;

UpperServices fermata_upper;  // the core library's, elsewhere, as the next
fermata::front::Front fermata::front::front;
void fermata::front::fatal_line(const char*) noexcept { abort(); }
bool fermata::front::is_told() noexcept { return false; }
void fermata::front::read_recorded(const char*, void*, size_t*, Reading reading) noexcept {
    reading.read(reading.context);
}

namespace {

Bridge g_bridge;
thread_local int t_value;

class Posix : public ::testing::Test {
  protected:
    void SetUp() override {
        Agent::get();
        g_bridge.stop_count = stop_count();
        g_bridge.program = "/opt/app/bin/solver";
        g_bridge.process = getpid();
        fermata_upper.bridge = &g_bridge;
    }
};

int g_seen;
int* g_place;
siginfo_t g_info;
void note(int number) {
    g_seen = number;
    g_place = &t_value;
    errno = 99;
}

TEST_F(Posix, SigactionShowsTheApplicationsOwnHandler) {
    struct sigaction action = {}, old = {};
    action.sa_handler = note;
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
    EXPECT_EQ(old.sa_handler, SIG_DFL);
    ASSERT_EQ(sigaction(SIGUSR1, nullptr, &old), 0);
    EXPECT_EQ(old.sa_handler, note);
    EXPECT_EQ(old.sa_flags & ~0x04000000, SA_RESTART);
    EXPECT_EQ(sigismember(&old.sa_mask, SIGUSR2), 1);
    raise(SIGUSR1);
    EXPECT_EQ(g_seen, SIGUSR1);
    EXPECT_EQ(signal(SIGUSR1, SIG_IGN), note);
    raise(SIGUSR1);
    EXPECT_EQ(signal(SIGUSR1, SIG_DFL), SIG_IGN);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) { g_info = *info; };
    sigaction(SIGUSR1, &action, nullptr);
    sigval value;
    value.sival_int = 17;
    sigqueue(getpid(), SIGUSR1, value);
    EXPECT_EQ(g_info.si_value.sival_int, 17);
    signal(SIGUSR1, SIG_DFL);
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    action.sa_handler = note;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
    sigaction(SIGUSR1, nullptr, &old);
    EXPECT_EQ(old.sa_handler, SIG_DFL);
}

void pay_no_heed() noexcept {}

// What the batch system sends is held back, whatever the application asks for; what others send is not.
TEST_F(Posix, WarningsOfTheWardenAreHeldBack) {
    Warden warden = {getpid(), 0, 0};
    g_bridge.warden = &warden;
    g_bridge.poke_agent = pay_no_heed;
    fermata::front::posix::watch_warden();
    struct sigaction old = {};
    sigaction(SIGTERM, nullptr, &old);
    EXPECT_EQ(old.sa_handler, SIG_DFL);
    kill(getpid(), SIGTERM);  // would end this program
    EXPECT_EQ(warden.held, uint64_t{1} << (SIGTERM - 1));
    signal(SIGTERM, note);
    g_seen = 0;
    kill(getpid(), SIGTERM);
    EXPECT_EQ(g_seen, 0);
    raise(SIGTERM);  // by tgkill: not what a batch system does
    EXPECT_EQ(g_seen, SIGTERM);
    warden.held = 0;
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(warden.held, uint64_t{1} << (SIGUSR1 - 1));
    signal(SIGUSR1, note);  // the program wants it
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(g_seen, SIGUSR1);
    // One that others send ends a program that has no handler.
    signal(SIGTERM, SIG_DFL);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    g_bridge.warden = nullptr;
    signal(SIGTERM, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
}

TEST_F(Posix, TheStopSignalDoesNotExistForTheApplication) {
    EXPECT_EQ(SIGRTMAX, kStopSignal - 1);
    struct sigaction action = {};
    EXPECT_EQ(sigaction(kStopSignal, &action, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(signal(kStopSignal, SIG_IGN), SIG_ERR);
    sigset_t all, before, now;
    sigfillset(&all);
    EXPECT_EQ(sigismember(&all, kStopSignal), 0);
    sigaddset(&all, kStopSignal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_sigmask(SIG_SETMASK, &before, &now);
    EXPECT_EQ(sigismember(&now, kStopSignal), 0);
    EXPECT_EQ(sigismember(&now, SIGUSR1), 1);
}

// A handler that interrupts the lower half sees the upper half's thread-locals, and the lower half its own
// again.
TEST_F(Posix, AHandlerOverTheLowerHalfHasTheUpperThreadPointer) {
    struct sigaction action = {};
    action.sa_handler = note;
    sigaction(SIGUSR2, &action, nullptr);
    std::thread([] {
        ThreadRecord* record = known_thread();
        EXPECT_EQ(record, nullptr) << "a new thread does not inherit its parent's record";
        record = attach(read_fs());
        int* mine = &t_value;
        g_place = nullptr;
        uint64_t inside = 0, after = 0;
        bool half_kept = false;
        {
            Crossing crossing(record);
            inside = read_fs();
            raw::call(SYS_tgkill, raw::getpid(), raw::gettid(), SIGUSR2);
            after = read_fs();
            half_kept = record->half == Half::lower;
        }
        EXPECT_EQ(inside, record->lower_fs);
        EXPECT_EQ(after, inside);
        EXPECT_TRUE(half_kept);
        EXPECT_EQ(g_place, mine);
        EXPECT_EQ(record->in_mpi, 0u);
    }).join();
    signal(SIGUSR2, SIG_DFL);
}

TEST_F(Posix, RelativeWaitsKeepTheirLengthOverStops) {
    attach(read_fs());
    std::atomic<int> done{0};
    int results[4] = {-9, -9, -9, -9};
    uint64_t took[4] = {};
    auto timed = [&](int i, auto wait) {
        return std::thread([&, i, wait] {
            uint64_t start = now_ns();
            results[i] = wait();
            took[i] = now_ns() - start;
            ++done;
        });
    };
    timespec time = {0, 300'000'000};
    std::thread waits[] = {
        timed(0, [&] { return nanosleep(&time, nullptr); }),
        timed(1, [] { return usleep(300'000); }),
        timed(2, [] { return poll(nullptr, 0, 300); }),
        timed(3,
              [] {
                  int epoll = epoll_create1(EPOLL_CLOEXEC);
                  epoll_event event;
                  int result = epoll_wait(epoll, &event, 1, 300);
                  close(epoll);
                  return result;
              }),
    };
    while (done < 4) {
        EXPECT_TRUE(stop_and_resume().stopped);
        sleep_ms(20);
    }
    for (std::thread& wait : waits) wait.join();
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(results[i], 0) << i;
        EXPECT_GE(took[i], 299'000'000u) << i;
    }
}

std::atomic<int> g_rewound;
void rewind_here(int, siginfo_t*, void* frame) {
    constexpr int kNeverSampled = kMaxThreads - 1;
    g_rewound = rewind_interrupted(kNeverSampled, static_cast<ucontext_t*>(frame));
}

// As for a thread that was not in the call when it was looked at, and is when the signal comes.
TEST_F(Posix, AnInterruptedCallIsKnownByItsCode) {
    struct sigaction action = {};
    action.sa_sigaction = rewind_here;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &action, nullptr);
    for (int cancelling : {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE}) {
        g_rewound = -1;
        int result = -9;
        std::atomic<int> thread{0};
        std::thread waits([&] {
            pthread_setcancelstate(cancelling, nullptr);
            thread = gettid();
            timespec time = {0, 400'000'000};
            result = ppoll(nullptr, 0, &time, nullptr);
        });
        while (thread == 0) sleep_ms(1);
        sleep_ms(100);
        raw::call(SYS_tgkill, raw::getpid(), thread, SIGUSR2);
        waits.join();
        EXPECT_EQ(g_rewound, SYS_ppoll) << cancelling;
        EXPECT_EQ(result, 0) << cancelling;
    }
    signal(SIGUSR2, SIG_DFL);
}

TEST_F(Posix, AnApplicationsSignalStillInterruptsAWait) {
    struct sigaction action = {};
    action.sa_handler = note;
    sigaction(SIGALRM, &action, nullptr);
    itimerval soon = {{0, 0}, {0, 30'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    timespec time = {60, 0}, rest = {};
    EXPECT_EQ(nanosleep(&time, &rest), -1);
    EXPECT_EQ(errno, EINTR);
    EXPECT_GE(rest.tv_sec, 50);
    signal(SIGALRM, SIG_DFL);
}

// The kernel hands a signal of the process to the main thread when that takes it: the others sleep on, over
// stops too.
TEST_F(Posix, TheMainThreadStillGetsTheProcessesSignals) {
    static std::atomic<int> on_main, elsewhere;
    struct sigaction action = {};
    action.sa_handler = [](int) { ++(raw::gettid() == raw::getpid() ? on_main : elsewhere); };
    sigaction(SIGALRM, &action, nullptr);
    std::atomic<bool> finish{false};
    std::atomic<int> interrupted{0};
    std::thread sleeper([&] {
        while (!finish)
            if (usleep(20'000) != 0) ++interrupted;
    });
    constexpr int kRounds = 20;
    for (int round = 1; round <= kRounds; ++round) {
        EXPECT_TRUE(stop_and_resume([] { kill(getpid(), SIGALRM); }).stopped);
        while (on_main + elsewhere < round) sleep_ms(1);
    }
    finish = true;
    sleeper.join();
    // Not never: the main thread gets half a second, which a machine may be too busy to give it.
    EXPECT_LE(elsewhere, 2);
    EXPECT_LE(interrupted, 2);
    signal(SIGALRM, SIG_DFL);
}

TEST_F(Posix, TheExecutableIsTheApplication) {
    char buffer[PATH_MAX] = {};
    EXPECT_EQ(readlink("/proc/self/exe", buffer, sizeof buffer), 19);
    EXPECT_STREQ(buffer, "/opt/app/bin/solver");
    EXPECT_EQ(readlink(("/proc/" + std::to_string(getpid()) + "/exe").c_str(), buffer, 4), 4);
    EXPECT_GT(readlink("/proc/self/cwd", buffer, sizeof buffer), 0);
    g_bridge.program = "/bin/sh";
    char* resolved = realpath("/proc/self/exe", nullptr);
    char* expected = realpath("/bin/sh", nullptr);
    EXPECT_STREQ(resolved, expected);
    free(resolved);
    free(expected);
    int fd = open("/proc/self/exe", O_RDONLY);
    EXPECT_GE(fd, 0);
    close(fd);
    EXPECT_EQ(open("/proc/self/exe/no", O_RDONLY), -1);
}

uint32_t noted(const std::string& path) {
    const NotedFiles* files = fermata_upper.noted_files;
    for (uint32_t i = 0; files != nullptr && i < files->count; ++i)
        if (path == files->text + files->file[i].path) return files->file[i].how;
    return 0;
}

TEST_F(Posix, FilesThatAreWrittenAreNoted) {
    char name[] = "/tmp/fermata-noted-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    std::string folder = name, log = folder + "/log", link = folder + "/link", gone = folder + "/gone";
    close(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    EXPECT_EQ(noted(log) & (kNotedAppended | kNotedLastAppended | kNotedWritten),
              kNotedAppended | kNotedLastAppended);
    ASSERT_EQ(symlink("log", link.c_str()), 0);
    fclose(fopen(link.c_str(), "r+"));
    EXPECT_EQ(noted(log) & (kNotedLastAppended | kNotedWritten), kNotedWritten);
    EXPECT_NE(noted(link), 0u);
    close(open(log.c_str(), O_RDONLY));
    EXPECT_EQ(open((folder + "/no/file").c_str(), O_WRONLY | O_CREAT, 0600), -1);
    EXPECT_EQ(noted(folder + "/no/file"), kNotedTried);
    ASSERT_EQ(rename(log.c_str(), gone.c_str()), 0);
    EXPECT_NE(noted(gone) & kNotedWritten, 0u);
    // A child's table is nobody's; a lock that another thread held when it was forked stays closed there.
    if (pid_t child = fork(); child == 0) {
        std::string own = folder + "/childs";
        close(open(own.c_str(), O_WRONLY | O_CREAT, 0600));
        _exit(noted(own) == 0 ? 0 : 1);
    } else {
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    // Temporary files do not fill the table for good.
    for (uint32_t i = 0; i < NotedFiles::kMost + 100; ++i) {
        std::string temporary = folder + "/t" + std::to_string(i);
        close(open(temporary.c_str(), O_WRONLY | O_CREAT, 0600));
        unlink(temporary.c_str());
    }
    EXPECT_EQ(fermata_upper.noted_files->missed, 0u);
    EXPECT_LT(fermata_upper.noted_files->count, NotedFiles::kMost / 2);
    EXPECT_NE(noted(gone) & kNotedWritten, 0u);
    EXPECT_EQ(noted(log), 0u);
    unlink(gone.c_str());
    unlink(link.c_str());
    rmdir(name);
}

}  // namespace
