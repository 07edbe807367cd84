/* A walk as programs for VeloC have it: the same end however often it was stopped.
 *
 *     veloc CONFIG mem|file|parts|bad STEPS      mem, file: by memory, by files of its own;
 *     STEPS may end in k: SIGKILL there.         parts: restored size by size; bad: rank 1 cannot save
 * version 2
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <veloc.h>

enum { kMine = 5000, kEvery = 10 };
static int rank;

static void need(int code, const char* what) {
    if (code == VELOC_SUCCESS) return;
    printf("rank %d: %s failed\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void move_file(uint64_t* x, int* step, int version, int reading) {
    char original[64], routed[VELOC_MAX_NAME];
    snprintf(original, sizeof original, "walk-%d.dat", version);
    need(VELOC_Route_file(original, routed), "route");
    FILE* file = fopen(routed, reading ? "rb" : "wb");
    int good = file && (reading ? fread(x, sizeof *x, kMine, file) + fread(step, sizeof *step, 1, file)
                                : fwrite(x, sizeof *x, kMine, file) + fwrite(step, sizeof *step, 1, file)) ==
                           kMine + 1;
    if (file) good = fclose(file) == 0 && good;
    need(reading ? VELOC_Restart_end(good) : VELOC_Checkpoint_end(good), reading ? "restart_end" : "end");
}

static void restart(const char* how, uint64_t* x, int* step, int version) {
    int one = 1;
    if (strcmp(how, "file") == 0) {
        need(VELOC_Restart_begin("walk", version), "restart_begin");
        move_file(x, step, version, 1);
    } else if (strcmp(how, "parts") == 0) {
        need(VELOC_Restart_begin("walk", version), "restart_begin");
        need(VELOC_Recover_size(1) == kMine * (int)sizeof *x && VELOC_Recover_size(9) == -1 ? 0 : -1, "size");
        need(VELOC_Recover_selective(VELOC_RECOVER_SOME, &one, 1), "some");
        need(VELOC_Recover_selective(VELOC_RECOVER_REST, &one, 1), "rest");
        need(VELOC_Restart_end(1), "restart_end");
    } else {
        need(VELOC_Restart("walk", version), "restart");
    }
}

static void checkpoint(const char* how, uint64_t* x, int* step) {
    if (strcmp(how, "file") == 0) {
        need(VELOC_Checkpoint_wait(), "wait");
        need(VELOC_Checkpoint_begin("walk", *step), "begin");
        move_file(x, step, *step, 0);
    } else {
        need(VELOC_Checkpoint("walk", *step), "checkpoint");
    }
}

/* Version 1 is saved by all, version 2 by all but rank 1: then only 1 exists. */
static int bad(void) {
    int value = 1;
    need(VELOC_Mem_protect(0, &value, 1, sizeof value), "protect");
    need(VELOC_Checkpoint("bad", 1), "checkpoint");
    value = 2;
    need(VELOC_Checkpoint_begin("bad", 2), "begin");
    need(VELOC_Checkpoint_mem(), "mem");
    int code = VELOC_Checkpoint_end(rank != 1);
    int nested = VELOC_Checkpoint_mem(); /* outside of a checkpoint */
    int newest = VELOC_Restart_test("bad", 0), below = VELOC_Restart_test("bad", 1);
    need(VELOC_Restart("bad", newest), "restart");
    int none = VELOC_Restart("bad", 2), finished = VELOC_Checkpoint_finished();
    printf("rank %d: end %d, nested %d, newest %d, below %d, value %d, none %d, finished %d\n", rank, code,
           nested, newest, below, value, none, finished);
    return 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    need(VELOC_Init(MPI_COMM_WORLD, argv[1]), "init");
    int steps = atoi(argv[3]), dies = argv[3][strlen(argv[3]) - 1] == 'k', step = 0;
    if (strcmp(argv[2], "bad") == 0) {
        bad();
        steps = -1;
    }
    uint64_t* x = calloc(kMine, sizeof *x);
    for (int i = 0; i < kMine; i++) x[i] = (uint64_t)(i + rank);
    if (strcmp(argv[2], "file") != 0) {
        need(VELOC_Mem_protect(0, &step, 1, sizeof step), "protect");
        need(VELOC_Mem_protect(1, x, kMine, sizeof *x), "protect");
    }
    int version = steps < 0 ? -1 : VELOC_Restart_test("walk", 0);
    if (version > 0) restart(argv[2], x, &step, version);
    if (steps >= 0 && rank == 0) printf("from %d\n", step);
    fflush(stdout);
    for (; step < steps;) {
        for (int i = 0; i < kMine; i++) x[i] = x[i] * 6364136223846793005u + (uint64_t)step;
        step++;
        if (step % kEvery == 0) checkpoint(argv[2], x, &step);
    }
    if (dies) {
        need(VELOC_Checkpoint_wait(), "wait");
        MPI_Barrier(MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    uint64_t sum = 0, all = 0;
    for (int i = 0; i < kMine; i++) sum ^= x[i] + (uint64_t)i;
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0 && steps >= 0) printf("end %016llx\n", (unsigned long long)all);
    free(x);
    need(VELOC_Finalize(1), "finalize");
    MPI_Finalize();
    return 0;
}
