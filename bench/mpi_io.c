// One file for all ranks, natively: collective MPI-IO against aligned writes at computed offsets, and a file
// per rank beside them. `mpi_io DIRECTORY MIB ROUNDS`: each rank writes MIB (a multiple of 4) of
// floating-point data and reads it again, in turns; rank 0 prints the medians. Written means synced; what is
// read was dropped from the page cache.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "median.h"

enum { files, direct, collective, ways };
static const char* const names[ways] = {"file per rank, pwrite", "one file, pwrite at offsets",
                                        "one file, MPI_File_write_at_all"};
enum { step_mib = 4, most_rounds = 64 };
static const size_t kStep = (size_t)step_mib << 20;
static int rank, ranks;

static void must(int good, const char* what) {
    if (good) return;
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_plain(const char* path, const char* data, size_t size, off_t base) {
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0600);
    if (fd < 0) fd = open(path, O_WRONLY | O_CREAT, 0600);  // tmpfs before Linux 6.6
    must(fd >= 0, path);
    for (size_t at = 0; at < size; at += kStep)
        must(pwrite(fd, data + at, kStep, base + (off_t)at) == (ssize_t)kStep, "pwrite");
    must(fsync(fd) == 0, "fsync");
    close(fd);
}

static void read_plain(const char* path, char* data, size_t size, off_t base) {
    int fd = open(path, O_RDONLY);
    must(fd >= 0, path);
    for (size_t at = 0; at < size; at += kStep)
        must(pread(fd, data + at, kStep, base + (off_t)at) == (ssize_t)kStep, "pread");
    close(fd);
}

static void forget(const char* path) {
    int fd = open(path, O_RDONLY);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static double together(double begin) {
    double took = MPI_Wtime() - begin, longest;
    MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mib = argc == 4 ? atoi(argv[2]) : 0, rounds = argc == 4 ? atoi(argv[3]) : 0;
    if (mib < step_mib || mib % step_mib || rounds < 1 || rounds > most_rounds) {
        fprintf(stderr, "mpi_io DIRECTORY MIB ROUNDS: MIB is a multiple of %d, ROUNDS 1 to %d\n", step_mib,
                most_rounds);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t size = (size_t)mib << 20;
    char *data = NULL, *back = NULL;
    must(posix_memalign((void**)&data, 4096, size) == 0 && posix_memalign((void**)&back, 4096, size) == 0,
         "memory");
    for (size_t i = 0; i < size / 8; ++i) ((double*)data)[i] = 300 + (double)(i * 2654435761u % 4096) + rank;
    double wrote[ways][most_rounds], read[ways][most_rounds];
    for (int round = 0; round < rounds; ++round)
        for (int way = 0; way < ways; ++way) {
            char path[4096];
            off_t base = way == files ? 0 : (off_t)size * rank;
            snprintf(path, sizeof path, way == files ? "%s/own-%d" : "%s/shared", argv[1],
                     way == files ? rank : 0);
            if (rank == 0 || way == files) unlink(path);
            if (rank == 0 && way == direct) {  // its length first, as `--layout shared` has it
                int fd = open(path, O_WRONLY | O_CREAT, 0600);
                must(fd >= 0 && ftruncate(fd, (off_t)size * ranks) == 0, path);
                close(fd);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            MPI_File file;
            if (way == collective) {
                must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                                   &file) == MPI_SUCCESS,
                     path);
                MPI_File_write_at_all(file, base, data, (int)(size / 8), MPI_DOUBLE, MPI_STATUS_IGNORE);
                MPI_File_sync(file);
                MPI_File_close(&file);
            } else {
                write_plain(path, data, size, base);
            }
            wrote[way][round] = together(begin);
            forget(path);
            memset(back, 0, size);
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
            if (way == collective) {
                MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
                MPI_File_read_at_all(file, base, back, (int)(size / 8), MPI_DOUBLE, MPI_STATUS_IGNORE);
                MPI_File_close(&file);
            } else {
                read_plain(path, back, size, base);
            }
            read[way][round] = together(begin);
            must(memcmp(data, back, size) == 0, "read something else than was written");
            MPI_Barrier(MPI_COMM_WORLD);
            if (way == files || rank == 0) unlink(path);
        }
    for (int way = 0; way < ways && rank == 0; ++way)
        printf("| %s | %.3f | %.3f |\n", names[way], median(wrote[way], rounds), median(read[way], rounds));
    MPI_Finalize();
    return 0;
}
