/* Descriptors of any number: the program raises its soft limit to the hard one, as servers do, and has as
 * many open as it may, the highest among them.
 *
 *   descriptors MOST
 *
 * Right after a checkpoint and after a restart: each is what it was; no number below the limit is anybody
 * else's; above it there is none, and the limit is answered the same by all that ask and set it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "hold.h"

enum { SAME_FILE, OWN_OFFSET, EVENT, PIPE, PAIR, KINDS };

static int first, count;
static char name[64];

/* What stands at each number; pipes and pairs have two numbers. Few of what is dear. */
static int kind_of(int at) {
    if (at % 100 == 0 || at % 100 == 1) return at % 200 < 100 ? PIPE : PAIR;
    return at % 50 == 7 ? EVENT : at % 2 ? SAME_FILE : OWN_OFFSET;
}

static void put(int from, int to) {
    if (from == to) return;
    CHECK(dup2(from, to) == to);
    close(from);
}

static void make(int file) {
    for (int at = 0; at < count; ++at) {
        int fd = first + at, ends[2];
        switch (kind_of(at)) {
            case SAME_FILE:
                CHECK(dup2(file, fd) == fd);
                break;
            case OWN_OFFSET:
                put(open(name, O_RDONLY), fd);
                CHECK(lseek(fd, at % 1000, SEEK_SET) == at % 1000);
                break;
            case EVENT:
                put(eventfd((unsigned)at, 0), fd);
                break;
            default:
                if (at % 2) break;
                CHECK((kind_of(at) == PIPE ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) == 0);
                CHECK(write(ends[1], &at, sizeof at) == sizeof at);
                /* Kept out of the way of each other. */
                int high = fcntl(ends[1], F_DUPFD, fd + 2);
                CHECK(high >= 0);
                close(ends[1]);
                put(ends[0], fd);
                put(high, fd + 1);
        }
    }
}

static void look(void) {
    for (int at = 0; at < count; ++at) {
        int fd = first + at, byte = 0;
        unsigned long long value = 0;
        switch (kind_of(at)) {
            case SAME_FILE:
                CHECK(lseek(fd, 0, SEEK_CUR) == 77);
                break;
            case OWN_OFFSET:
                CHECK(lseek(fd, 0, SEEK_CUR) == at % 1000);
                break;
            case EVENT:
                CHECK(read(fd, &value, sizeof value) == sizeof value && value == (unsigned)at);
                break;
            default:
                if (at % 2) break;
                CHECK(read(fd, &byte, sizeof byte) == sizeof byte && byte == at);
                CHECK(write(fd + 1, &at, sizeof at) == sizeof at);
                CHECK(read(fd, &byte, sizeof byte) == sizeof byte && byte == at);
        }
    }
}

static rlim_t limits(void) {
    struct rlimit limit, other;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(prlimit(0, RLIMIT_NOFILE, NULL, &other) == 0);
    CHECK(other.rlim_cur == limit.rlim_cur && other.rlim_max == limit.rlim_max);
    CHECK(prlimit(getpid(), RLIMIT_NOFILE, NULL, &other) == 0 && other.rlim_max == limit.rlim_max);
    CHECK((rlim_t)sysconf(_SC_OPEN_MAX) == limit.rlim_cur && getdtablesize() == (int)limit.rlim_cur);
    return limit.rlim_max;
}

/* Numbers from the limit on: nobody's. */
static void beyond(int limit) {
    for (int fd = limit; fd < limit + 100; ++fd) {
        CHECK(dup2(0, fd) == -1 && errno == EBADF);
        CHECK(dup3(0, fd, O_CLOEXEC) == -1 && errno == EBADF);
        CHECK(close(fd) == -1 && errno == EBADF);
    }
    CHECK(fcntl(0, F_DUPFD, limit) == -1 && errno == EINVAL);
    struct rlimit wrong = {(rlim_t)limit, (rlim_t)limit - 1};
    CHECK(setrlimit(RLIMIT_NOFILE, &wrong) == -1 && errno == EINVAL);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    first = (int)limit.rlim_cur < 200 ? (int)limit.rlim_cur : 200; /* what MPI has natively is below */
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int last = (int)limits() - 1;
    const int most = argc > 1 ? atoi(argv[1]) : 1000;
    count = last - first < most ? last - first : most;
    count -= count % 2 + 2;
    snprintf(name, sizeof name, "descriptors.%d", rank);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, 1000) == 0 && lseek(file, 77, SEEK_SET) == 77);
    make(file);
    CHECK(dup2(file, last) == last);
    beyond(last + 1);
    hold();
    look();
    CHECK(lseek(last, 0, SEEK_CUR) == 77);
    CHECK((int)limits() == last + 1);
    beyond(last + 1);
    limit.rlim_cur = limit.rlim_max = (rlim_t)last - 10;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0 && (int)limits() == last - 10);
    CHECK(dup2(file, last) == -1 && errno == EBADF);
    int all = 0;
    MPI_Allreduce(&count, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all > 0);
    hash_bytes(&rank, sizeof rank);
    verdict("descriptors");
    if (rank == 0) fprintf(stderr, "descriptors of rank 0: %d\n", count);
    MPI_Finalize();
    return 0;
}
