/* Goes on steadily and costs little: a step changes some pages of memory, exchanges messages and reduces,
 * prints a hash of all that was so far, and rests for STEADY_PAUSE microseconds (environment; the result does
 * not depend on it), until the file STEADY_GO exists. With STEADY_PID a rank ends when its process has
 * another number than in the beginning.
 *
 *   steady STEPS MIB [RANK MORE LATE]      rank RANK has MORE MiB, every page of which each step changes, and
 *                                          is LATE microseconds late in each step, until STEADY_GO exists */
#include "hold.h"

int main(int argc, char** argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 100;
    size_t words = (argc > 2 ? strtoull(argv[2], 0, 10) : 1) << 17;
    const char* rest = getenv("STEADY_PAUSE");
    const char* go = getenv("STEADY_GO");
    useconds_t pause = rest ? (useconds_t)atoi(rest) : 0;
    pid_t me = getenv("STEADY_PID") ? getpid() : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned long long *memory = malloc(words * 8), random = 88172645463325252ull + (unsigned)rank;
    for (size_t i = 0; i < words; ++i) memory[i] = i * 2654435761u + (unsigned)rank;
    int slow = argc > 5 && rank == atoi(argv[3]);
    size_t more = slow ? strtoull(argv[4], 0, 10) << 17 : 0;
    useconds_t late = slow ? (useconds_t)atoi(argv[5]) : 0;
    unsigned long long* heavy = malloc(more * 8 + 8);
    for (size_t i = 0; i < more; ++i) heavy[i] = i * 2654435761u;
    for (int step = 0; step < steps; ++step) {
        for (size_t i = 0; i < more; i += 512) heavy[i] += (unsigned)step;
        unsigned long long got[8], sum;
        for (int i = 0; i < 20; ++i) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            memory[random % words] += random;
            hash_bytes(&memory[(random >> 20) % words], 8);
        }
        MPI_Request send;
        MPI_Isend(&memory[random % (words - 8)], 8, MPI_UNSIGNED_LONG_LONG, (rank + 1) % size, step % 3,
                  MPI_COMM_WORLD, &send);
        MPI_Recv(got, 8, MPI_UNSIGNED_LONG_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        hash_bytes(got, sizeof got);
        MPI_Allreduce(&hash_state, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        hash_state ^= sum;
        if (rank == 0) {
            printf("step %d %016llx\n", step, sum);
            fflush(stdout);
        }
        CHECK(!me || getpid() == me);
        if ((pause || late) && go && access(go, F_OK) == 0) pause = late = 0;
        if (pause || late) usleep(pause + late);
    }
    hash_bytes(memory, words * 8);
    hash_bytes(heavy, more * 8);
    verdict("steady");
    MPI_Finalize();
    return 0;
}
