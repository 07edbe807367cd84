/* A window whose memory the library below keeps from children (keeping.c): after a restart on a library that
 * does not, a child has it again. What the program itself keeps from children stays so. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "hold.h"

static int kept(const void* at) {
    char line[512];
    unsigned long begin = 0, end = 0, first, last;
    int found = -1;
    FILE* maps = fopen("/proc/self/smaps", "re");
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) begin = first, end = last;
        if (!strncmp(line, "VmFlags:", 8) && begin <= (unsigned long)at && (unsigned long)at < end)
            found = strstr(line, " dc") != NULL;
    }
    fclose(maps);
    return found;
}

int main(int argc, char** argv) {
    enum { kSize = 1 << 16 };
    int rank;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* both = mmap(NULL, 3 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(both, 5, 3 * kSize);
    madvise(
        both, kSize,
        MADV_DONTFORK); /* neighbours: one mapping for the kernel once the library has marked the second */
    MPI_Win_create(both + kSize, kSize, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0) printf("below: %d\n", kept(both + kSize));
    hold();
    MPI_Win_free(&win);
    if (rank == 0) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) _exit(both[kSize] == 5 ? 0 : 1);
        waitpid(child, &status, 0);
        printf("after: %d %d %d, child %s\n", kept(both), kept(both + kSize), kept(both + 2 * kSize),
               WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "lives" : "dies");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
