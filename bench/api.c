// What fermata_save() costs beside a plain copy, and a durable save beside a plain write and fsync, of the
// same bytes, in turns: `api DIR MIB ROUNDS [OPTIONS]`. One line a round: seconds of memcpy, of
// fermata_save() until it returns, until it is durable, and of write + fsync; of the rank that takes longest,
// all begin together.
#include <fcntl.h>
#include <fermata/fermata.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank;

static void die(const char* why) {
    fprintf(stderr, "rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Pages as libfermata has them for its copy.
static char* pages(size_t size) {
    char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) die("no memory");
    madvise(at, size, MADV_HUGEPAGE);
    memset(at, 1, size);
    return at;
}

static double begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static double since(double began) {
    double mine = MPI_Wtime() - began, longest;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static double copy(char* to, const char* from, size_t size) {
    double began = begin();
    memcpy(to, from, size);
    return since(began);
}

static double plain(const char* directory, const char* from, size_t size) {
    char name[4096];
    snprintf(name, sizeof name, "%s/plain-%d", directory, rank);
    double began = begin();
    int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) die("no file");
    for (size_t done = 0; done < size;) {
        ssize_t n = write(file, from + done, size - done);
        if (n <= 0) die("a write failed");
        done += (size_t)n;
    }
    if (fsync(file) != 0 || close(file) != 0) die("fsync failed");
    double took = since(began);
    unlink(name);
    return took;
}

static void save(fermata_handle* f, int64_t step, double* staged, double* durable) {
    double began = begin();
    if (fermata_save(f, step) != FERMATA_OK) die(fermata_message(f));
    *staged = since(began);
    if (fermata_wait(f) != FERMATA_OK) die(fermata_message(f));
    *durable = since(began);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) die("api DIR MIB ROUNDS [OPTIONS]");
    size_t size = (size_t)atol(argv[2]) << 20;
    char *data = pages(size), *other = pages(size), place[4096], options[4096];
    unsigned long long noise = (unsigned)rank + 1;
    for (size_t i = 0; i < size / 8; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        ((double*)data)[i] = (double)(i % 4096) + (double)(noise >> 40) * 1e-9;
    }
    snprintf(place, sizeof place, "%s/state", argv[1]);
    snprintf(options, sizeof options, "keep=1%s%s", argc > 4 ? "," : "", argc > 4 ? argv[4] : "");
    fermata_handle* f;
    if (fermata_open(&f, MPI_COMM_WORLD, place, options) != FERMATA_OK ||
        fermata_protect_local(f, "data", data, FERMATA_BYTE, (int64_t)size) != FERMATA_OK)
        die(fermata_message(f));
    for (int64_t round = -1; round < atol(argv[3]); round++) {  // the first finds the memory
        double staged, durable, copied, written;
        copied = copy(other, data, size);
        if (round % 2 == 0) written = plain(argv[1], data, size);
        save(f, round, &staged, &durable);
        if (round % 2 != 0) written = plain(argv[1], data, size);
        copied = (copied + copy(other, data, size)) / 2;  // before and behind
        if (rank == 0 && round >= 0) printf("%.6f %.6f %.6f %.6f\n", copied, staged, durable, written);
        fflush(stdout);
    }
    if (fermata_close(f) != FERMATA_OK) die(fermata_message(NULL));
    MPI_Finalize();
    return other[size / 2] == 42;
}
