/* Windows over memory that begins anywhere: every access, before and after a hold with an open epoch.
 * `bases window_bases` */
#include <stdint.h>

#include "hold.h"

enum { N = 32, ROOM = 256 };

static int rank, size, right;
static _Alignas(64) unsigned char around[2][ROOM];

static void see(const void* data, size_t bytes) { hash_bytes(data, bytes); }

/* Places that nobody asks for: displacements of `unit` bytes leave them alone. */
static int* place(void* base, int unit, int disp) { return (int*)((char*)base + unit * disp); }

static MPI_Aint aint(MPI_Win win, int keyval) {
    MPI_Aint* value;
    int found;
    MPI_Win_get_attr(win, keyval, &value, &found);
    CHECK(found);
    return *value;
}

/* Everything that goes to a place of the right neighbour's, whose unit is `unit`: 24 words from `first` on.
 */
static void accesses(MPI_Win win, int unit, int turn) {
    int words = 4 / unit, out[8], in[8], old[8], one = 7 + turn, was = -1, cmp;
    MPI_Request requests[2];
    MPI_Datatype strided;
#define AT(word) ((word)*words)
    MPI_Type_vector(4, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    for (int i = 0; i < 8; ++i) out[i] = 10000 * (rank + 1) + 100 * turn + i, in[i] = old[i] = -1;
#ifdef OPEN_MPI
    MPI_Put(out, 4, MPI_INT, right, AT(0), 4, MPI_INT, win);
#else
    MPI_Put_c(out, 4, MPI_INT, right, AT(0), 4, MPI_INT, win);
#endif
    MPI_Put(out + 4, 4, MPI_INT, right, AT(4), 1, strided, win);
    MPI_Win_flush(right, win);
    MPI_Accumulate(out, 8, MPI_INT, right, AT(0), 8, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(right, win);
    MPI_Get(in, 8, MPI_INT, right, AT(0), 8, MPI_INT, win);
    MPI_Win_flush(right, win);
    see(in, sizeof in);
    CHECK(in[1] == 2 * out[1]);
    MPI_Get_accumulate(out, 8, MPI_INT, old, 8, MPI_INT, right, AT(0), 8, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(right, win);
    CHECK(memcmp(in, old, sizeof in) == 0);
    MPI_Fetch_and_op(&one, &was, MPI_INT, right, AT(12), MPI_SUM, win);
    MPI_Win_flush(right, win);
    see(&was, sizeof was);
    cmp = was + one;
    MPI_Compare_and_swap(&rank, &cmp, &was, MPI_INT, right, AT(12), win);
    MPI_Win_flush(right, win);
    CHECK(was == cmp);
    MPI_Rput(out, 2, MPI_INT, right, AT(14), 2, MPI_INT, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(right, win);
    MPI_Raccumulate(out, 2, MPI_INT, right, AT(14), 2, MPI_INT, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(right, win);
    MPI_Rget(in, 2, MPI_INT, right, AT(14), 2, MPI_INT, win, &requests[0]);
    MPI_Rget_accumulate(out, 1, MPI_INT, old, 1, MPI_INT, right, AT(12), 1, MPI_INT, MPI_REPLACE, win,
                        &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(right, win);
    CHECK(in[0] == 2 * out[0] && in[1] == 2 * out[1] && old[0] == rank);
    MPI_Put(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
    MPI_Type_free(&strided);
}

/* What is around the memory is as it was. */
static void untouched(int which, const unsigned char* base, int bytes) {
    for (const unsigned char* p = around[which]; p < around[which] + ROOM; ++p)
        CHECK((p >= base && p < base + bytes) || *p == 0xa5);
}

/* One process, where the library has such windows (MPICH): its own memory is somewhere else, too. */
static void lone_one(void) {
#ifndef OPEN_MPI
    static _Alignas(64) int numbers[N];
    int seven = 7;
    MPI_Win win;
    memset(numbers, 0, sizeof numbers);
    MPI_Win_create(numbers + 1 + rank, 16, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&seven, 1, MPI_INT, 0, 3, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    for (int i = 0; i < N; ++i) CHECK(numbers[i] == (i == rank + 4 ? 7 : 0));
    MPI_Win_free(&win);
#endif
}

int main(int argc, char** argv) {
    MPI_Win wins[5];
    MPI_Info same;
    MPI_Aint bytes, address, theirs;
    int units[] = {4, 1, 2, 4}, *base, *shared, *allocated, unit, value, *seen;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size;
    CHECK(size == 4);
    lone_one();
    memset(around, 0xa5, sizeof around);
    /* 4, 8, 12 and 0 bytes behind a multiple of 16, with units of their own. */
    base = (int*)(around[0] + 64 + 4 * (rank + 1) % 16);
    memset(base, 0, 4 * N);
    MPI_Info_create(&same);
    MPI_Info_set(same, "same_size", "true");
    MPI_Win_create(base, 4 * N, units[rank], same, MPI_COMM_WORLD, &wins[0]);
    MPI_Info_free(&same);
    /* Of one member only: the others have none. */
    int* only = (int*)(around[1] + 64 + 12);
    MPI_Win_create(rank == 2   ? (void*)only
                   : rank == 1 ? (char*)NULL + 5
                               : NULL,
                   rank == 2 ? 16 : 0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]);
    memset(only, 0, 16);
    /* 68 bytes each, one member's behind the other's; and Open MPI's own memory, 8 bytes behind. */
    MPI_Win_allocate_shared(68, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &wins[2]);
    MPI_Win_allocate(4 * N, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &wins[3]);
    memset(shared, 0, 68), memset(allocated, 0, 4 * N);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &wins[4]);
    static _Alignas(64) int attached[N];
    MPI_Win_attach(wins[4], attached + 1 + rank, 64);
    MPI_Get_address(attached + 1 + rank, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, (rank + size - 1) % size, 0, &theirs, 1, MPI_AINT, right, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 5; ++i) MPI_Win_lock_all(0, wins[i]);
    for (int turn = 0; turn < 4; ++turn) {
        if (turn == 2) {
            value = 1000 + rank;
            if (rank != 2) MPI_Put(&value, 1, MPI_INT, 2, rank == 3 ? 2 : rank, 1, MPI_INT, wins[1]);
            hold();
            value = 2000 + rank;
            if (rank != 2)
                MPI_Accumulate(&value, 1, MPI_INT, 2, rank == 3 ? 2 : rank, 1, MPI_INT, MPI_SUM, wins[1]);
        }
        accesses(wins[0], units[right], turn);
        accesses(wins[2], 4, turn);
        accesses(wins[3], 4, turn);
        value = 100 * turn + rank;
        MPI_Put(&value, 1, MPI_INT, right, theirs + 4 * turn, 1, MPI_INT, wins[4]);
    }
    for (int i = 0; i < 5; ++i) MPI_Win_unlock_all(wins[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Fences, and the neighbour on the other side. */
    MPI_Win_fence(0, wins[0]);
    value = 77 + rank;
    MPI_Put(&value, 1, MPI_INT, (rank + size - 1) % size, 20 * (4 / units[(rank + size - 1) % size]), 1,
            MPI_INT, wins[0]);
    MPI_Put(&value, 1, MPI_INT, rank, 22 * (4 / units[rank]), 1, MPI_INT, wins[0]);
    MPI_Win_fence(0, wins[0]);
    CHECK(*place(base, 4, 20) == 77 + right && *place(base, 4, 22) == 77 + rank);
    void* said;
    int found;
    MPI_Win_get_attr(wins[0], MPI_WIN_BASE, &said, &found);
    CHECK(found && said == (void*)base && aint(wins[0], MPI_WIN_SIZE) == 4 * N);
    int* said_unit;
    MPI_Win_get_attr(wins[0], MPI_WIN_DISP_UNIT, &said_unit, &found);
    CHECK(found && *said_unit == units[rank]);
    MPI_Win_shared_query(wins[2], right, &bytes, &unit, &seen);
    CHECK(bytes == 68 && unit == 4);
    MPI_Win_shared_query(wins[2], rank, &bytes, &unit, &seen);
    CHECK(seen == shared);
    untouched(0, (unsigned char*)base, 4 * N);
    untouched(1, (unsigned char*)only, 16);
    if (rank == 2) CHECK(only[0] == 3000 && only[1] == 3002 && only[2] == 3006 && only[3] == 0);
    see(base, 4 * N), see(only, 16), see(shared, 68), see(allocated, 4 * N), see(attached, sizeof attached);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(wins[4], attached + 1 + rank);
    for (int i = 0; i < 5; ++i) MPI_Win_free(&wins[i]);
    verdict(argc > 1 ? argv[1] : "bases");
    MPI_Finalize();
    return 0;
}
