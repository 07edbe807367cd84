/* What ranks of one node share by other means than MPI: made, used, held, used again. Each case says lines
 * that a run without Fermata says, too.
 *
 *     shared_state CASE DIRECTORY
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "hold.h"

static int rank, size;
static const char* directory;
enum { kBytes = 1 << 20, kInts = kBytes / 4 };

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Ranks speak one after the other. */
static void say(const char* format, ...) {
    char text[500], *all = rank == 0 ? malloc(sizeof text * (size_t)size) : NULL;
    va_list words;
    va_start(words, format);
    memset(text, 0, sizeof text);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    MPI_Gather(text, sizeof text, MPI_CHAR, all, sizeof text, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < size; ++i) printf("rank %d: %s\n", i, all + i * (int)sizeof text);
    fflush(stdout);
    free(all);
}

/* A number that is the same in all ranks of a job, and another in another job. */
static int job_number(void) {
    int id = getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return id;
}

/* Every rank writes its part of the memory, holds, reads all of it; then the same once more. */
static void turn(volatile int* m, int round) {
    for (int i = rank; i < kInts; i += size * 37) m[i] = round * 1000 + i % 997 + rank;
    meet();
}
static void look(volatile int* m, const char* when) {
    unsigned long long sum = 0;
    for (int i = 0; i < kInts; ++i) sum = sum * 31 + (unsigned)m[i];
    say("%s: %016llx", when, sum);
    meet();
}
static void use_memory(volatile int* m) {
    turn(m, 1);
    hold();
    look(m, "as held");
    turn(m, 2);
    look(m, "written again");
    if (rank == size - 1) m[5] = 77;
    meet();
    say("last: %d", m[5]);
}

static void* must(void* at, const char* what) {
    if (at == MAP_FAILED) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return at;
}
static int must_fd(int fd, const char* what) {
    if (fd < 0) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return fd;
}
static void* map_fd(int fd) {
    return must(mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), "mmap");
}

/* ---- System V segments */

static void segment(int keep) {
    int id = -1;
    if (rank == 0) id = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    volatile int* m = must(shmat(id, NULL, 0), "shmat");
    meet();
    if (rank == 0 && !keep) shmctl(id, IPC_RMID, NULL);
    meet();
    use_memory(m);
    if (keep) {
        struct shmid_ds info;
        CHECK(shmctl(id, IPC_STAT, &info) == 0);
        say("attached: %d", (int)info.shm_nattch);
        meet();
        volatile int* again = must(shmat(id, NULL, 0), "shmat again");
        say("again: %d", again[5]);
        CHECK(shmdt((void*)again) == 0);
    }
    CHECK(shmdt((void*)m) == 0);
    meet();
    if (keep && rank == 0) CHECK(shmctl(id, IPC_RMID, NULL) == 0);
}
/* Between two uses nobody has it attached. */
static void segment_detached(void) {
    int id = -1;
    if (rank == 0) id = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    volatile int* m = must(shmat(id, NULL, 0), "shmat");
    turn(m, 1);
    CHECK(shmdt((void*)m) == 0);
    meet();
    hold();
    m = must(shmat(id, NULL, 0), "shmat");
    meet();
    look(m, "as held");
    turn(m, 2);
    look(m, "written again");
    CHECK(shmdt((void*)m) == 0);
    meet();
    if (rank == 0) CHECK(shmctl(id, IPC_RMID, NULL) == 0);
}
static void segment_removed(void) { segment(0); }
static void segment_kept(void) { segment(1); }

/* ---- POSIX shared memory; memfds and removed files by /proc/PID/fd */

static int open_posix(char* name, int job) {
    sprintf(name, "/fermata-test-%d", job);
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600), "shm_open");
        CHECK(ftruncate(fd, kBytes) == 0);
    }
    meet();
    if (rank != 0) fd = must_fd(shm_open(name, O_RDWR, 0), "shm_open");
    meet();
    return fd;
}

static void posix_named(void) {
    char name[64];
    int fd = open_posix(name, job_number());
    volatile int* m = map_fd(fd);
    close(fd);
    use_memory(m);
    meet();
    if (rank == 0) CHECK(shm_unlink(name) == 0);
}

