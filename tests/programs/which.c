/* A program that is not linked with MPI and comes to it in another way; all ranks then add numbers, held in
 * between.
 *
 *   which open NAME      dlopen
 *   which deep NAME      dlopen with RTLD_DEEPBIND
 *   which space NAME     dlmopen, a namespace of its own
 *   which late NAME      dlopen, not before the test says so
 *   which linked         whatever is there: what it was linked with after all, or LD_PRELOAD
 *   which map NAME FILE  dlopen of NAME; FILE is mapped to be executed, by nobody's loader */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void* library;

static void* must(const char* name) {
    void* found = dlsym(library, name);
    if (!found) fprintf(stderr, "%s\n", dlerror()), exit(3);
    return found;
}

/* A handle: a variable of Open MPI, a number of MPICH's ABI. */
static void* handle(const char* name, unsigned number) {
    void* found = dlsym(library, name);
    return found ? found : (void*)(unsigned long)number;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const char *way = argv[1], *name = argc > 2 ? argv[2] : NULL;
    const char* hold = getenv("HOLD_FILE");
    if (!strcmp(way, "late")) {
        puts("READY 3"), fflush(stdout);
        while (hold && access(hold, F_OK) != 0) usleep(3000);
    }
    if (!strcmp(way, "linked"))
        library = RTLD_DEFAULT;
    else if (!strcmp(way, "space"))
        library = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
    else
        library = dlopen(name, RTLD_NOW | (strcmp(way, "deep") ? RTLD_GLOBAL : RTLD_DEEPBIND));
    if (!library && strcmp(way, "linked")) fprintf(stderr, "%s\n", dlerror()), exit(3);
    if (!strcmp(way, "map")) {
        struct stat status;
        int fd = open(argv[3], O_RDONLY);
        if (fd < 0 || fstat(fd, &status) ||
            mmap(NULL, status.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
            return 4;
        close(fd);
    }
    int (*init)(int*, char***) = must("MPI_Init");
    int (*comm_rank)(void*, int*) = must("MPI_Comm_rank");
    int (*allreduce)(const void*, void*, int, void*, void*, void*) = must("MPI_Allreduce");
    int (*finalize)(void) = must("MPI_Finalize");
    void* world = handle("ompi_mpi_comm_world", 0x44000000);
    void* number = handle("ompi_mpi_int", 0x4c000405);
    void* sum = handle("ompi_mpi_op_sum", 0x58000003);
    void* least = handle("ompi_mpi_op_min", 0x58000002);

    init(&argc, &argv);
    int rank = -1, all = 0, go = hold == NULL;
    comm_rank(world, &rank);
    int mine = rank + 1;
    allreduce(&mine, &all, 1, number, sum, world);
    if (rank == 0 && strcmp(way, "late")) printf("READY %d\n", all), fflush(stdout);
    while (!go) {
        usleep(3000);
        int here = access(hold, F_OK) == 0;
        allreduce(&here, &go, 1, number, least, world);
    }
    mine = all + rank;
    allreduce(&mine, &all, 1, number, sum, world);
    if (rank == 0) printf("sum %d\n", all), fflush(stdout);
    finalize();
    return 0;
}
