/* A walk whose bits do not depend on the number of ranks; saves itself every few steps and goes on from
 * there. A failure is every rank's, so all end: MPICH's mpiexec loses, once in ten times, what was printed
 * just before an MPI_Abort.
 *
 *     walk DIRECTORY STEPS [OPTIONS]
 */
#include <fermata/fermata.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kAll = 30000 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int64_t steps = atoll(argv[2]), step = 0, global = kAll, first = (int64_t)kAll * rank / size;
    int64_t mine = (int64_t)kAll * (rank + 1) / size - first;
    uint64_t* x = calloc((size_t)mine + 1, sizeof *x);
    for (int64_t i = 0; i < mine; i++) x[i] = (uint64_t)(first + i);
    fermata_handle* f;
    int code = fermata_open(&f, MPI_COMM_WORLD, argv[1], argc > 3 ? argv[3] : NULL);
    if (code == FERMATA_OK)
        code = fermata_protect_array(f, "x", x, FERMATA_UINT64, 1, &global, &first, &mine, NULL);
    if (code == FERMATA_OK) code = fermata_restore(f, &step);
    if (code != FERMATA_OK && code != FERMATA_NOTHING) {
        printf("rank %d: %s\n", rank, fermata_message(f));
        MPI_Finalize();
        return 3;
    }
    if (rank == 0) printf("from %lld\n", (long long)step);
    fflush(stdout);
    for (; step < steps; step++) {
        if (step % 7 == 0 && fermata_save(f, step) != FERMATA_OK) {
            printf("rank %d: %s\n", rank, fermata_message(f));
            MPI_Finalize();
            return 4;
        }
        for (int64_t i = 0; i < mine; i++) x[i] = x[i] * 6364136223846793005u + (uint64_t)(first + i + step);
        int durable;
        fermata_test(f, &durable);
        if (step % 4 == 0) usleep(2000);
    }
    uint64_t sum = 0, all = 0;
    for (int64_t i = 0; i < mine; i++) sum ^= x[i] + (uint64_t)(first + i);
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    code = fermata_close(f);
    if (rank == 0) printf("end %016llx %d\n", (unsigned long long)all, code);
    MPI_Finalize();
    return code;
}