/* Only a page is mapped, by rank 0; the rest is behind the descriptor. */
static void posix_partly(void) {
    char name[64];
    int fd = open_posix(name, job_number());
    volatile int* m = must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096), "mmap");
    if (rank != 0) munmap((void*)m, 4096);
    if (rank == 0) m[1] = 4711;
    int number = 30 + rank, got[3] = {0};
    CHECK(pwrite(fd, &number, sizeof number, 100000 + 8 * rank) == sizeof number);
    meet();
    hold();
    CHECK(pread(fd, got, sizeof *got, 4096 + 4) > 0 && pread(fd, got + 1, sizeof *got, 100000) > 0 &&
          pread(fd, got + 2, sizeof *got, 100000 + 8 * (size - 1)) > 0);
    say("held: %d %d %d", got[0], got[1], got[2]);
    meet();
    number = 50;
    if (rank == size - 1) CHECK(pwrite(fd, &number, sizeof number, 4096 + 4) == sizeof number);
    meet();
    say("after: %d", rank == 0 ? m[1] : 0);
    meet();
    if (rank == 0) CHECK(shm_unlink(name) == 0);
}

static void posix_unlinked(void) {
    char name[64];
    int fd = open_posix(name, job_number());
    volatile int* m = map_fd(fd);
    close(fd);
    meet();
    if (rank == 0) shm_unlink(name);
    meet();
    use_memory(m);
}

/* Rank 0 only writes, the others only read what they opened for reading. */
static void posix_readers(void) {
    char name[64];
    int fd = open_posix(name, job_number());
    volatile int* m = map_fd(fd);
    if (rank != 0) {
        munmap((void*)m, kBytes);
        close(fd);
        fd = must_fd(shm_open(name, O_RDONLY, 0), "shm_open");
        m = must(mmap(NULL, kBytes, PROT_READ, MAP_SHARED, fd, 0), "mmap");
    }
    close(fd);
    if (rank == 0)
        for (int i = 0; i < kInts; i += 11) m[i] = i;
    meet();
    hold();
    look(m, "as held");
    if (rank == 0) m[9] = 5;
    meet();
    say("last: %d", m[9]);
    meet();
    if (rank == 0) CHECK(shm_unlink(name) == 0);
}

static int fd_of_rank_0(int fd) {
    int from[2] = {getpid(), fd};
    MPI_Bcast(from, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        char path[64];
        sprintf(path, "/proc/%d/fd/%d", from[0], from[1]);
        fd = must_fd(open(path, O_RDWR), path);
    }
    meet();
    return fd;
}

static void memfd(void) {
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(memfd_create("shared", MFD_CLOEXEC), "memfd_create");
        CHECK(ftruncate(fd, kBytes + 4096) == 0);
    }
    fd = fd_of_rank_0(fd);
    volatile int* m = map_fd(fd);
    /* By the descriptor, too, and behind what is mapped. */
    int number = 40 + rank;
    CHECK(pwrite(fd, &number, sizeof number, kBytes + 8 * rank) == sizeof number);
    use_memory(m);
    number = 900 + rank;
    CHECK(pwrite(fd, &number, sizeof number, 4 * (100 + rank)) == sizeof number);
    meet();
    int behind = 0, last = size - 1;
    CHECK(pread(fd, &behind, sizeof behind, kBytes + 8 * last) == sizeof behind);
    say("by descriptor %d, by mapping %d", behind, m[100 + last]);
    meet();
}

/* Only open, in no rank mapped. */
static void memfd_unmapped(void) {
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(memfd_create("shared", MFD_CLOEXEC), "memfd_create");
        CHECK(ftruncate(fd, 10000) == 0);
    }
    fd = fd_of_rank_0(fd);
    CHECK(pwrite(fd, &rank, sizeof rank, 5000 + 4 * rank) == sizeof rank);
    meet();
    hold();
    int got[8] = {0};
    CHECK(pread(fd, got, sizeof(int) * (size_t)size, 5000) > 0);
    say("held: %d %d", got[0], got[size - 1]);
    int number = 60 + rank;
    meet();
    CHECK(pwrite(fd, &number, sizeof number, 4 * rank) == sizeof number);
    meet();
    CHECK(pread(fd, got, sizeof(int) * (size_t)size, 0) > 0);
    say("after: %d %d", got[0], got[size - 1]);
}

