// A world as MPI tells it: every rank's view, one line each at rank 0; some traffic between all. Words:
//     abort R C    rank R calls MPI_Abort(C)
//     wait R       rank R says so and sleeps before MPI_Init; waitin R: behind it
//     end R C      rank R ends with C without MPI_Finalize; endbefore R C: before MPI_Init
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(int argc, char** argv, const char* word, const char* rank_name) {
    return argc > 2 && strcmp(argv[1], word) == 0 && rank_name && atoi(argv[2]) == atoi(rank_name);
}

static const char* launched_as(void) {
    const char* rank = getenv("PMI_RANK");
    return rank ? rank : getenv("PMIX_RANK");
}

static void wait_to_be_killed(const char* where) {
    fprintf(stderr, "waiting %s\n", where);
    sleep(600);
}

int main(int argc, char** argv) {
    if (is(argc, argv, "wait", launched_as())) wait_to_be_killed("before");
    if (is(argc, argv, "endbefore", launched_as())) return atoi(argv[3]);
    MPI_Init(&argc, &argv);
    int rank, size, flag, *value;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[16];
    snprintf(name, sizeof name, "%d", rank);
    MPI_Barrier(MPI_COMM_WORLD);  // everybody is out of MPI_Init
    if (is(argc, argv, "abort", name)) MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
    if (is(argc, argv, "end", name)) _exit(atoi(argv[3]));
    if (is(argc, argv, "waitin", name)) {
        sleep(1);  // the others may still be on their way out of the barrier
        wait_to_be_killed("in");
    }
    if (argc > 1 && strcmp(argv[1], "waitin") == 0) sleep(600);

    long mine[4] = {rank, -1, -1, -1};
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    if (flag) mine[1] = *value;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    if (flag) mine[2] = *value;
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int here;
    MPI_Comm_size(node, &here);
    mine[3] = here;
    long* all = malloc((size_t)size * sizeof mine);
    MPI_Gather(mine, 4, MPI_LONG, all, 4, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; ++i)
        printf("rank %ld of %d appnum %ld universe %ld node %ld\n", all[4 * i], size, all[4 * i + 1],
               all[4 * i + 2], all[4 * i + 3]);
    // Everybody with everybody, small and large.
    const int large = 200000;
    int* out = malloc((size_t)large * sizeof(int));
    int* in = malloc((size_t)large * sizeof(int));
    long sum = 0;
    for (int step = 1; step < size; ++step)
        for (int count = 1; count <= large; count *= large) {
            for (int i = 0; i < count; ++i) out[i] = rank + i % 7;
            MPI_Sendrecv(out, count, MPI_INT, (rank + step) % size, 0, in, count, MPI_INT,
                         (rank + size - step) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < count; ++i) sum += in[i] - i % 7;
            if (count == large) break;
        }
    long total;
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("sum %ld\n", total);
        fflush(stdout);
    }
    MPI_Finalize();
    return is(argc, argv, "code", name) ? atoi(argv[3]) : 0;
}
