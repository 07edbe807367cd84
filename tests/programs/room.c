/* What a program does to the room that the kernel gives it, before and after MPI_Init, then goes on with MPI.
 *
 *   room stack           raises RLIMIT_STACK and needs it; held deep down
 *   room grows           the same, and the stack grows until it goes on, or for a second or two
 *   room close WAY       closes what it does not know of: range, unshare, from, loop, listed, raw, nothing */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "hold.h"

static int grows;

static int creep(int k) {
    volatile char page[4096];
    page[0] = (char)k;
    if (k == 0 || access(getenv("HOLD_FILE"), F_OK) == 0) return 0;
    usleep(100);
    return creep(k - 1) + (page[0] == (char)k);
}

static void hold_and_grow(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (getenv("HOLD_FILE") == NULL) return;
    if (rank == 0) puts("READY"), fflush(stdout);
    if (creep(8000) < 0) exit(4);
    hold_here(0);
}

static int down(int k) {
    volatile char room[1 << 20];
    room[0] = (char)k;
    if (k == 0 && grows) hold_and_grow();
    if (k == 0 && !grows) hold();
    return k ? down(k - 1) + (room[0] == (char)k) : 0;
}

static void stack(int* argc, char*** argv) {
    struct rlimit limit = {64 << 20, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
    MPI_Init(argc, argv);
    const int first = grows ? 20 : 40; /* where it grows in pages, these need room, too */
    int deep = down(first);
    grows = 0;
    limit.rlim_cur = 128 << 20;
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
    deep += down(100);
    CHECK(deep == 100 + first);
}

/* All above standard error, as libraries and daemons do it; natively MPI does not survive it. */
static void close_all(const char* way) {
    if (!strcmp(way, "range")) {
        if (close_range(3, ~0U, 0) != 0) perror("close_range"), exit(4);
    } else if (!strcmp(way, "unshare")) {
        if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE) != 0) perror("close_range"), exit(4);
    } else if (!strcmp(way, "raw")) {
        if (syscall(SYS_close_range, 3, ~0U, 0) != 0) perror("close_range"), exit(4);
    } else if (!strcmp(way, "from")) {
        closefrom(3);
    } else if (!strcmp(way, "loop")) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        for (int fd = 3; fd < (limit.rlim_max < 100000 ? (int)limit.rlim_max : 100000); ++fd) close(fd);
    } else {
        DIR* all = opendir("/proc/self/fd");
        for (struct dirent* one; (one = readdir(all));)
            if (atoi(one->d_name) > 2 && atoi(one->d_name) != dirfd(all)) close(atoi(one->d_name));
        closedir(all);
    }
}

static void closing(int* argc, char*** argv) {
    const char* way = (*argv)[2];
    if (!strcmp(way, "nothing")) {
        MPI_Init(argc, argv);
        return;
    }
    int before = open("/dev/null", O_RDONLY), status;
    close_all(way);
    if (fcntl(before, F_GETFD) != -1 || errno != EBADF) exit(5);
    MPI_Init(argc, argv);
    int kept = open("/dev/null", O_RDONLY);
    hold();
    CHECK(fcntl(kept, F_GETFD) != -1);
    close_all(way);
    CHECK(fcntl(kept, F_GETFD) == -1 && errno == EBADF);
    pid_t child = fork(); /* in which everything is the child's */
    if (child == 0) {
        close_all(way);
        DIR* all = opendir("/proc/self/fd");
        int open = 0;
        for (struct dirent* one; (one = readdir(all));)
            open += one->d_name[0] != '.' && atoi(one->d_name) != dirfd(all);
        _exit(open);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    grows = !strcmp(argv[1], "grows");
    if (grows || !strcmp(argv[1], "stack"))
        stack(&argc, &argv);
    else
        closing(&argc, &argv);
    int rank, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    hash_bytes(&all, sizeof all);
    verdict(argv[1]);
    MPI_Finalize();
    return 0;
}