static int open_file(char* path) {
    sprintf(path, "%s/shared-file", directory);
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(open(path, O_CREAT | O_TRUNC | O_RDWR, 0600), path);
        CHECK(ftruncate(fd, kBytes) == 0);
    }
    meet();
    if (rank != 0) fd = must_fd(open(path, O_RDWR), path);
    meet();
    return fd;
}
static void file_linked(void) {
    char path[4096];
    int fd = open_file(path);
    volatile int* m = map_fd(fd);
    close(fd);
    use_memory(m);
}
static void file_removed(void) {
    char path[4096];
    int fd = open_file(path);
    volatile int* m = map_fd(fd);
    meet();
    if (rank == 0) unlink(path);
    meet();
    use_memory(m);
    int got = 0;
    CHECK(pread(fd, &got, sizeof got, 20) == sizeof got);
    say("by descriptor: %d", got);
}

/* Each rank has mapped another part, which reaches into the next one's. */
static void parts(void) {
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(memfd_create("parts", MFD_CLOEXEC), "memfd_create");
        CHECK(ftruncate(fd, kBytes) == 0);
    }
    fd = fd_of_rank_0(fd);
    int page = 4096, pages = 16, from = rank * 8 * page;
    volatile int* m =
        must(mmap(NULL, (size_t)(pages * page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, from), "mmap");
    meet();
    if (rank != 0 || size == 1) close(fd);
    for (int i = 0; i < 8; ++i) m[i * 1024] = rank * 100 + i;
    meet();
    hold();
    if (rank == 0) close(fd);
    unsigned sum = 0;
    for (int i = 0; i < pages; ++i) sum = sum * 7 + (unsigned)m[i * 1024];
    say("held: %u", sum);
    meet();
    m[8 * 1024 + 3] = 5 + rank; /* the next rank's first page */
    meet();
    say("after: %d", m[3]);
}

/* 32 MiB that do not compress. */
static void large(void) {
    const size_t bytes = 32 << 20;
    int fd = -1;
    if (rank == 0) {
        fd = must_fd(memfd_create("large", MFD_CLOEXEC), "memfd_create");
        CHECK(ftruncate(fd, (off_t)bytes) == 0);
    }
    fd = fd_of_rank_0(fd);
    unsigned long long* m = must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), "mmap");
    unsigned long long x = 88172645463325252ULL;
    if (rank == 0)
        for (size_t i = 0; i < bytes / 8; ++i) m[i] = x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    meet();
    hold();
}

/* ---- process-shared mutex, condition variable, semaphore */

struct Together {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    sem_t semaphore;
    int turn, count;
};
static void turns(struct Together* t, int until) {
    for (;;) {
        CHECK(pthread_mutex_lock(&t->mutex) == 0);
        while (t->turn < until && t->turn % size != rank) pthread_cond_wait(&t->changed, &t->mutex);
        int over = t->turn >= until;
        if (!over) ++t->turn, t->count += rank + 1;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
        if (over) break;
    }
    meet();
}
static void* waiter(void* at) {
    struct Together* t = at;
    pthread_mutex_lock(&t->mutex);
    while (t->turn < 1000) pthread_cond_wait(&t->changed, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
    while (sem_wait(&t->semaphore) != 0) {
    }
    return NULL;
}
static void locks(void) {
    char name[64];
    int fd = open_posix(name, job_number());
    struct Together* t = map_fd(fd);
    meet();
    if (rank == 0) {
        shm_unlink(name);
        pthread_mutexattr_t mutex;
        pthread_condattr_t cond;
        pthread_mutexattr_init(&mutex);
        pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_ERRORCHECK);
        pthread_condattr_init(&cond);
        pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&t->mutex, &mutex);
        pthread_cond_init(&t->changed, &cond);
        sem_init(&t->semaphore, 1, 0);
    }
    meet();
    turns(t, 20);
    pthread_t thread; /* of every rank: waits over the checkpoint */
    pthread_create(&thread, NULL, waiter, t);
    usleep(20000);
    meet();
    /* The last rank holds the mutex. */
    if (rank == size - 1) CHECK(pthread_mutex_lock(&t->mutex) == 0);
    hold();
    if (rank == size - 1) {
        CHECK(pthread_mutex_lock(&t->mutex) == EDEADLK);
        CHECK(pthread_mutex_unlock(&t->mutex) == 0);
    }
    meet();
    say("held: turn %d count %d", t->turn, t->count);
    meet();
    turns(t, 40);
    say("after: turn %d count %d", t->turn, t->count);
    meet();
    if (rank == 0) {
        pthread_mutex_lock(&t->mutex);
        t->turn = 1000;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
        for (int i = 0; i < size; ++i) sem_post(&t->semaphore);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    say("joined");
}

