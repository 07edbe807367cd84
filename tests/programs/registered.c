/* Messages from memory that a network adapter has registered, and that is given back and taken anew at the
 * same address in between: a library that remembers too long sends what was there before. Messages of a step
 * are completed in the next one, so that some are under way whenever a checkpoint comes.
 *
 *   registered STEPS [window]    rests STEADY_PAUSE microseconds a step; window: puts, too */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "hold.h"

enum { WORDS = 1 << 16, BYTES = WORDS * 8 };

/* Other memory at the same address, by another way each time. (Not by mremap: UCX 1.13 below MPICH loses the
 * fifth argument of that call, natively.) */
static void renew(unsigned long long* at, int step) {
    const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void* got = at;
    switch (step % 3) {
        case 0:
            munmap(at, BYTES);
            got = mmap(at, BYTES, PROT_READ | PROT_WRITE, fixed, -1, 0);
            break;
        case 1:
            got = mmap(at, BYTES, PROT_READ | PROT_WRITE, fixed, -1, 0);
            break;
        default:
            madvise(at, BYTES, MADV_DONTNEED);
    }
    CHECK(got == at);
}

static void fill(unsigned long long* words, int rank, int step) {
    for (size_t i = 0; i < WORDS; i += 64) words[i] = (i + 1) * 2654435761u + (unsigned)(step * 131 + rank);
}

int main(int argc, char** argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 40, puts = argc > 2;
    const char* rest = getenv("STEADY_PAUSE");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned long long *out[2], *in[2], small[2][4], heard[2][4];
    for (int i = 0; i < 2; ++i) {
        out[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        in[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    MPI_Win win = MPI_WIN_NULL;
    unsigned long long* shown = calloc(WORDS, 8);
    if (puts) MPI_Win_create(shown, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Request open[2][4];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int step = 0; step <= steps; ++step) {
        int now = step % 2, before = 1 - now;
        if (step < steps) {
            renew(out[now], step);
            renew(in[now], step + 1);
            fill(out[now], rank, step);
            for (int i = 0; i < 4; ++i) small[now][i] = (unsigned long long)(step * 10 + i + rank);
            MPI_Isend(out[now], WORDS, MPI_UNSIGNED_LONG_LONG, right, 1, MPI_COMM_WORLD, &open[now][0]);
            MPI_Isend(small[now], 4, MPI_UNSIGNED_LONG_LONG, left, 2, MPI_COMM_WORLD, &open[now][1]);
            MPI_Irecv(heard[now], 4, MPI_UNSIGNED_LONG_LONG, right, 2, MPI_COMM_WORLD, &open[now][2]);
            MPI_Irecv(in[now], WORDS, MPI_UNSIGNED_LONG_LONG, left, 1, MPI_COMM_WORLD, &open[now][3]);
        }
        if (rest) usleep((useconds_t)atoi(rest));
        if (step == 0) continue;
        MPI_Waitall(4, open[before], MPI_STATUSES_IGNORE);
        for (size_t i = 0; i < WORDS; i += 64)
            CHECK(in[before][i] == (i + 1) * 2654435761u + (unsigned)((step - 1) * 131 + left));
        hash_bytes(in[before], BYTES);
        hash_bytes(heard[before], sizeof heard[before]);
        if (puts) {
            MPI_Win_fence(0, win);
            MPI_Put(in[before], WORDS, MPI_UNSIGNED_LONG_LONG, right, 0, WORDS, MPI_UNSIGNED_LONG_LONG, win);
            MPI_Win_fence(0, win);
            hash_bytes(shown, BYTES);
        }
        unsigned long long sum;
        MPI_Allreduce(&hash_state, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        hash_state ^= sum;
        if (rank == 0) {
            printf("step %d %016llx\n", step, sum);
            fflush(stdout);
        }
    }
    if (puts) MPI_Win_free(&win);
    verdict("registered");
    MPI_Finalize();
    return 0;
}
