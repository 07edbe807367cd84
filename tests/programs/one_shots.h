/* Two timers that go off once, of the process and of a thread of libc's: each is set again by its own signal,
 * so that a single one that is lost ends them. */
#ifndef FERMATA_TESTS_ONE_SHOTS_H
#define FERMATA_TESTS_ONE_SHOTS_H
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { ONE_SHOT_SIGNAL = 5, ONE_SHOT_VALUE = 17 }; /* SIGRTMIN + 5 */
static timer_t one_shot[2];
static volatile int one_shot_ticks[2];
static const struct itimerspec one_shot_soon = {{0, 0}, {0, 2000000}};

static void one_shot_in_handler(int number) {
    (void)number;
    ++one_shot_ticks[0];
    timer_settime(one_shot[0], 0, &one_shot_soon, NULL);
}
static void one_shot_in_thread(union sigval value) {
    one_shot_ticks[1] += value.sival_int == ONE_SHOT_VALUE;
    timer_settime(one_shot[1], 0, &one_shot_soon, NULL);
}
static void set_one_shots(void) {
    struct sigaction action = {.sa_handler = one_shot_in_handler, .sa_flags = SA_RESTART};
    struct sigevent signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + ONE_SHOT_SIGNAL};
    struct sigevent thread = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = one_shot_in_thread};
    thread.sigev_value.sival_int = ONE_SHOT_VALUE;
    sigaction(SIGRTMIN + ONE_SHOT_SIGNAL, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &signal, &one_shot[0]);
    timer_create(CLOCK_MONOTONIC, &thread, &one_shot[1]);
    for (int which = 0; which < 2; ++which) timer_settime(one_shot[which], 0, &one_shot_soon, NULL);
}
/* Three more within three seconds. */
static int one_shot_goes_on(int which) {
    int before = one_shot_ticks[which];
    for (int i = 0; i < 3000 && one_shot_ticks[which] < before + 3; ++i) usleep(1000);
    return one_shot_ticks[which] >= before + 3;
}
#endif
