// Records, donors, the gate; stopping threads in every state; continuing them in another process.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "agent_fixture.h"
#include "split/address/maps.h"
#include "split/threads/interrupted.h"
#include "split/threads/lazy_binding.h"
#include "split/threads/mutexes.h"
#include "split/threads/rseq.h"
#include "split/threads/xstate.h"

using fermata::Range;
using namespace fermata::split;
using namespace fermata::split::threads;
using namespace fermata::split::threads::testing;

namespace {

void find_held_mutexes(const std::vector<Range>& unchanged) {
    std::vector<MutexArea> areas;
    for (const Mapping& m : read_maps())
        if ((m.prot & PROT_READ) && (m.prot & PROT_WRITE) && !m.name.starts_with("[v"))
            areas.push_back({m.range, m.shared, false});
    MutexSearch search(areas, unchanged);
    search.in_shared_memory();
    search.in_own_memory();
}

thread_local int t_where;  // differs between a thread and its donor

ThreadRecord* own() {
    ThreadRecord* record = known_thread();
    return record != nullptr ? record : attach(read_fs());
}

__attribute__((noinline)) int* address_of_thread_local() {
    asm volatile("");
    return &t_where;
}

// In the lower half: reads the thread-local there.
__attribute__((noinline)) int* cross(ThreadRecord* record) {
    Crossing crossing(record);
    return address_of_thread_local();
}

// Runs upper threads; each test makes its own.
struct Upper {
    template <class F>
    explicit Upper(F body)
        : thread([this, body] {
              write_gs(0);
              body();
              done.store(true);
          }) {}
    ~Upper() { thread.join(); }
    std::atomic<bool> done{false};
    std::thread thread;
};

class Threads : public ::testing::Test {
  protected:
    void SetUp() override { Agent::get(); }
};

TEST_F(Threads, MainHasRecordZeroAndCrossesWithItsOwnPointer) {
    ThreadRecord* record = own();
    EXPECT_EQ(record->index, kMainIndex);
    EXPECT_EQ(record->tid, getpid());
    EXPECT_EQ(known_thread(), record);
    EXPECT_EQ(cross(record), &t_where);
    EXPECT_TRUE(record->half == Half::upper);
}

TEST_F(Threads, ADonorServesAThreadAndServesAgain) {
    int before = donor_count();
    int* first = nullptr;
    for (int round = 0; round < 3; ++round) {
        std::atomic<int> tid{0};
        Upper upper([&] {
            tid = gettid();
            ThreadRecord* record = own();
            EXPECT_NE(record->index, kMainIndex);
            EXPECT_EQ(known_thread(), record);
            t_where = 7;
            int* lower = cross(record);
            EXPECT_NE(lower, &t_where);
            if (first == nullptr) first = lower;
            EXPECT_EQ(lower, first) << "the donor of an ended thread serves the next";
            EXPECT_EQ(read_fs(), record->upper_fs);
        });
        while (!upper.done) sleep_ms(1);
        upper.thread.join();
        upper.thread = std::thread([] {});
        // The kernel wakes a joiner before the thread has quite gone.
        while (raw::call(SYS_tgkill, getpid(), tid, 0) == 0) sleep_ms(1);
    }
    EXPECT_EQ(donor_count(), before + 1);
}

TEST_F(Threads, ManyThreadsAttachAtOnceAndGetDifferentDonors) {
    constexpr int kCount = 8;
    std::array<int*, kCount> place = {};
    std::atomic<int> ready{0};
    {
        std::vector<std::unique_ptr<Upper>> all;
        for (int i = 0; i < kCount; ++i)
            all.push_back(std::make_unique<Upper>([&, i] {
                ThreadRecord* record = own();
                place[static_cast<size_t>(i)] = cross(record);
                for (int n = 0; n < 1000; ++n) EXPECT_EQ(cross(record), place[static_cast<size_t>(i)]);
                ++ready;
                while (ready < kCount) sleep_ms(1);
            }));
    }
    std::sort(place.begin(), place.end());
    EXPECT_EQ(std::unique(place.begin(), place.end()), place.end());
}

TEST_F(Threads, AChildOfACrossedThreadIsNotTakenForItsParent) {
    Upper upper([&] {
        ThreadRecord* parent = own();
        ThreadRecord* seen = parent;
        // No write_gs(0) here: the child inherits the parent's GS base, as after a raw clone.
        std::thread child([&] { seen = known_thread(); });
        child.join();
        EXPECT_EQ(seen, nullptr);
    });
}

TEST_F(Threads, StopsThreadsInEveryStateAndNoneNotices) {
    std::atomic<bool> finish{false};
    std::atomic<uint64_t> counted{0};
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    sem_t never;
    sem_init(&never, 0, 0);
    std::atomic<int> up{0};
    int slept = -1, polled = -1, selected = -1;
    long got = -1;
    uint64_t sleep_took = 0;
    {
        Upper computing([&] {
            ++up;
            while (!finish) ++counted;
        });
        Upper sleeping([&] {
            ++up;
            timespec time = {0, 400'000'000};
            uint64_t start = now_ns();
            slept = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time);
            sleep_took = now_ns() - start;
        });
        Upper waiting([&] {
            ++up;
            while (sem_wait(&never) != 0) ADD_FAILURE() << "sem_wait: " << errno;
        });
        Upper reading([&] {
            own();
            ++up;
            char byte = 0;
            got = read(ends[0], &byte, 1);
            EXPECT_EQ(byte, 'x');
        });
        Upper polling([&] {
            ++up;
            timespec time = {0, 400'000'000};
            polled = ppoll(nullptr, 0, &time, nullptr);
        });
        Upper selecting([&] {
            ++up;
            timeval time = {0, 400'000};
            selected = select(0, nullptr, nullptr, nullptr, &time);
        });
        while (up < 6) sleep_ms(1);
        sleep_ms(20);
        for (int round = 0; round < 5; ++round) {
            uint64_t in_stop = 0, at_end = 1;
            StopReport report = stop_and_resume([&] {
                in_stop = counted;
                sleep_ms(2);
                at_end = counted;
            });
            EXPECT_TRUE(report.stopped);
            EXPECT_GE(report.threads, 4);  // those with a timeout may be over on a slow machine
            EXPECT_EQ(in_stop, at_end) << "a stopped thread went on";
            while (counted == at_end) sleep_ms(1);
        }
        finish = true;
        EXPECT_EQ(write(ends[1], "x", 1), 1);
        sem_post(&never);
    }
    EXPECT_EQ(got, 1);
    EXPECT_EQ(slept, 0) << "nanosleep was cut short";
    EXPECT_GE(sleep_took, 400'000'000u);
    EXPECT_LT(sleep_took, 20'000'000'000u);
    EXPECT_EQ(polled, 0);
    EXPECT_EQ(selected, 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_F(Threads, AnApplicationsSignalDuringTheStopStillInterrupts) {
    struct sigaction action = {};
    static std::atomic<int> handled;
    handled = 0;
    action.sa_handler = [](int) { ++handled; };
    sigaction(SIGUSR1, &action, nullptr);
    std::atomic<int> tid{0};
    int result = 0, error = 0;
    {
        Upper pausing([&] {
            tid = gettid();
            result = pause();
            error = errno;
        });
        while (tid == 0) sleep_ms(1);
        wait_until_blocked(tid, SYS_pause);
        EXPECT_TRUE(stop_and_resume().stopped);
        EXPECT_FALSE(pausing.done);
        wait_until_blocked(tid, SYS_pause);
        EXPECT_EQ(handled, 0);
        // While it is captured: the signal is pending when it goes on, and pause must not wait for another.
        EXPECT_TRUE(stop_and_resume([&] { raw::call(SYS_tgkill, getpid(), tid, SIGUSR1); }).stopped);
    }
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(result, -1);
    EXPECT_EQ(error, EINTR);
}

TEST_F(Threads, AThreadInsideMpiIsToldAndStopsAtItsStopPoint) {
    std::atomic<bool> inside{false}, leave{false}, passed{false}, finish{false};
    Upper upper([&] {
        ThreadRecord* record = own();
        record->in_mpi = 1;
        record->waiting_in = "MPI_Recv";
        record->waiting_for = 3;
        inside = true;
        while (!leave) sleep_ms(1);  // told, must not be captured here
        bool told = record->stop != 0;
        record->in_mpi = 0;
        record->waiting_in = nullptr;
        fermata_stop_point();
        EXPECT_TRUE(told);
        passed = true;
        while (!finish) sleep_ms(1);
    });
    while (!inside) sleep_ms(1);
    StopReport report = stop_and_resume({}, 50);
    EXPECT_FALSE(report.stopped);
    ASSERT_EQ(report.missing.size(), 1u);
    EXPECT_NE(report.missing[0].where.find(" in MPI_Recv, waiting for rank 3"), std::string::npos);
    Agent::get().run([&] {
        ask_all_to_stop();
        leave = true;
        EXPECT_TRUE(stop_all(now_ns() + 20'000'000'000).stopped);
        EXPECT_FALSE(passed);
        resume_all();
    });
    while (!passed) sleep_ms(1);
    finish = true;
}

TEST_F(Threads, StopPointReturnsAtOnceWhenNothingIsAsked) {
    for (int i = 0; i < 1000; ++i) fermata_stop_point();
}

TEST_F(Threads, ThreadsMadeAndEndedWhileStoppingAreNotForgotten) {
    std::atomic<bool> finish{false};
    Upper maker([&] {
        while (!finish) std::thread([] { sleep_ms(1); }).join();
    });
    for (int round = 0; round < 20; ++round) {
        StopReport report = stop_and_resume([] {
            std::vector<int> first = present_threads();
            sleep_ms(3);
            EXPECT_EQ(first, present_threads());
        });
        EXPECT_TRUE(report.stopped);
    }
    finish = true;
}

TEST_F(Threads, WhoBlocksEverySignalIsStoppedAndBlocksItAgain) {
    std::atomic<int> phase{0};
    raw::SignalSet before = 0, after = 0;
    Upper deaf([&] {
        raw::set_signal_mask(raw::kAllSignals);
        before = raw::set_signal_mask(raw::kAllSignals);
        phase = 1;
        while (phase < 2) sleep_ms(1);
        after = raw::set_signal_mask(raw::kAllSignals);
        phase = 3;
    });
    while (phase < 1) sleep_ms(1);
    for (int round = 0; round < 3; ++round) EXPECT_TRUE(stop_and_resume({}, 20'000).stopped);
    phase = 2;
    while (phase < 3) sleep_ms(1);
    EXPECT_EQ(before, after);
    EXPECT_NE(before & raw::signal_bit(kStopSignal), 0u);
}

TEST_F(Threads, WhoBlocksEverySignalAndCannotBeTracedIsNamed) {
    std::atomic<int> phase{0}, tid{0};
    Upper deaf([&] {
        prctl(PR_SET_NAME, "deaf");
        raw::set_signal_mask(raw::kAllSignals);
        tid = gettid();
        phase = 1;
        while (phase < 2) sleep_ms(1);
    });
    while (phase < 1) sleep_ms(1);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    pid_t debugger = fork();
    if (debugger == 0) {
        char traced = ptrace(PTRACE_SEIZE, tid.load(), 0, 0) == 0;
        _exit(write(ready[1], &traced, 1) == 1 ? pause() : 1);
    }
    char traced = 0;
    ASSERT_EQ(read(ready[0], &traced, 1), 1);
    ASSERT_EQ(traced, 1);
    StopReport report = stop_and_resume({}, 400);
    EXPECT_FALSE(report.stopped);
    ASSERT_EQ(report.missing.size(), 1u);
    const std::string& where = report.missing[0].where;
    EXPECT_NE(where.find("(deaf) blocks signal 64, and tracing it failed"), std::string::npos) << where;
    EXPECT_NE(where.find(", state "), std::string::npos) << where;
    kill(debugger, SIGKILL);
    waitpid(debugger, nullptr, 0);
    EXPECT_TRUE(stop_and_resume({}, 20'000).stopped);
    phase = 2;
}

// As Go's run time takes all signals.
TEST_F(Threads, AHandlerByTheRawCallIsPutAsideAndComesBack) {
    std::atomic<bool> finish{false};
    Upper upper([&] {
        while (!finish) sleep_ms(1);
    });
    raw::KernelSigaction ours = {}, theirs = {}, after = {};
    raw::call(SYS_rt_sigaction, kStopSignal, 0, raw::word(&ours), 8);
    theirs = ours;
    theirs.handler = reinterpret_cast<uint64_t>(+[](int) {});
    theirs.mask = raw::signal_bit(SIGUSR1);
    raw::call(SYS_rt_sigaction, kStopSignal, raw::word(&theirs), 0, 8);
    EXPECT_TRUE(stop_and_resume({}, 20'000).stopped);
    raw::call(SYS_rt_sigaction, kStopSignal, 0, raw::word(&after), 8);
    EXPECT_EQ(after.handler, theirs.handler);
    EXPECT_EQ(after.mask, theirs.mask);
    raw::call(SYS_rt_sigaction, kStopSignal, raw::word(&ours), 0, 8);
    finish = true;
}

TEST_F(Threads, HelperThreadsOfLibcThatBlockEverythingAreStoppedToo) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = [](sigval) {};
    timer_t timer;
    ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    raw::KernelSigaction before = {}, during = {}, after = {};
    raw::call(SYS_rt_sigaction, 33, 0, raw::word(&before), 8);
    StopReport report =
        stop_and_resume([&] { raw::call(SYS_rt_sigaction, 33, 0, raw::word(&during), 8); }, 20'000);
    EXPECT_TRUE(report.stopped);
    EXPECT_GE(report.threads, 2);
    raw::call(SYS_rt_sigaction, 33, 0, raw::word(&after), 8);
    EXPECT_EQ(before.handler, during.handler);
    EXPECT_EQ(before.handler, after.handler);
    timer_delete(timer);
}

TEST_F(Threads, FindsTheRegistrationsOfThreads) {
    std::atomic<int> phase{0};
    std::atomic<int> tid{0};
    Upper upper([&] {
        own();
        tid = gettid();
        phase = 1;
        while (phase < 2) sleep_ms(1);
    });
    while (phase < 1) sleep_ms(1);
    StopReport report = stop_and_resume([&] {
        EXPECT_TRUE(describe_stopped_threads().empty());
        find_held_mutexes({});
        ThreadRecord* record = find_record(tid);
        ASSERT_NE(record, nullptr);
        EXPECT_EQ(*reinterpret_cast<int*>(record->upper_fs + static_cast<uint64_t>(table()->tid_offset)),
                  tid);
        EXPECT_NE(record->robust_list, 0u);
        EXPECT_NE(record->clear_tid, 0u);
        if (__rseq_size > 0) {
            EXPECT_EQ(record->rseq, record->upper_fs + static_cast<uint64_t>(__rseq_offset));
        }
        EXPECT_NE(read_frame(static_cast<ucontext_t*>(record->context)).size, 0u);
    });
    EXPECT_TRUE(report.stopped);
    phase = 2;
}

TEST_F(Threads, FramesOfAnotherCpuAreFittedOrRefused) {
    alignas(64) unsigned char area[4096] = {};
    ucontext_t frame = {};
    frame.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(area);
    auto* word = reinterpret_cast<uint32_t*>(area + 464);
    word[0] = 0x46505853;                                 // magic1
    word[1] = 2696 + 4;                                   // extended_size
    *reinterpret_cast<uint64_t*>(area + 464 + 8) = 0xe7;  // xfeatures: x87 SSE AVX AVX-512
    word[4] = 2696;                                       // xstate_size
    XstateLayout was = {}, now = {};
    was.features = 0xe7;
    was.size = 2696;
    was.component[2] = now.component[2] = {576, 256};
    was.component[5] = {1088, 64};
    was.component[6] = {1152, 512};
    was.component[7] = {1664, 1024};
    now.features = 7;
    now.size = 832;
    *reinterpret_cast<uint64_t*>(area + 512) = 7;  // only AVX in use
    EXPECT_EQ(fit_frame(&frame, was, now), "");
    EXPECT_EQ(read_frame(&frame).size, 832u);
    EXPECT_EQ(read_frame(&frame).features, 7u);
    EXPECT_EQ(*reinterpret_cast<uint32_t*>(area + 832), 0x46505845u);
    *reinterpret_cast<uint64_t*>(area + 464 + 8) = 0xe7;
    *reinterpret_cast<uint64_t*>(area + 512) = 0x27;
    EXPECT_NE(fit_frame(&frame, was, now).find("AVX-512"), std::string::npos);
}

TEST_F(Threads, LazyBindingGetsRoomForTheRegistersOfAnotherCpu) {
    XstateLayout small = {}, large = {};
    small.features = 7;
    large.features = 0xe7;
    small.component[2] = large.component[2] = {576, 256};
    large.component[5] = {1088, 64};
    large.component[6] = {1152, 512};
    large.component[7] = {1664, 1024};
    constexpr uint64_t kArguments = 0xee;
    EXPECT_EQ(larger_register_area(small, large, kArguments), 2752u);
    EXPECT_EQ(larger_register_area(small, large, 6), 0u);
    EXPECT_EQ(larger_register_area(large, small, kArguments), 0u);
    EXPECT_EQ(larger_register_area(large, large, kArguments), 0u);

    std::vector<LazyBinding> bindings;
    for (const Mapping& map : read_maps())
        if ((map.prot & PROT_EXEC) && map.name.find("/ld-linux") != std::string::npos)
            bindings = lazy_bindings(map.range);
    ASSERT_GE(bindings.size(), 2u);  // one for xsave, one for xsavec
    for (const LazyBinding& binding : bindings) {
        // glibc 2.40 has two more, for descriptors of thread-locals, which save x87 registers as well.
        EXPECT_EQ(binding.size_at == bindings[0].size_at, (binding.saved & 1) == 0);
        EXPECT_EQ(binding.saved & kArguments, kArguments);
        EXPECT_FALSE(binding.taken.empty());
    }
    auto* size = reinterpret_cast<volatile uint64_t*>(bindings[0].size_at);
    uint64_t before = *size;
    ASSERT_GE(before, 640u);
    EXPECT_EQ(enlarge_register_area(bindings[0], before - 64), "");
    EXPECT_EQ(*size, before);
    EXPECT_EQ(enlarge_register_area(bindings[0], before + 4096), "");
    EXPECT_EQ(*size, before + 4096);
    for (const Mapping& map : read_maps())
        if (map.range.contains(bindings[0].size_at)) {
            EXPECT_EQ(map.prot, PROT_READ);
        }
    LazyBinding wrong = {{}, reinterpret_cast<uint64_t>(&before), kArguments};
    before = 100;
    EXPECT_NE(enlarge_register_area(wrong, 4096), "");
    EXPECT_EQ(before, 100u);
}

// The whole way: stop, "save" (fork copies the memory, not the threads), and restart in the child: its only
// kernel thread is the agent's copy, which plays the lower main thread and ends up as the application's main
// thread.
TEST_F(Threads, ThreadsContinueInAnotherProcess) {
    static std::atomic<int> sum;
    static std::atomic<bool> go;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    static thread_local int mine;
    static pthread_mutex_t held[5];
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    for (int i = 1; i <= 4; ++i) {
        pthread_mutexattr_settype(&kind, i % 2 != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK);
        pthread_mutexattr_setrobust(&kind, i == 4 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        pthread_mutexattr_setprotocol(&kind, i == 3 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutex_init(&held[i], &kind);
    }
    sum = 0;
    go = false;
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    std::atomic<int> up{0};
    auto body = [&](int number) {
        mine = number;
        if (number % 2 == 0) own();
        ThreadRecord* attached = known_thread();
        double in_register = number * 1.5;
        asm volatile("" : "+x"(in_register));
        pthread_setname_np(pthread_self(), ("worker" + std::to_string(number)).c_str());
        pthread_mutex_lock(&held[number]);  // knows its owner by the kernel's id, which changes
        ++up;
        pthread_mutex_lock(&lock);
        while (!go) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        char name[16];
        pthread_getname_np(pthread_self(), name, sizeof name);
        bool good = mine == number && known_thread() == attached && in_register == number * 1.5 &&
                    name == "worker" + std::to_string(number) && pthread_kill(pthread_self(), 0) == 0;
        if (attached != nullptr) good = good && cross(attached) != &t_where && attached->tid == gettid();
        if (number % 2 != 0)
            good = good && pthread_mutex_lock(&held[number]) == 0 && pthread_mutex_unlock(&held[number]) == 0;
        good = good && pthread_mutex_unlock(&held[number]) == 0;
        unsigned cpu = 0;
        good = good && getcpu(&cpu, nullptr) == 0 && sched_getcpu() >= 0;
        if (good) sum += number;
    };
    std::vector<std::thread> workers;
    for (int i = 1; i <= 4; ++i)
        workers.emplace_back([&, i] {
            write_gs(0);
            body(i);
        });
    std::atomic<bool> computing_ends{false};
    std::atomic<uint64_t> steps{0};
    workers.emplace_back([&] {
        write_gs(0);
        ++up;
        double result = 0;
        while (!computing_ends) {
            result += 1;
            ++steps;
        }
        sum += result == static_cast<double>(steps) ? 100 : 0;
    });
    while (up < 5) sleep_ms(1);
    sleep_ms(20);
    pid_t parent = getpid();
    pid_t child = 0;
    ThreadRecord* main_record = own();
    StopReport stopped = stop_and_resume([&] {
        describe_stopped_threads();
        find_held_mutexes({});
        // What nobody has written since is believed, as far as it still looks like that.
        uint32_t held = table()->held_count;
        EXPECT_GE(held, 4u);
        find_held_mutexes({{0, uint64_t{1} << 47}});
        EXPECT_EQ(table()->held_count, held);
        // Not fork(): glibc would forget its other threads in the child.
        child = static_cast<pid_t>(raw::call(SYS_fork));
        if (child != 0) return;
        // "Another process": nothing of the kernel's threads is left.
        alarm(20);
        Agent::get().abandon_work();
        if (!adopt_table(table()).empty()) _exit(90);
        install_stop_handler();
        if (!fit_frames_to_cpu().empty()) _exit(91);
        RestoreReport made = restore_threads();
        if (!made.error.empty() || made.threads < 5) _exit(92);
        resume_all();
        continue_main();
    });
    EXPECT_TRUE(stopped.stopped);
    // Both processes come here, each on its main thread.
    bool restarted = getpid() != parent;
    if (restarted && (known_thread() != main_record || main_record->tid != getpid())) _exit(93);
    pthread_mutex_lock(&lock);
    go = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    computing_ends = true;
    for (std::thread& worker : workers) worker.join();
    if (restarted) {
        // New threads can be made and joined, too.
        std::thread([] { ++sum; }).join();
        _exit(sum == 1 + 2 + 3 + 4 + 100 + 1 ? 42 : 94);
    }
    EXPECT_EQ(sum, 110);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 42);
    close(report[0]);
    close(report[1]);
}

TEST(Interrupted, OnlyExactCallsAreIssuedAgain) {
    greg_t registers[NGREG] = {};
    timespec time = {1, 0}, rest = {};
    auto set = [&](long a, long b, long c, long d) {
        registers[REG_RDI] = a;
        registers[REG_RSI] = b;
        registers[REG_RDX] = c;
        registers[REG_R10] = d;
        registers[REG_R8] = 0;
    };
    set(raw::word(&time), raw::word(&time), 0, 0);
    EXPECT_TRUE(may_issue_again(SYS_nanosleep, registers));
    set(raw::word(&time), raw::word(&rest), 0, 0);
    EXPECT_FALSE(may_issue_again(SYS_nanosleep, registers));
    set(CLOCK_MONOTONIC, TIMER_ABSTIME, raw::word(&time), 0);
    EXPECT_TRUE(may_issue_again(SYS_clock_nanosleep, registers));
    set(0, 0, 500, 0);
    EXPECT_FALSE(may_issue_again(SYS_poll, registers));
    set(0, 0, -1, 0);
    EXPECT_TRUE(may_issue_again(SYS_poll, registers));
    set(3, 0, 1, 500);
    EXPECT_FALSE(may_issue_again(SYS_epoll_wait, registers));
    set(3, 0, 1, -1);
    EXPECT_TRUE(may_issue_again(SYS_epoll_wait, registers));
    EXPECT_FALSE(may_issue_again(SYS_write, registers));
}

}  // namespace
