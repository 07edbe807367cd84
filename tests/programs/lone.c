/* Windows of one process at MPI_THREAD_MULTIPLE, which Open MPI has for memory of its own only: every access,
 * held in an open epoch. `lone lone_windows` */
#include "hold.h"

enum { N = 24 };

static int* memory;
static int zero;

static void see(const void* data, size_t size) { hash_bytes(data, size); }

static void accesses(MPI_Win win, int turn) {
    struct {
        double value;
        int where;
    } pair = {turn + 2.5, 7}, old;
    MPI_Datatype strided;
    MPI_Request r[4];
    int out[N], in[N], one = 40 + turn, was = -1;
    long word = 3, seen = -1, other = 9;
    MPI_Type_vector(N / 4, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    for (int i = 0; i < N; ++i) out[i] = 1000 * turn + i, in[i] = -i;
    MPI_Put(out, 3, MPI_INT, 0, 1, 3, MPI_INT, win);
    MPI_Put(out, N / 4, MPI_INT, 0, 4, 1, strided, win);
    MPI_Accumulate(out, N / 4, MPI_INT, 0, 4, 1, strided, MPI_SUM, win);
    MPI_Accumulate(out, N, MPI_INT, 0, 0, N, MPI_INT, turn % 2 ? MPI_BXOR : MPI_MAX, win);
    MPI_Accumulate(out + 1, 2, MPI_INT, 0, 2, 2, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    MPI_Get(in, 1, strided, 0, 3, N / 4, MPI_INT, win);
    MPI_Win_flush_all(win);
    see(in, sizeof in);
    MPI_Get_accumulate(out, N, MPI_INT, in, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(0, win);
    see(in, sizeof in);
    MPI_Get_accumulate(NULL, 0, MPI_INT, in, N, MPI_INT, 0, 0, N, MPI_INT, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    see(in, sizeof in);
    MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 5, MPI_SUM, win);
    MPI_Win_flush(0, win);
    see(&was, sizeof was);
    MPI_Put(&word, 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    MPI_Compare_and_swap(&other, &word, &seen, MPI_LONG, 0, 8, win);
    MPI_Win_flush(0, win);
    see(&seen, sizeof seen);
    MPI_Compare_and_swap(&word, &word, &seen, MPI_LONG, 0, 8, win);
    MPI_Win_flush(0, win);
    CHECK(seen == 9);
    pair.value = turn, MPI_Put(&pair, 1, MPI_DOUBLE_INT, 0, 12, 1, MPI_DOUBLE_INT, win);
    MPI_Win_flush(0, win);
    pair.value = turn + 0.5, pair.where = 2;
    MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, 12, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_flush(0, win);
    MPI_Get(&old, 1, MPI_DOUBLE_INT, 0, 12, 1, MPI_DOUBLE_INT, win);
    MPI_Win_flush(0, win);
    CHECK(old.value == turn + 0.5 && old.where == 2);
    MPI_Rput(out, 2, MPI_INT, 0, 20, 2, MPI_INT, win, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Raccumulate(out, 2, MPI_INT, 0, 20, 2, MPI_INT, MPI_PROD, win, &r[1]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    MPI_Rget(in, 4, MPI_INT, 0, 20, 4, MPI_INT, win, &r[2]);
    MPI_Rget_accumulate(out, 1, MPI_INT, in + 8, 1, MPI_INT, 0, 23, 1, MPI_INT, MPI_SUM, win, &r[3]);
    MPI_Waitall(2, r + 2, MPI_STATUSES_IGNORE);
    see(in, sizeof in);
    MPI_Put(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
    MPI_Win_flush_local_all(win);
    MPI_Win_sync(win);
    MPI_Type_free(&strided);
}

int main(int argc, char** argv) {
    int provided, rank, *shared;
    MPI_Win win, both[2];
    MPI_Aint size;
    int unit, flag = 0;
    void* base;
    MPI_Group self;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    MPI_Win_allocate_shared(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &shared, &both[1]);
    both[0] = win;
    for (int i = 0; i < N; ++i) memory[i] = i, shared[i] = 2 * i;
    MPI_Win_fence(0, win);
    MPI_Put(&zero, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Win_lock_all(0, both[1]);
    for (int turn = 0; turn < 4; ++turn) {
        if (turn == 2) hold();
        for (int i = 0; i < 2; ++i) accesses(both[i], turn);
    }
    MPI_Win_unlock(0, win);
    MPI_Win_unlock_all(both[1]);
    MPI_Comm_group(MPI_COMM_SELF, &self);
    MPI_Win_post(self, 0, win);
    MPI_Win_start(self, 0, win);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_complete(win);
    while (!flag) MPI_Win_test(win, &flag);
    CHECK(memory[0] == rank);
    MPI_Group_free(&self);
    MPI_Win_shared_query(both[1], 0, &size, &unit, &base);
    CHECK(size == N * (MPI_Aint)sizeof(int) && base == (void*)shared);
    see(memory, N * sizeof(int));
    see(shared, N * sizeof(int));
    MPI_Win_free(&win);
    MPI_Win_free(&both[1]);
    verdict(argc > 1 ? argv[1] : "lone");
    MPI_Finalize();
    return 0;
}
