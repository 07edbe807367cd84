/* Cases of `trap`: a dynamic window with memory attached, requests of one-sided operations inside an epoch,
 * and what a window gives out: its hints, group and error handler; epochs of MPI_Win_post and MPI_Win_start.
 */
#define HOLD_ELSEWHERE
#include "held.h"

enum { WORDS = 8 };

static int heard;
static void on_win(MPI_Win* win, int* code, ...) { (void)win, (void)code, ++heard; }

void held_one_sided(void) {
    MPI_Win dynamic, win;
    MPI_Request requests[4];
    MPI_Info given, hints;
    char first[8] = ""; /* Open MPI 5 gives no such hint out */
    MPI_Group group;
    MPI_Errhandler handler, kept;
    MPI_Aint mine, theirs[64];
    long *attached = calloc(WORDS, sizeof *attached), *memory, put = -1, got = -1, add, fetched = -1;
    char value[8];
    int flag, n;
    begin();
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, attached, WORDS * sizeof *attached);
    MPI_Get_address(attached, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, theirs, 1, MPI_AINT, MPI_COMM_WORLD);
    put = 5000 + rank;
    MPI_Win_fence(0, dynamic);
    MPI_Put(&put, 1, MPI_LONG, right, theirs[right], 1, MPI_LONG, dynamic);
    MPI_Win_fence(0, dynamic);
    CHECK(attached[0] == 5000 + left);

    MPI_Info_create(&given);
    MPI_Info_set(given, "no_locks", "false");
    MPI_Win_allocate(WORDS * sizeof *memory, sizeof *memory, given, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&given);
    MPI_Win_get_info(win, &hints);
    MPI_Info_get(hints, "no_locks", 7, first, &flag);
    MPI_Win_get_group(win, &group);
    MPI_Win_create_errhandler(on_win, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Win_get_errhandler(win, &kept);
    for (int i = 0; i < WORDS; ++i) memory[i] = 100 * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    put = 7000 + rank, add = 10 + rank;
    MPI_Win_lock_all(0, win);
    MPI_Rput(&put, 1, MPI_LONG, right, 1, 1, MPI_LONG, win, &requests[0]);
    MPI_Rget(&got, 1, MPI_LONG, right, 0, 1, MPI_LONG, win, &requests[1]);
    MPI_Raccumulate(&add, 1, MPI_LONG, right, 2, 1, MPI_LONG, MPI_SUM, win, &requests[2]);
    MPI_Rget_accumulate(&add, 1, MPI_LONG, &fetched, 1, MPI_LONG, right, 3, 1, MPI_LONG, MPI_SUM, win,
                        &requests[3]);
    hold();
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(got == 100 * right && fetched == 100 * right + 3);
    MPI_Raccumulate(&add, 1, MPI_LONG, right, 2, 1, MPI_LONG, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(memory[1] == 7000 + left && memory[2] == 100 * rank + 2 + 2 * (10 + left));
    CHECK(memory[3] == 100 * rank + 3 + 10 + left);
    hash_bytes(memory, WORDS * sizeof *memory);
    MPI_Win_unlock(rank, win);

    MPI_Get_address(attached, &mine);
    CHECK(mine == theirs[rank]);
    MPI_Win_fence(0, dynamic);
    MPI_Accumulate(&add, 1, MPI_LONG, right, theirs[right], 1, MPI_LONG, MPI_SUM, dynamic);
    MPI_Win_fence(0, dynamic);
    CHECK(attached[0] == 5000 + left + 10 + left);

    value[0] = 0;
    MPI_Info_get(hints, "no_locks", 7, value, &flag);
    CHECK(strcmp(value, first) == 0 && (!flag || strcmp(value, "false") == 0));
    MPI_Info_free(&hints);
    MPI_Group_size(group, &n);
    CHECK(n == size);
    MPI_Group_free(&group);
    heard = 0;
    MPI_Win_call_errhandler(win, MPI_ERR_ASSERT);
    MPI_Win_set_errhandler(dynamic, kept);
    MPI_Win_call_errhandler(dynamic, MPI_ERR_ASSERT);
    CHECK(heard == 2);
    MPI_Errhandler_free(&handler), MPI_Errhandler_free(&kept);
    MPI_Win_detach(dynamic, attached);
    MPI_Win_free(&dynamic);
    MPI_Win_free(&win);
    free(attached);
}

static MPI_Group one_rank(int which) {
    MPI_Group world, one;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &which, &one);
    MPI_Group_free(&world);
    return one;
}

