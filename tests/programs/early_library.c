/* A library of an application that takes its time to load, as one on a busy file system does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int early_library_rank(void) {
    const char* names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (int i = 0; i < 3; ++i)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return -1;
}

__attribute__((constructor)) static void load_slowly(int argc, char** argv) {
    const char *slow = getenv("SLOW_RANK"), *path = getenv("HOLD_FILE");
    if (argc < 2 || !slow || !path || strcmp(argv[1], "loading") != 0 || atoi(slow) != early_library_rank())
        return;
    printf("READY\n");
    fflush(stdout);
    while (access(path, F_OK) != 0) usleep(5000);
}
