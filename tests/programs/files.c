/* Files as programs treat them: opened, written and closed again in every step, one in each way that there
 * is. What a step finds must be what the step before has left; natively, and after a restart too.
 *
 *     files STEPS MILLISECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "hold.h"

static int rank, size;

static int number_in(const char* path) {
    int number = -1;
    FILE* file = fopen(path, "r");
    if (!file) return -2;
    if (fscanf(file, "%d", &number) != 1) number = -3;
    fclose(file);
    return number;
}

static void add_line(const char* path, const char* mode, int step) {
    FILE* file = fopen(path, mode);
    CHECK(file);
    fprintf(file, "rank %d step %d\n", rank, step);
    fclose(file);
}

static long size_of(const char* path) {
    struct stat status;
    return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

/* A line at the end, as Fortran's position='append' does it. */
static void add_at_the_end(const char* path, int step) {
    char line[32];
    int length = snprintf(line, sizeof line, "%06d\n", step);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    CHECK(fd >= 0 && lseek(fd, 0, SEEK_END) == 7L * step);
    CHECK(write(fd, line, (size_t)length) == length);
    close(fd);
}

/* Records in place: each holds the step that wrote it last. */
static void change_record(const char* path, int step) {
    enum { kRecords = 16 };
    int fd = open(path, O_RDWR | O_CREAT, 0600), was = -1;
    CHECK(fd >= 0);
    off_t at = step % kRecords * (off_t)sizeof step;
    if (step >= kRecords) CHECK(pread(fd, &was, sizeof was, at) == sizeof was && was == step - kRecords);
    CHECK(pwrite(fd, &step, sizeof step, at) == sizeof step);
    close(fd);
}

static void replace(const char* path, int step) {
    char beside[64];
    snprintf(beside, sizeof beside, "%s.tmp", path);
    if (step > 0) CHECK(number_in(path) == step - 1);
    FILE* file = fopen(beside, "w");
    CHECK(file);
    fprintf(file, "%d of the replaced\n", step);
    fclose(file);
    CHECK(rename(beside, path) == 0);
}

static void rewrite(const char* path, int step) {
    if (step > 0) CHECK(number_in(path) == step - 1);
    FILE* file = fopen(path, "w");
    CHECK(file);
    fprintf(file, "%d of the rewritten\n", step);
    fclose(file);
}

/* There in every other ten steps. */
static void come_and_go(const char* path, int step) {
    int is = step % 20 >= 10, was = (step + 19) % 20 >= 10;
    if (step > 0) CHECK((access(path, F_OK) == 0) == was);
    if (is && !was) rewrite(path, 0);
    if (!is && was && step > 0) CHECK(unlink(path) == 0);
}

/* Grows, and is emptied from time to time. */
static void fill_and_empty(const char* path, int step) {
    if (step > 0) CHECK(size_of(path) == (step - 1) % 25 + 1);
    if (step > 0 && step % 25 == 0) CHECK(truncate(path, 0) == 0);
    FILE* file = fopen(path, "a");
    CHECK(file);
    fputc('x', file);
    fclose(file);
}

/* A name that points to another file every seven steps. */
static void point_elsewhere(const char* path, int step) {
    char target[32], now[32] = "";
    snprintf(target, sizeof target, "target.%d", step / 7 % 2);
    if (step > 0) {
        char due[32];
        snprintf(due, sizeof due, "target.%d", (step - 1) / 7 % 2);
        CHECK(readlink(path, now, sizeof now - 1) > 0 && strcmp(now, due) == 0);
    }
    if (step % 7 == 0) {
        if (step > 0) CHECK(unlink(path) == 0);
        CHECK(symlink(target, path) == 0);
    }
    add_line(path, "a", step);
}

/* A log that is put away every thirty steps, under the name of an older one. */
static void rotate(const char* path, int step) {
    if (step > 0 && step % 30 == 0) {
        char older[64];
        snprintf(older, sizeof older, "%s.1", path);
        CHECK(rename(path, older) == 0);
    }
    add_line(path, "a", step);
}

/* Where the environment said at the start. */
static void make_temporary(void) {
    char name[4096];
    snprintf(name, sizeof name, "%s/files.XXXXXX", getenv("TMPDIR"));
    int fd = mkstemp(name);
    CHECK(fd >= 0 && unlink(name) == 0);
    close(fd);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = atoi(argv[1]), pause = atoi(argv[2]);
    char own[32];
    snprintf(own, sizeof own, "rank.%d.log", rank);
    /* Once, and never again: what a step finds there. */
    if (rank == 0) rewrite("first.txt", 0);
    int kept_open = open("open.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    MPI_File mpi_file;
    MPI_File_open(MPI_COMM_WORLD, "mpi.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &mpi_file);
    for (int step = 0; step < steps; ++step) {
        int was = -1;
        if (step > 0) {
            MPI_File_read_at(mpi_file, rank * (MPI_Offset)sizeof was, &was, 1, MPI_INT, MPI_STATUS_IGNORE);
            CHECK(was == step - 1);
        }
        MPI_File_write_at(mpi_file, rank * (MPI_Offset)sizeof step, &step, 1, MPI_INT, MPI_STATUS_IGNORE);
        add_line(own, step == 0 ? "w" : "a", step);
        if (rank == 0) {
            replace("replaced.txt", step);
            rewrite("rewritten.txt", step);
            come_and_go("sometimes.txt", step);
            fill_and_empty("emptied.log", step);
            add_at_the_end("fortran.out", step);
            change_record("table.db", step);
            point_elsewhere("latest", step);
            rotate("rotated.log", step);
            CHECK(number_in("first.txt") == 0);
            if (getenv("TMPDIR")) make_temporary();
        }
        for (int turn = 0; turn < size; ++turn) {
            if (turn == rank) {
                char line[64];
                int length = snprintf(line, sizeof line, "rank %d step %d\n", rank, step);
                add_line("all.log", "a", step);
                CHECK(write(kept_open, line, (size_t)length) == length);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank == 0) {
            printf("step %d\n", step);
            fflush(stdout);
        }
        usleep((useconds_t)pause * 1000);
    }
    if (rank == 0) CHECK(unlink("first.txt") == 0);
    MPI_File_close(&mpi_file);
    close(kept_open);
    MPI_Finalize();
    return 0;
}
