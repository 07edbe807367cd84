/* For bench/every_iteration.py: relaxes a field and has a checkpoint taken after every iteration but the
 * last.
 *
 *   iterations WAY MIB ITERATIONS [recover]
 *
 * MIB of floating-point data per rank. WAY: `none`; `outside`, by whoever makes the file go-K once it has
 * been done; `collective`, by MPI_File_write_at_all into one file; `files`, a file per rank. The latter two
 * write to state-0 and state-1 in turns, and `recover` goes on from the newest. Rank 0 says:
 *   ready K TIME    before the checkpoint
 *   at K TIME       after it
 *   done SECONDS HASH */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { outside, collective, files, none };
static const char* const ways[] = {"outside", "collective", "files", "none"};
enum { step = 4 << 20 };
static int rank, ranks, way;
static double* field; /* the first number: iterations done */
static size_t count;

static void must(int good, const char* what) {
    if (good) return;
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void say(const char* what, int k) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%s %d %.4f\n", what, k, now()), fflush(stdout);
}

static char* name_of(int k) {
    static char name[64];
    snprintf(name, sizeof name, way == files ? "state-%d-%d" : "state-%d", k % 2, rank);
    return name;
}

static void save(int k) {
    if (way == outside) {
        char go[64];
        snprintf(go, sizeof go, "go-%d", k);
        /* Every rank by itself: one that waited in a collective for the others could not be saved there. */
        while (access(go, F_OK) != 0) usleep(1000);
        return;
    }
    if (way == none) return;
    char* name = name_of(k);
    if (way == files || rank == 0) unlink(name); /* new files, as generations are */
    MPI_Barrier(MPI_COMM_WORLD);
    if (way == files) {
        int fd = open(name, O_WRONLY | O_CREAT | O_DIRECT, 0600);
        if (fd < 0) fd = open(name, O_WRONLY | O_CREAT, 0600);
        must(fd >= 0, name);
        for (size_t at = 0; at < count * 8; at += step)
            must(pwrite(fd, (char*)field + at, step, (off_t)at) == step, name);
        must(fsync(fd) == 0, name);
        close(fd);
        return;
    }
    MPI_File file;
    must(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
             MPI_SUCCESS,
         name);
    must(MPI_File_write_at_all(file, (MPI_Offset)(count * 8) * rank, field, (int)count, MPI_DOUBLE,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS,
         name);
    must(MPI_File_sync(file) == MPI_SUCCESS && MPI_File_close(&file) == MPI_SUCCESS, name);
}

static void recover(int k) {
    char* name = name_of(k);
    if (way == files) {
        int fd = open(name, O_RDONLY);
        must(fd >= 0, name);
        for (size_t at = 0; at < count * 8; at += step)
            must(pread(fd, (char*)field + at, step, (off_t)at) == step, name);
        close(fd);
        return;
    }
    MPI_File file;
    must(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS, name);
    must(MPI_File_read_at_all(file, (MPI_Offset)(count * 8) * rank, field, (int)count, MPI_DOUBLE,
                              MPI_STATUS_IGNORE) == MPI_SUCCESS,
         name);
    MPI_File_close(&file);
}

static void relax(void) {
    double left = 0, right = 0;
    int before = rank ? rank - 1 : MPI_PROC_NULL, after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&field[count - 1], 1, MPI_DOUBLE, after, 1, &left, 1, MPI_DOUBLE, before, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&field[1], 1, MPI_DOUBLE, before, 2, &right, 1, MPI_DOUBLE, after, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int sweep = 0; sweep < 8; ++sweep) {
        double last = left;
        for (size_t i = 1; i < count; ++i) {
            double next = i + 1 < count ? field[i + 1] : right, mine = field[i];
            field[i] = 0.5 * mine + 0.25 * (last + next);
            last = mine;
        }
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    way = none;
    for (int i = 0; i < none && argc > 1; ++i)
        if (!strcmp(argv[1], ways[i])) way = i;
    int mib = argc > 2 ? atoi(argv[2]) : 0, iterations = argc > 3 ? atoi(argv[3]) : 0;
    if (mib < 4 || mib % 4 || iterations < 2) {
        fprintf(stderr, "iterations WAY MIB ITERATIONS [recover]: MIB is a multiple of 4\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    count = (size_t)mib << 17;
    must(posix_memalign((void**)&field, 4096, count * 8) == 0, "memory");
    int k = 1;
    double begin = now();
    if (argc > 4) {
        recover(iterations - 1);
        k = (int)field[0];
        say("at", k++);
    } else {
        uint64_t noise = 88172645463325252ull + (uint64_t)rank;
        for (size_t i = 0; i < count; ++i) {
            noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
            double x = (double)(i % 4096) / 4096;
            field[i] = 300 + 20 * x * (1 - x) + (double)(noise >> 40) * 1e-9;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        begin = now();
    }
    for (; k <= iterations; ++k) {
        relax();
        field[0] = k;
        if (k == iterations) break;
        say("ready", k);
        save(k);
        say("at", k);
    }
    uint64_t hash = 1469598103934665603ull, all;
    for (size_t i = 0; i < count; ++i) {
        uint64_t bits;
        memcpy(&bits, &field[i], 8);
        hash = (hash ^ bits) * 1099511628211ull;
    }
    hash *= (uint64_t)(2 * rank + 1);
    MPI_Allreduce(&hash, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("done %.4f %016llx\n", now() - begin, (unsigned long long)all);
    MPI_Finalize();
    return 0;
}