static void named_semaphore(void) {
    char name[64];
    sprintf(name, "/fermata-sem-%d", job_number());
    sem_t* s = SEM_FAILED;
    if (rank == 0) s = sem_open(name, O_CREAT | O_EXCL, 0600, 3);
    meet();
    if (rank != 0) s = sem_open(name, 0);
    CHECK(s != SEM_FAILED);
    meet();
    if (rank == 0) sem_wait(s);
    meet();
    hold();
    int value = -1;
    sem_getvalue(s, &value);
    say("held: %d", value);
    meet();
    sem_post(s);
    meet();
    sem_getvalue(s, &value);
    say("after: %d", value);
    meet();
    sem_t* again = sem_open(name, 0);
    if (again == SEM_FAILED) perror(name);
    CHECK(again != SEM_FAILED);
    sem_getvalue(again, &value);
    say("opened again: %d", value);
    meet();
    if (rank == 0) CHECK(sem_unlink(name) == 0);
}

/* ---- queues and pipes */

static void queue(int keep) {
    char name[64];
    sprintf(name, "/fermata-queue-%d", job_number());
    struct mq_attr a = {.mq_maxmsg = 8, .mq_msgsize = 32};
    mqd_t q = (mqd_t)-1;
    if (rank == 0) q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
    meet();
    if (rank != 0) q = mq_open(name, O_RDWR);
    CHECK(q != (mqd_t)-1);
    meet();
    if (rank == 0 && !keep) CHECK(mq_unlink(name) == 0);
    if (rank == 0) {
        CHECK(mq_send(q, "one", 4, 1) == 0);
        CHECK(mq_send(q, "two", 4, 5) == 0);
        CHECK(mq_send(q, "three", 6, 5) == 0);
    }
    meet();
    hold();
    char text[64] = "none";
    unsigned priority = 0;
    if (rank == size - 1) {
        char got[32];
        text[0] = 0;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3;
        for (int i = 0; i < 3; ++i) {
            ssize_t n = mq_timedreceive(q, got, sizeof got, &priority, &until);
            sprintf(text + strlen(text), "%s/%u ", n > 0 ? got : strerror(errno), priority);
        }
    }
    say("got %s", text);
    meet();
    if (rank == size - 1) CHECK(mq_send(q, "back", 5, 2) == 0);
    meet();
    if (rank == 0) CHECK(mq_receive(q, text, sizeof text, &priority) == 5);
    say("then %s %u", rank == 0 ? text : "", rank == 0 ? priority : 0);
    meet();
    struct mq_attr now;
    CHECK(mq_getattr(q, &now) == 0);
    say("%ld of %ld", now.mq_curmsgs, now.mq_maxmsg);
    meet();
    mq_close(q);
    if (rank == 0 && keep) CHECK(mq_unlink(name) == 0);
}
static void queue_named(void) { queue(1); }
static void queue_unlinked(void) { queue(0); }

/* Every rank has it open for both, rank 0 has written. */
static void fifo(void) {
    char path[4096];
    sprintf(path, "%s/fifo", directory);
    if (rank == 0) CHECK(mkfifo(path, 0600) == 0);
    meet();
    int fd = must_fd(open(path, O_RDWR | O_NONBLOCK), path);
    meet();
    if (rank == 0) CHECK(write(fd, "waiting", 8) == 8);
    meet();
    hold();
    char text[64] = "";
    ssize_t n = 0;
    if (rank == size - 1) n = read(fd, text, sizeof text);
    say("got %zd '%s'", n, text);
    meet();
    if (rank == size - 1) CHECK(write(fd, "back", 5) == 5);
    meet();
    if (rank == 0) n = read(fd, text, sizeof text);
    say("then %zd '%s'", rank == 0 ? n : 0, rank == 0 ? text : "");
}

