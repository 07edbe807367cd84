/* Preloaded into ranks by api_crash_test.py: kills its process by SIGKILL at a drawn moment of libfermata's
 * life.
 *
 * API_KILL="RANK[+RANK…] PHASE COUNT MICROSECONDS": ranks of MPI_COMM_WORLD; the moment is so many
 * microseconds after save      the COUNT-th fermata_save() has begun staged    it has returned durable   the
 * fermata_wait() behind it, which is called here, has returned restore   fermata_restore() has begun
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct fermata_handle fermata_handle;

static struct {
    int mine; /* this rank dies */
    char phase[16];
    int count;
    long microseconds;
} plan;

__attribute__((constructor)) static void read_plan(void) {
    const char* words = getenv("API_KILL");
    const char* rank = getenv("PMI_RANK");
    char ranks[64];
    if (!rank) rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!words || !rank ||
        sscanf(words, "%63s %15s %d %ld", ranks, plan.phase, &plan.count, &plan.microseconds) != 4)
        return;
    for (char* one = strtok(ranks, "+"); one; one = strtok(NULL, "+"))
        if (strcmp(one, rank) == 0) plan.mine = 1;
}

static void* kill_later(void* nothing) {
    const struct timespec wait = {plan.microseconds / 1000000, plan.microseconds % 1000000 * 1000};
    nanosleep(&wait, NULL);
    kill(getpid(), SIGKILL);
    return nothing;
}

static void arm(void) {
    pthread_t thread;
    if (!plan.mine) return;
    if (plan.microseconds == 0 || pthread_create(&thread, NULL, kill_later, NULL) != 0)
        kill(getpid(), SIGKILL);
}

static int is(const char* phase) { return strcmp(plan.phase, phase) == 0; }

int fermata_save(fermata_handle* handle, int64_t step) {
    static int saves;
    int (*save)(fermata_handle*, int64_t) =
        (int (*)(fermata_handle*, int64_t))dlsym(RTLD_NEXT, "fermata_save");
    int (*wait)(fermata_handle*) = (int (*)(fermata_handle*))dlsym(RTLD_NEXT, "fermata_wait");
    const int now = ++saves == plan.count;
    if (now && is("save")) arm();
    int code = save(handle, step);
    if (now && is("staged")) arm();
    if (now && is("durable")) {
        if (code == 0) code = wait(handle);
        arm();
    }
    return code;
}

int fermata_restore(fermata_handle* handle, int64_t* step) {
    int (*restore)(fermata_handle*, int64_t*) =
        (int (*)(fermata_handle*, int64_t*))dlsym(RTLD_NEXT, "fermata_restore");
    if (is("restore")) arm();
    return restore(handle, step);
}
