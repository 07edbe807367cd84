/* Writes files as solvers do: a file of its own through stdio, one that all ranks write at their places, one
 * that is made under another name and then renamed; a log that it appends to, and one that it opens anew for
 * each line; records that it reads, changes and writes, and a scratch file.
 *
 *   writes_files STEPS */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 16 };

/* Changes one record; what was in it. */
static long change(int file, int step, int by) {
    long record = 0;
    const off_t at = step % RECORDS * (off_t)sizeof record;
    if (pread(file, &record, sizeof record, at) < 0) exit(6);
    record = record * 3 + by;
    if (pwrite(file, &record, sizeof record, at) != sizeof record) exit(7);
    if (step % 60 == 59 && ftruncate(file, RECORDS / 2 * (off_t)sizeof record) != 0) exit(8);
    return record;
}

static void append(const char* name, int step) {
    FILE* log = fopen(name, "a");
    if (log == NULL) exit(9);
    fprintf(log, "line of step %d\n", step);
    fclose(log);
}

/* A file without a name; what it holds is what was written to it. */
static int scratch_file(int step) {
    char name[] = "scratch.XXXXXX";
    const int file = mkstemp(name);
    if (file < 0 || write(file, &step, sizeof step) != sizeof step || unlink(name) != 0) exit(10);
    return file;
}
static int kept_in(int file) {
    int step = -1;
    if (pread(file, &step, sizeof step, 0) != sizeof step) exit(11);
    close(file);
    return step;
}

int main(int argc, char** argv) {
    int rank, size;
    char name[64], fresh[64], anew[64];
    struct stat kept;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "steps.%d", rank);
    FILE* own = fopen(name, "w");
    int shared = open("shared", O_WRONLY | O_CREAT, 0644);
    snprintf(name, sizeof name, "log.%d", rank);
    FILE* log = fopen(name, "a");
    snprintf(anew, sizeof anew, "log.anew.%d", rank);
    snprintf(name, sizeof name, "records.%d", rank);
    int records = open(name, O_RDWR | O_CREAT, 0644);
    int scratch = scratch_file(0);
    if (own == NULL || shared < 0 || log == NULL || records < 0) return 2;
    for (int step = 0; step < atoi(argv[1]); ++step) {
        int sum, mine = step + rank;
        fprintf(own, "step %d of rank %d\n", step, rank);
        if (step % 7 == 0) fflush(own);
        if (pwrite(shared, &mine, sizeof mine, (step * size + rank) * (off_t)sizeof mine) < 0) return 3;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(3000);
        long record = change(records, step, sum);
        fprintf(log, "%ld\n", record);
        if (step % 5 == 0) fflush(log);
        if (step % 10 == 0) append(anew, step);
        if (step % 50 == 0) {
            fprintf(own, "scratch %d\n", kept_in(scratch));
            scratch = scratch_file(step);
            snprintf(name, sizeof name, "state.%d", rank);
            snprintf(fresh, sizeof fresh, "state.%d.new", rank);
            FILE* state = fopen(fresh, "w");
            if (state == NULL) return 4;
            fprintf(state, "%d %d\n", step, sum);
            fclose(state);
            if (rename(fresh, name) != 0 || stat(name, &kept) != 0) return 5;
            fprintf(own, "%lld bytes kept\n", (long long)kept.st_size);
        }
        if (rank == 0) printf("step %d %d %ld\n", step, sum, record);
        fflush(stdout);
    }
    fclose(own);
    fclose(log);
    close(records);
    close(scratch);
    close(shared);
    MPI_Finalize();
    return 0;
}