static void pipe_without_name(void) {
    int ends[2] = {-1, -1};
    if (rank == 0) CHECK(pipe(ends) == 0);
    int from[3] = {getpid(), ends[0], ends[1]};
    MPI_Bcast(from, 3, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        char path[64];
        sprintf(path, "/proc/%d/fd/%d", from[0], from[1]);
        ends[0] = must_fd(open(path, O_RDONLY), path);
    }
    meet();
    if (rank == 0) close(ends[0]);
    if (rank == 0) CHECK(write(ends[1], "waiting", 8) == 8);
    meet();
    hold();
    char text[64] = "";
    ssize_t n = 0;
    if (rank == size - 1) n = read(ends[0], text, sizeof text);
    say("got %zd '%s'", n, text);
    meet();
    if (rank == 0) CHECK(write(ends[1], "more", 5) == 5);
    meet();
    if (rank == size - 1) n = read(ends[0], text, sizeof text);
    say("then %zd '%s'", n, text);
}

/* ---- System V semaphores and messages */

static void semaphores(void) {
    int id = -1;
    if (rank == 0) id = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    struct sembuf up = {1, (short)(2 + rank), 0};
    CHECK(semop(id, &up, 1) == 0);
    meet();
    hold();
    say("held: %d", semctl(id, 1, GETVAL));
    meet();
    CHECK(semop(id, &up, 1) == 0);
    meet();
    say("after: %d", semctl(id, 1, GETVAL));
    meet();
    if (rank == 0) CHECK(semctl(id, 0, IPC_RMID) == 0);
}

struct Note {
    long type;
    char text[32];
};
static void messages(void) {
    int id = -1;
    if (rank == 0) id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    struct Note note = {1 + rank, "note"};
    note.text[4] = (char)('0' + rank);
    CHECK(msgsnd(id, &note, sizeof note.text, 0) == 0);
    meet();
    hold();
    int next = (rank + 1) % size;
    memset(&note, 0, sizeof note);
    ssize_t n = msgrcv(id, &note, sizeof note.text, 1 + next, IPC_NOWAIT);
    say("got %zd %s", n, note.text);
    struct msqid_ds info;
    meet();
    CHECK(msgctl(id, IPC_STAT, &info) == 0);
    say("left %d", (int)info.msg_qnum);
    meet();
    if (rank == 0) CHECK(msgctl(id, IPC_RMID, NULL) == 0);
}

/* Of rank 0, in all ranks: what is warned of. */
static void event(void) {
    int fd = rank == 0 ? must_fd(eventfd(3, 0), "eventfd") : -1;
    int from[2] = {getpid(), fd};
    MPI_Bcast(from, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        int process = must_fd((int)syscall(SYS_pidfd_open, from[0], 0), "pidfd_open");
        fd = must_fd((int)syscall(SYS_pidfd_getfd, process, from[1], 0), "pidfd_getfd");
        close(process);
    }
    meet();
    hold();
    unsigned long long more = 1;
    say("written %zd", write(fd, &more, sizeof more));
}

static void lease(void) {
    char path[4096];
    sprintf(path, "%s/leased.%d", directory, rank);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    int fd = must_fd(open(path, O_RDONLY), path);
    CHECK(fcntl(fd, F_SETLEASE, F_RDLCK) == 0);
    hold();
    say("lease %d", fcntl(fd, F_GETLEASE) == F_RDLCK);
    meet();
    say("given back %d", fcntl(fd, F_SETLEASE, F_UNLCK));
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {
        {"segment_removed", segment_removed},
        {"segment_kept", segment_kept},
        {"segment_detached", segment_detached},
        {"posix_partly", posix_partly},
        {"posix_named", posix_named},
        {"posix_unlinked", posix_unlinked},
        {"posix_readers", posix_readers},
        {"memfd", memfd},
        {"memfd_unmapped", memfd_unmapped},
        {"file_linked", file_linked},
        {"file_removed", file_removed},
        {"parts", parts},
        {"large", large},
        {"locks", locks},
        {"named_semaphore", named_semaphore},
        {"queue_named", queue_named},
        {"queue_unlinked", queue_unlinked},
        {"fifo", fifo},
        {"pipe_without_name", pipe_without_name},
        {"semaphores", semaphores},
        {"messages", messages},
        {"event", event},
        {"lease", lease},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    directory = argv[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            meet();
            MPI_Finalize();
            return 0;
        }
    MPI_Abort(MPI_COMM_WORLD, 2);
}
