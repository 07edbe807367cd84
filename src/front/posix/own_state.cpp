// The two functions by which libfermata, when a program that is a rank of `fermata run` uses it, speaks with
// the job. The library finds them by name (src/api/in_job.cpp); their names carry a version, since both may
// come from different builds.
#include "split/own_state.h"

#include <cstddef>

#include "front/core/bridge.h"
#include "front/posix/own_state.h"

namespace fermata::front::posix {
namespace {

split::OwnState words;

// Several communicators may each have a rank 0 here, in threads of their own.
uint32_t begin_to_write() noexcept {
    for (;;) {
        uint32_t said = words.said;
        if ((said & 1) == 0 && __atomic_compare_exchange_n(&words.said, &said, said + 1, false,
                                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return said + 1;
        __builtin_ia32_pause();
    }
}

void end_writing(uint32_t said) noexcept {
    __atomic_store_n(&words.said, said + 1, __ATOMIC_RELEASE);
    bridge()->poke_agent();
}

}  // namespace

split::OwnState* own_state() noexcept { return &words; }

// After a restart: forgets requests of the job, and the saves of the life before.
void own_state_restarted() noexcept {
    words.asked = 0;
    words.exit = 0;
    words.captured = 0;
    words.saves = words.failures = 0;
    words.answers = 0;
}

}  // namespace fermata::front::posix

using namespace fermata::front::posix;

// The number of the newest wish for a save, 0 = none; *exit = 1: the program shall end then. *life: changes
// when a restart has put this process back; *captured: when a checkpoint has captured it.
extern "C" uint64_t fermata_job_asks_1(int* exit, uint64_t* life, uint32_t* captured) {
    *exit = words.exit != 0 ? 1 : 0;
    *captured = words.captured;
    *life = fermata::front::front.restarts;
    return __atomic_load_n(&words.asked, __ATOMIC_ACQUIRE);
}

// Tells the job one of these: 1 libfermata is used; 2 there is a generation that a new start would restore; 3
// the program has saved itself, to the wish `answers`, `life` and `captured` being what they were when the
// save began; 4 and could not, `text` says why.
extern "C" void fermata_job_hears_1(int what, uint64_t answers, uint64_t life, uint32_t captured,
                                    uint32_t generation, int64_t step, const char* text) {
    const uint32_t said = begin_to_write();
    if (what == 2 || what == 3) words.exists = 1;
    if (what == 3) {
        words.saves = words.saves + 1;
        // A restart puts back what was saved before it as well: that is older than the restart.
        words.began = life == fermata::front::front.restarts ? captured + 1 : 0;
    }
    if (what == 4) words.failures = words.failures + 1;
    if (what >= 3) words.answers = answers;
    if (what == 2 || what == 3) {
        words.generation = generation;
        words.step = step;
    }
    size_t n = 0;
    for (; text[n] != 0 && n + 1 < sizeof words.text; n++) words.text[n] = text[n];
    words.text[n] = 0;
    end_writing(said);
}
