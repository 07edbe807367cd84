/* What a program knows of how it was started, and some steps of work: for starts by shells, env, timeout, ….
 *
 *   started STEPS [EXIT CODE]      STARTED_PAUSE: microseconds per step; STARTED_TAG: printed
 *   started --helper               ends with 42 */
#include <fcntl.h>
#include <mpi.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static const char* last_part(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int helper(void) {
    char* words[] = {"helper", "--helper", NULL};
    pid_t pid;
    int status = -1;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ) != 0) return -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static void say(int rank, const char* when, int argc, char** argv) {
    char exe[4096] = "", line[4096] = "";
    const char *tag = getenv("STARTED_TAG"), *given = getenv("OMPI_COMM_WORLD_RANK");
    if (!given) given = getenv("PMI_RANK");
    if (!given) given = getenv("PMIX_RANK"); /* by srun */
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) perror("readlink");
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    for (ssize_t i = 0; i + 1 < size; ++i)
        if (!line[i]) line[i] = ' ';
    char words[4096] = "", text[16384]; /* one write: others write to the same pipe */
    for (int i = 0; i < argc; ++i)
        snprintf(words + strlen(words), sizeof words - strlen(words), " %s",
                 i ? argv[i] : last_part(argv[0]));
    int length = snprintf(
        text, sizeof text, "%s: rank %d, of the launcher %s, tag %s, argv%s, cmdline %s, exe %s, helper %d\n",
        when, rank, given ? given : "?", tag ? tag : "-", words, last_part(line), last_part(exe), helper());
    if (write(1, text, (size_t)length) != length) perror("write");
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "--helper") == 0) return 42;
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 10;
    const char* pause = getenv("STARTED_PAUSE");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    say(rank, "begin", argc, argv);
    unsigned long long mine = 88172645463325252ull + (unsigned)rank, sum = 0;
    for (int step = 0; step < steps; ++step) {
        mine ^= mine << 13, mine ^= mine >> 7, mine ^= mine << 17;
        MPI_Allreduce(&mine, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        mine ^= sum;
        if (rank == 0) printf("step %d of %d ranks %016llx\n", step, size, sum), fflush(stdout);
        if (pause) usleep((useconds_t)atoi(pause));
    }
    say(rank, "end", argc, argv);
    MPI_Finalize();
    return argc > 2 ? atoi(argv[2]) : 0;
}
