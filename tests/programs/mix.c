/* A step mixes what MPI programs do: halo exchange with Isend/Irecv/Waitall, Sendrecv, wildcard receives,
 * synchronous sends, probes, derived datatypes, sub-communicators, blocking and non-blocking collectives.
 * Every step prints a hash of all data so far: one wrong bit anywhere changes every line after it.
 *
 *   mix STEPS WORK [MIB]     WORK = rounds of arithmetic per step and rank; MIB = memory touched per rank
 *
 * MIX_GO in its environment: until that file is there a step takes 100 ms more, without computing. A test has
 * the time that it needs, and the rest of the program takes none. MIX_TURNS: only one rank does, each in its
 * turn, and the others wait for it inside of MPI. The results do not depend on it. */
#include "hold.h"

enum { N = 512 };

static double field[N + 2];
static unsigned char* ballast;
static size_t ballast_size;

static void rest(int in_turn) {
    const char* go = getenv("MIX_GO");
    if (getenv("MIX_TURNS") && !in_turn) return;
    if (go && access(go, F_OK) != 0) usleep(100000);
}

static void work(int rounds, int step) {
    for (int r = 0; r < rounds; ++r)
        for (int i = 1; i <= N; ++i)
            field[i] = 0.25 * field[i - 1] + 0.5 * field[i] + 0.25 * field[i + 1] + 1e-3 * step;
}

int main(int argc, char** argv) {
    int rank, size, half_rank, half_size;
    int steps = argc > 1 ? atoi(argv[1]) : 20, rounds = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Comm half;
    MPI_Datatype column;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < N + 2; ++i) field[i] = rank + 1.0 / (i + 1);
    ballast_size = argc > 3 ? (size_t)atoi(argv[3]) << 20 : 0;
    ballast = malloc(ballast_size + 1);
    for (size_t i = 0; i < ballast_size; i += 8)
        memcpy(ballast + i, &(unsigned long long){i * 2654435761u + rank}, 8);

    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int step = 0; step < steps; ++step) {
        MPI_Request requests[4];
        MPI_Status status;
        double sum, sums[2], matrix[64], transposed[8];
        int token, count, flag = 0;

        work(rounds, step);
        MPI_Irecv(&field[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&field[N + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&field[N], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&field[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);

        MPI_Allreduce(&field[step % N + 1], &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        hash_bytes(&sum, sizeof sum);

        MPI_Sendrecv(&step, 1, MPI_INT, right, 3, &token, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &status);
        CHECK(token == step && status.MPI_SOURCE == left);

        if (step % 4 == 0) {  // each waits in the same call until its own message is taken, too
            MPI_Irecv(&token, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[0]);
            MPI_Issend(&step, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[1]);
            if (step % 8 == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            for (int over = step % 8 == 0; !over;) MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE);
            CHECK(token == step);
        }

        for (int i = 0; i < 64; ++i) matrix[i] = field[i + 1];
        MPI_Request send;
        MPI_Isend(matrix + step % 8, 1, column, left, 4, MPI_COMM_WORLD, &send);
        MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        CHECK(count == 8);
        MPI_Recv(transposed, 8, MPI_DOUBLE, status.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        hash_bytes(transposed, sizeof transposed);

        if (rank == 0) {
            for (int i = 1; i < size; ++i) {
                MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                CHECK(status.MPI_TAG == 100 + status.MPI_SOURCE && token == step * status.MPI_SOURCE);
            }
        } else {
            int mine = step * rank;
            MPI_Send(&mine, 1, MPI_INT, 0, 100 + rank, MPI_COMM_WORLD);
        }

        sums[0] = field[1], sums[1] = field[N];
        MPI_Bcast(sums, 2, MPI_DOUBLE, step % half_size, half);
        hash_bytes(sums, sizeof sums);
        MPI_Request pending;
        double other = field[N / 2], total = 0;
        MPI_Iallreduce(&other, &total, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &pending);
        work(rounds / 4, step);
        while (!flag) MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
        hash_bytes(&total, sizeof total);
        if (ballast_size) {
            size_t at = ((size_t)step * 7919 * 4096) % ballast_size;
            hash_bytes(ballast + at, 64);
            ballast[at] ^= (unsigned char)step;
        }

        unsigned long long all = 0;
        MPI_Reduce(&hash_state, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("step %d %016llx\n", step, all);
            fflush(stdout);
        }
        rest(step % size == rank);
    }
    hash_bytes(field, sizeof field);
    hash_bytes(ballast, ballast_size);
    verdict("mix");
    MPI_Type_free(&column);
    MPI_Comm_free(&half);
    free(ballast);
    MPI_Finalize();
    return 0;
}
