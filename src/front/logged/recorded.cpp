// Clocks are read through our vDSO, whose table leads here once the process has, or is, a copy. Only those of
// the thread that calls MPI first are told to the copy: the order in which several threads read is not the
// same twice.
#include "front/core/recorded.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "front/core/bridge.h"
#include "front/core/sys.h"
#include "front/logged/state.h"
#include "split/vdso/cpu_offsets.h"

namespace fermata::front::logged {
namespace {

FermataVdsoDoors doors;

// An answer of the kernel: 0 or an error, and the time.
struct Answer {
    long result;
    timespec time;
};

int told_clock(int clock, timespec* time) noexcept {
    Answer answer{};
    recorded("clock_gettime", &answer, sizeof answer,
             [&] { answer.result = doors.clock(clock, &answer.time); });
    if (answer.result == 0) *time = answer.time;
    return static_cast<int>(answer.result);
}
Upward of_process, of_thread;  // the thread whose clocks are told

Upward* upward(int clock) noexcept {
    const split::ThreadRecord* record = split::calling_thread();
    if (record == nullptr || record->index != 0) return nullptr;
    if (clock == CLOCK_PROCESS_CPUTIME_ID) return &of_process;
    return clock == CLOCK_THREAD_CPUTIME_ID ? &of_thread : nullptr;
}

int told_cpu_clock(int clock, timespec* time) noexcept {
    if (clock >= FERMATA_CPU_CLOCK && clock <= FERMATA_CPU_THREAD) return doors.cpu_clock(clock, time);
    constexpr int64_t kSecond = 1'000'000'000;
    Upward* const up = upward(clock);
    Answer answer{};
    recorded("clock_gettime", &answer, sizeof answer, [&] {
        answer.result = doors.cpu_clock(clock, &answer.time);
        if (up == nullptr) return;
        const int64_t ns = up->next(answer.time.tv_sec * kSecond + answer.time.tv_nsec);
        answer.time = {ns / kSecond, ns % kSecond};
    });
    if (answer.result != 0) return static_cast<int>(answer.result);
    if (up != nullptr) up->told(answer.time.tv_sec * kSecond + answer.time.tv_nsec);
    *time = answer.time;
    return 0;
}
int told_day(timeval* time, void* zone) noexcept {
    if (time == nullptr) return doors.day(time, zone);
    timeval now{};
    int result = 0;
    recorded("gettimeofday", &now, sizeof now, [&] { result = doors.day(&now, zone); });
    if (result == 0) *time = now;
    return result;
}
time_t told_second(time_t* time) noexcept {
    time_t now = 0;
    recorded("time", &now, sizeof now, [&] {
        timespec clock{};
        doors.clock(CLOCK_REALTIME_COARSE, &clock);
        now = clock.tv_sec;
    });
    if (time != nullptr) *time = now;
    return now;
}

template <typename Function>
uint64_t word(Function* function) noexcept {
    return reinterpret_cast<uint64_t>(function);
}

}  // namespace

// At any clock from now on: the agent calls this while all threads stand, and none of them in a clock.
void listen_to_clocks() noexcept {
    doors = bridge()->vdso();
    if (doors.table == nullptr || doors.day == nullptr) return;
    doors.table->listens = 1;
    doors.table->cpu_clock = word(told_cpu_clock);
    doors.table->now[FERMATA_VDSO_CLOCK_GETTIME] = word(told_clock);
    doors.table->now[FERMATA_VDSO_GETTIMEOFDAY] = word(told_day);
    doors.table->now[FERMATA_VDSO_TIME] = word(told_second);
}

}  // namespace fermata::front::logged

namespace fermata::front {

using namespace logged;

bool is_told() noexcept {
    const split::ThreadRecord* record = split::calling_thread();
    if (record == nullptr || record->index != 0 || record->in_mpi != 0) return false;
    if (is_live() && !machine().stream().has_copy()) return false;
    return sys(SYS_getpid) == bridge()->process;  // not in a child of the program's own
}

void read_recorded(const char* what, void* value, size_t* size, Reading reading) noexcept {
    const size_t room = *size;
    if (!is_told()) return reading.read(reading.context);
    Call call(what);
    machine().enter();
    const auto* bytes = static_cast<const uint8_t*>(value);
    const replay::Outcome outcome =
        resolve(call, replay::CallKind::value, nullptr, 0, [&]() -> std::optional<replay::Outcome> {
            reading.read(reading.context);
            replay::Outcome read{.kind = replay::CallKind::value};
            read.value.assign(bytes, bytes + *size);
            return read;
        });
    *size = outcome.value.size() < room ? outcome.value.size() : room;
    __builtin_memcpy(value, outcome.value.data(), *size);
}

}  // namespace fermata::front
