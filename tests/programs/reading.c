/* Reads a file line by line, as programs read their input: some lines before the moment of the checkpoint,
 * the rest after it. Rank 0 by stdio, the others by read(); all must see the same.
 *
 *   reading FILE */
#include <fcntl.h>
#include <stdint.h>

#include "hold.h"

enum { BEFORE = 3 };

static uint64_t sum_of(uint64_t sum, const char* text, size_t size) {
    for (size_t i = 0; i < size; ++i) sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
    return sum;
}

int main(int argc, char** argv) {
    int rank, size;
    char line[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int fd = open(argv[1], O_RDONLY);
    FILE* file = fdopen(dup(fd), "r");
    if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
    /* One line holds the descriptor's place in the middle of the file, not at the end of stdio's buffer. */
    setvbuf(file, 0, _IONBF, 0);
    uint64_t sum = 1469598103934665603u;
    int lines = 0;
    for (; lines < BEFORE && fgets(line, sizeof line, file); ++lines) sum = sum_of(sum, line, strlen(line));
    hold();
    char last[256] = "";
    long rest = 0;
    if (rank == 0) {
        /* From there by larger pieces: a call for each byte takes longer than all the rest. */
        file = fdopen(dup(fd), "r");
        if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
        for (; fgets(line, sizeof line, file); ++rest) {
            sum = sum_of(sum, line, strlen(line));
            strcpy(last, line);
        }
        last[strcspn(last, "\n")] = 0;
        printf("%d lines, then %ld, the last '%s', sum %016llx\n", lines, rest, last,
               (unsigned long long)sum);
    }
    long ends = 0;
    for (ssize_t n; rank != 0 && (n = read(fd, line, sizeof line)) > 0;)
        for (ssize_t i = 0; i < n; ++i) ends += line[i] == '\n';
    long all[2] = {0, 0}, mine[2] = {rank == 0 ? rest : 0, rank == 1 ? ends : 0};
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("both %s\n", size == 1 || all[0] == all[1] ? "alike" : "different");
    MPI_Finalize();
    return 0;
}