/* A ring of puts under MPI_Win_post and MPI_Win_start, held where the epochs have been: both sides open (0),
 * ended by the origin only (1), begun by the target only (2), neither (3). Then the same again. */
void held_exposures(void) {
    enum { KINDS = 4 };
    MPI_Win wins[KINDS];
    MPI_Info hints;
    long *memory[KINDS], value;
    int flag;
    begin();
    MPI_Group origin = one_rank(left), target = one_rank(right);
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "no_locks", "true");
    for (int k = 0; k < KINDS; ++k) {
        MPI_Win_allocate(WORDS * 8, 8, k % 2 ? hints : MPI_INFO_NULL, MPI_COMM_WORLD, &memory[k], &wins[k]);
        for (int i = 0; i < WORDS; ++i) memory[k][i] = 100 * rank + i;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 2; ++round) {
        value = 1000 * (round + 1) + rank;
        for (int k = 0; k < KINDS - 1; ++k) MPI_Win_post(origin, k ? 0 : MPI_MODE_NOSTORE, wins[k]);
        for (int k = 0; k < 2; ++k) {
            MPI_Win_start(target, 0, wins[k]);
            MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, wins[k]);
        }
        MPI_Win_complete(wins[1]);
        if (round == 0) hold();
        MPI_Win_post(origin, 0, wins[3]);
        for (int k = 2; k < KINDS; ++k) MPI_Win_start(target, 0, wins[k]);
        for (int k = 0; k < KINDS; ++k) {
            if (k == 1) continue;
            MPI_Put(&value, 1, MPI_LONG, right, 2, 1, MPI_LONG, wins[k]);
            MPI_Accumulate(&value, 1, MPI_LONG, right, 3, 1, MPI_LONG, MPI_SUM, wins[k]);
            MPI_Win_complete(wins[k]);
        }
        for (int k = 0; k < KINDS; ++k) {
            if (k % 2)
                MPI_Win_wait(wins[k]);
            else
                for (flag = 0; !flag;) MPI_Win_test(wins[k], &flag);
            long got = 1000 * (round + 1) + left, sum = 100 * rank + 3 + (round ? 3000 + 2 * left : got);
            CHECK(memory[k][1] == (k < 2 ? got : 100 * rank + 1));
            if (k != 1) CHECK(memory[k][2] == got && memory[k][3] == sum);
            hash_bytes(memory[k], WORDS * sizeof *memory[k]);
        }
    }
    for (int k = 0; k < KINDS; ++k) MPI_Win_free(&wins[k]);
    MPI_Info_free(&hints);
    MPI_Group_free(&origin), MPI_Group_free(&target);
}

/* Even ranks wait in a call (0 in MPI_Win_wait, 2 in MPI_Win_start) for the odd ones, which are outside MPI.
 */
void blocked_exposures(void) {
    MPI_Win win;
    long *memory, value;
    begin();
    int peer = rank ^ 1;
    const char* path = getenv("HOLD_FILE");
    MPI_Group one = one_rank(peer);
    MPI_Win_allocate(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < WORDS; ++i) memory[i] = rank;
    value = 70 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || rank == 3) {
        if (rank == 0) {
            MPI_Win_post(one, 0, win);
            if (path) printf("READY\n"), fflush(stdout);
        }
        while (rank == 3 && path && access(path, F_OK) != 0) usleep(5000);
        if (rank == 3) MPI_Win_post(one, 0, win);
        MPI_Win_wait(win);
        CHECK(memory[1] == 70 + peer);
    } else {
        MPI_Win_start(one, 0, win);
        MPI_Put(&value, 1, MPI_LONG, peer, 1, 1, MPI_LONG, win);
        while (rank == 1 && path && access(path, F_OK) != 0) usleep(5000);
        MPI_Win_complete(win);
    }
    hash_bytes(memory, WORDS * sizeof *memory);
    MPI_Win_free(&win);
    MPI_Group_free(&one);
}
