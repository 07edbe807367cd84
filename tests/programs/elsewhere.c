/* Holds what another node may not have: an open file, a file mapped shared, a library (libm, or the one
 * named), then goes on in steps whose result depends on them.
 *
 *   elsewhere DIR STEPS       DIR: `input` and `shared` are made there */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "hold.h"

int main(int argc, char** argv) {
    int rank, steps = atoi(argv[2]);
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/input.%d", argv[1], rank);
    int input = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < steps; ++i) CHECK(write(input, &i, sizeof i) == sizeof i);
    lseek(input, 0, SEEK_SET);
    snprintf(path, sizeof path, "%s/shared.%d", argv[1], rank);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(fd, 65536) == 0);
    int* shared = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    close(fd);
    snprintf(path, sizeof path, "%s/libelsewhere.so", argv[1]);
    void* library = dlopen(path, RTLD_NOW);
    int (*next)(int) = library ? (int (*)(int))dlsym(library, "next_of") : 0;
    CHECK(next);
    for (int step = 0; step < steps; ++step) {
        int value;
        CHECK(read(input, &value, sizeof value) == sizeof value && value == step);
        shared[step % 16384] = next(value);
        hash_bytes(&shared[step % 16384], sizeof value);
        MPI_Allreduce(MPI_IN_PLACE, &hash_state, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("step %d %016llx\n", step, hash_state);
            fflush(stdout);
        }
        if (getenv("STEADY_PAUSE")) usleep(2000);
    }
    verdict("elsewhere");
    MPI_Finalize();
    return 0;
}
