#include "cases.h"

enum { N = 8 };
static long* memory;

static MPI_Win open_window(void) {
    MPI_Win win = MPI_WIN_NULL;
    if (MPI_Win_allocate(64 * N, 8, MPI_INFO_NULL, WORLD, &memory, &win) != MPI_SUCCESS) return MPI_WIN_NULL;
    PMPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < N; ++i) memory[i] = 100 * rank + i;
    PMPI_Barrier(WORLD);
    return win;
}
#define MEMORY rec_show("memory", memory, N, 8), PMPI_Barrier(WORLD) /* before a neighbour's next epoch */

void case_windows(void) {
    long one[2] = {7 + rank, 8 + rank}, got[2] = {0}, result[2] = {0};
    MPI_Win win;
    MPI_Group world, to, from;
    MPI_Info info;
    int flag;
    /* memory of the application; Debian's Open MPI has it only with RDMA below */
    long* mine = calloc(N, sizeof *mine);
    if (MPI_Win_create(mine, N * 8, 8, MPI_INFO_NULL, WORLD, &win) == MPI_SUCCESS) {
        MPI_Win_fence(0, win);
        MPI_Put(one, 2, MPI_LONG, right, 1, 2, MPI_LONG, win);
        MPI_Win_fence(0, win);
        rec_show("mine", mine, N, 8);
        MPI_Win_free(&win);
    }
    free(mine);
    if ((win = open_window()) == MPI_WIN_NULL) return;
    MPI_Win_get_group(win, &world);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(one, 2, MPI_LONG, right, 1, 2, MPI_LONG, win);
    MPI_Win_fence(0, win), MEMORY;
    MPI_Get(got, 2, MPI_LONG, left, 0, 2, MPI_LONG, win);
    MPI_Win_fence(0, win), SHOW(got);
    MPI_Accumulate(one, 1, MPI_LONG, 0, 4, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win), MEMORY;
    MPI_Get_accumulate(one, 1, MPI_LONG, result, 1, MPI_LONG, right, 5, 1, MPI_LONG, MPI_REPLACE, win);
    MPI_Win_fence(0, win), MEMORY;
    SHOW(result);
    MPI_Get_accumulate(NULL, 0, MPI_LONG, result, 2, MPI_LONG, right, 1, 2, MPI_LONG, MPI_NO_OP, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win), SHOW(result);
    MPI_Group_incl(world, 1, &right, &to);
    MPI_Group_incl(world, 1, &left, &from);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(one, 1, MPI_LONG, right, 6, 1, MPI_LONG, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win), MEMORY;
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(one + 1, 1, MPI_LONG, right, 7, 1, MPI_LONG, win);
    MPI_Win_complete(win);
    UNTIL(flag, MPI_Win_test(win, &flag));
    MEMORY;
#ifndef OPEN_MPI /* which takes it for part of a fence epoch */
    MPI_Put(one, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
#endif
    void* value;
    const int keys[] = {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT, MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL};
    for (int i = 0; i < 5; ++i) MPI_Win_get_attr(win, keys[i], &value, &flag);
    int right_flavor = 0;
    PMPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    right_flavor = *(int*)value == MPI_WIN_FLAVOR_ALLOCATE, SHOW1(right_flavor);
    MPI_Win_set_info(win, MPI_INFO_NULL);
    MPI_Win_get_info(win, &info);
    MPI_Info_free(&info);
    MPI_Group_free(&to), MPI_Group_free(&from), MPI_Group_free(&world);
    MPI_Win_free(&win);
    MPI_Win_fence(0, MPI_WIN_NULL);
    win = MPI_WIN_NULL;
    MPI_Win_free(&win);
}

void case_passive_windows(void) {
    MPI_Win win = open_window();
    MPI_Request request;
    long one = 5 + rank, got = -1, old = -1, expect = 100 * right + 3;
    if (win == MPI_WIN_NULL) return;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    MPI_Put(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(right, win);
    PMPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
    MPI_Get(&got, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
    MPI_Win_flush(right, win), SHOW1(got);
    MPI_Rput(&one, 1, MPI_LONG, right, 1, 1, MPI_LONG, win, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_local(right, win);
    MPI_Win_unlock(right, win);
    MPI_Win_lock_all(0, win);
    MPI_Win_flush_all(win);
    MPI_Rget(&got, 1, MPI_LONG, right, 1, 1, MPI_LONG, win, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    SHOW1(got);
    MPI_Raccumulate(&one, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_SUM, win, &request),
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, right, 4, 1, MPI_LONG, MPI_SUM, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    SHOW1(old);
    MPI_Compare_and_swap(&one, &expect, &old, MPI_LONG, right, 3, win);
    MPI_Win_flush_local_all(win), SHOW1(old);
    MPI_Fetch_and_op(&one, &old, MPI_LONG, right, 5, MPI_SUM, win);
    MPI_Win_flush(right, win), SHOW1(old);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    PMPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MEMORY;
    MPI_Win_unlock(rank, win);
    MPI_Win_unlock(rank, win); /* not locked */
    MPI_Win_free(&win);
}

void case_shared_windows(void) {
    MPI_Win win;
    MPI_Comm node;
    long *base, *other;
    MPI_Aint bytes;
    int unit;
    PMPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (MPI_Win_allocate_shared(4 * 8, 8, MPI_INFO_NULL, node, &base, &win) == MPI_SUCCESS) {
        MPI_Win_fence(0, win);
        for (int i = 0; i < 4; ++i) base[i] = 10 * rank + i;
        MPI_Win_fence(0, win);
        MPI_Win_shared_query(win, right, &bytes, &unit, &other);
        rec_show("other", other, 4, 8);
        MPI_Win_fence(0, win);
        other[1] = rank;
        MPI_Win_fence(0, win);
        rec_show("base", base, 4, 8);
        MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other);
        rec_show("first", other, 4, 8);
        MPI_Win_free(&win);
    }
    PMPI_Comm_free(&node);
}

void case_dynamic_windows(void) {
    static long space[4];
    MPI_Win win;
    MPI_Aint here, there = 0;
    long one = rank + 40;
    if (MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win) != MPI_SUCCESS) return;
    if (MPI_Win_attach(win, space, sizeof space) == MPI_SUCCESS) {
        PMPI_Get_address(space, &here);
        PMPI_Sendrecv(&here, 1, MPI_AINT, left, 1, &there, 1, MPI_AINT, right, 1, WORLD, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, win);
        MPI_Put(&one, 1, MPI_LONG, right, there + 8, 1, MPI_LONG, win);
        MPI_Win_fence(0, win);
        SHOW(space);
        MPI_Win_detach(win, space);
    }
    MPI_Win_free(&win);
}
