/* What belongs to a process, one case per behaviour (names: those of CRIU's ZDTM; the
 * tests are ours). All is set up, then comes the moment of the checkpoint (hold.h), then each case looks
 * whether all is as it was and still works, and says "NAME right" or what is not true.
 *
 *   process DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "hold.h"
#include "one_shots.h"

enum { PAGE = 4096 };
static char directory[1024];
static const char* in(const char* name) {
    static char path[4][1200];
    static int next;
    char* to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", directory, name);
    return to;
}

#define NEED(condition) \
    if (!(condition)) return #condition
typedef const char* Said; /* NULL: all is well */

static int new_file(const char* name, int flags, const char* content) {
    int fd = open(in(name), O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
    if (write(fd, content, strlen(content)) < 0) perror(name);
    return fd;
}
static int holds(int fd, const char* content) {
    char text[256] = "";
    return pread(fd, text, sizeof text - 1, 0) == (ssize_t)strlen(content) && strcmp(text, content) == 0;
}
/* Protection and flags of the mapping at an address, "rwxp" and VmFlags. */
static int mapping(void* at, char access[5], char* flags, size_t size) {
    FILE* file = fopen("/proc/self/smaps", "r");
    char line[1024];
    unsigned long begin, end, want = (unsigned long)at;
    int found = 0;
    *flags = 0;
    while (fgets(line, sizeof line, file)) {
        char what[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, what) == 3 && line[8] != ':') {
            if (found) break;
            if (begin <= want && want < end) found = 1, strcpy(access, what);
        } else if (found && strncmp(line, "VmFlags:", 8) == 0) {
            snprintf(flags, size, "%s", line + 8);
        }
    }
    fclose(file);
    return found;
}

/* ---- memory */
static char *maps[4], *sparse, *advised[3], *guarded, *unlinked_private, *unlinked_shared;
static const int prots[4] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
                             PROT_READ | PROT_WRITE | PROT_EXEC};
static void* anonymous(size_t size) {
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void maps00_set(void) {
    for (int i = 0; i < 4; ++i) {
        maps[i] = anonymous(2 * PAGE);
        memset(maps[i], 'a' + i, PAGE);
        mprotect(maps[i], 2 * PAGE, prots[i]);
    }
}
static Said maps00(void) {
    static const char* wanted[4] = {"---p", "r--p", "rw-p", "rwxp"};
    for (int i = 0; i < 4; ++i) {
        char access[5], flags[256];
        NEED(mapping(maps[i], access, flags, sizeof flags));
        NEED(strcmp(access, wanted[i]) == 0);
        mprotect(maps[i], 2 * PAGE, PROT_READ);
        NEED(maps[i][0] == 'a' + i && maps[i][PAGE - 1] == 'a' + i && maps[i][PAGE] == 0);
    }
    return 0;
}
static void maps01_set(void) { /* much reserved, little touched */
    sparse = mmap(0, 1ul << 32, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < 64; ++i) sparse[i << 26] = (char)(i + 1);
}
static Said maps01(void) {
    for (size_t i = 0; i < 64; ++i) NEED(sparse[i << 26] == (char)(i + 1) && sparse[(i << 26) + PAGE] == 0);
    NEED(munmap(sparse, 1ul << 32) == 0);
    return 0;
}
static char* neighbours;
static void maps04_set(void) { /* one mapping in many parts */
    neighbours = anonymous(256 * PAGE);
    for (int i = 0; i < 256; ++i) neighbours[i * PAGE] = (char)i;
    for (int i = 0; i < 256; i += 2) mprotect(neighbours + i * PAGE, PAGE, PROT_READ);
    for (int i = 3; i < 256; i += 8) munmap(neighbours + i * PAGE, PAGE);
}
static Said maps04(void) {
    for (int i = 0; i < 256; ++i) {
        char access[5] = "", flags[256];
        int there = mapping(neighbours + i * PAGE, access, flags, sizeof flags);
        NEED(there == (i % 8 != 3));
        if (there) NEED(neighbours[i * PAGE] == (char)i && access[1] == (i % 2 ? 'w' : '-'));
        if (i > 16) i += 16;
    }
    return 0;
}
static void maps02_set(void) {
    for (int i = 0; i < 3; ++i) advised[i] = anonymous(4 << 20), advised[i][0] = 1;
    madvise(advised[0], 4 << 20, MADV_DONTFORK);
    madvise(advised[1], 4 << 20, MADV_NOHUGEPAGE);
    madvise(advised[2], 4 << 20, MADV_DONTDUMP);
}
static Said maps02(void) {
    static const char* wanted[3] = {" dc", " nh", " dd"};
    for (int i = 0; i < 3; ++i) {
        char access[5], flags[256];
        NEED(mapping(advised[i], access, flags, sizeof flags));
        NEED(strstr(flags, wanted[i]) && advised[i][0] == 1);
    }
    return 0;
}
static volatile sig_atomic_t faults;
static void on_fault(int number) {
    (void)number;
    ++faults;
    mprotect(guarded, PAGE, PROT_READ | PROT_WRITE);
}
static void mprotect00_set(void) {
    guarded = anonymous(PAGE);
    guarded[0] = 5;
    mprotect(guarded, PAGE, PROT_READ);
    signal(SIGSEGV, on_fault);
}
static Said mprotect00(void) {
    int before = faults;
    *(volatile char*)guarded += 1; /* the handler lets it through */
    NEED(faults == before + 1 && guarded[0] == 6);
    return 0;
}
static void unlink_mmap00_set(void) {
    int fd = new_file("unlinked private", 0, "private content");
    unlinked_private = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    unlinked_private[0] = 'P';
    unlink(in("unlinked private"));
    close(fd);
}
static Said unlink_mmap00(void) {
    NEED(strcmp(unlinked_private, "Private content") == 0);
    return 0;
}
static char* unlinked_twin;
static void unlink_mmap01_set(void) {
    int fd = new_file("unlinked shared", 0, "shared content");
    unlinked_shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unlinked_twin = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unlink(in("unlinked shared"));
    close(fd);
    unlinked_shared[0] = 'S';
}
static Said unlink_mmap01(void) {
    NEED(strcmp(unlinked_shared, "Shared content") == 0);
    unlinked_shared[1] = 'H';
    NEED(unlinked_twin[1] == 'H');
    return 0;
}

/* ---- threads, registers, clocks */
static uint32_t futex_word;
static pthread_t waiter, thread_of[4], vector_thread;
static void* wait_on_futex(void* nothing) {
    while (__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST) == 0)
        syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, 0, 0, 0);
    return nothing;
}
static void futex_set(void) { pthread_create(&waiter, 0, wait_on_futex, &futex_word); }
static Said futex(void) {
    void* result = 0;
    __atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &futex_word, FUTEX_WAKE, 10, 0, 0, 0);
    NEED(pthread_join(waiter, &result) == 0 && result == &futex_word);
    return 0;
}
static volatile int vector_stop;
static void* keep_in_registers(
    void* unused_argument) { /* nothing but registers holds these values meanwhile */
    uint64_t in_value[2] = {0x0123456789abcdef, 0xfedcba9876543210}, out_value[2] = {0, 0};
    double pi = 0;
    __asm__ volatile(
        "fldpi\n"
        "movdqu %[from], %%xmm7\n"
        "movdqu %[from], %%xmm15\n"
        "1: pause\n"
        "cmpl $0, %[stop]\n"
        "je 1b\n"
        "pxor %%xmm7, %%xmm15\n"
        "movdqu %%xmm15, %[to]\n"
        "fstpl %[pi]\n"
        "ptest %%xmm15, %%xmm15\n"
        "jz 2f\n"
        "movq $1, %[to]\n"
        "2:\n"
        : [to] "+m"(out_value), [pi] "=m"(pi)
        : [from] "m"(in_value), [stop] "m"(vector_stop)
        : "xmm7", "xmm15", "st", "memory", "cc");
    (void)unused_argument;
    return (void*)(uintptr_t)(out_value[0] == 0 && out_value[1] == 0 && pi > 3.14159 && pi < 3.1416);
}
static void fpu00_set(void) { pthread_create(&vector_thread, 0, keep_in_registers, 0); }
static Said fpu00(void) {
    void* right = 0;
    vector_stop = 1;
    NEED(pthread_join(vector_thread, &right) == 0 && right);
    return 0;
}
static void fpu03_set(void) { fesetround(FE_UPWARD); }
static Said fpu03(void) {
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    volatile double one = 1, three = 3;
    volatile double up = one / three;
    int mode = fegetround();
    fesetround(FE_TONEAREST);
    NEED(mode == FE_UPWARD && (mxcsr >> 13 & 3) == 2 && up > one / three);
    return 0;
}
static struct timespec realtime_before;
static void vdso00_set(void) { clock_gettime(CLOCK_REALTIME, &realtime_before); }
static Said vdso00(void) {
    struct timespec a, b;
    struct timeval v;
    clock_gettime(CLOCK_REALTIME, &a);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &b);
    gettimeofday(&v, 0);
    NEED(a.tv_sec >= realtime_before.tv_sec && b.tv_sec - a.tv_sec <= 5 && v.tv_sec - a.tv_sec <= 5 &&
         time(0) - a.tv_sec <= 5);
    return 0;
}
static void vdso01_set(void) {}
static Said vdso01(void) {
    struct timespec a, b;
    unsigned cpu = 9999;
    for (int i = 0; i < 1000; ++i) {
        clock_gettime(CLOCK_MONOTONIC, &a);
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &b);
        NEED(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
    }
    NEED(clock_getres(CLOCK_MONOTONIC, &a) == 0 && getcpu(&cpu, 0) == 0 && cpu < 9999);
    return 0;
}
static __thread int mine;
static volatile int threads_stop;
static void* count_in_tls(void* number) {
    mine = (int)(intptr_t)number;
    while (!threads_stop) usleep(1000);
    return (void*)(intptr_t)(mine * 10);
}
static void pthread00_set(void) {
    for (intptr_t i = 0; i < 4; ++i) pthread_create(&thread_of[i], 0, count_in_tls, (void*)(i + 1));
}
static Said pthread00(void) {
    threads_stop = 1;
    for (intptr_t i = 0; i < 4; ++i) {
        void* result;
        NEED(pthread_join(thread_of[i], &result) == 0 && (intptr_t)result == (i + 1) * 10);
    }
    return 0;
}
static pthread_t ended;
static pthread_key_t key;
static void* end_at_once(void* value) { return value; }
static void pthread02_set(void) { /* ended and not joined; a key with a value */
    pthread_create(&ended, 0, end_at_once, directory);
    pthread_key_create(&key, 0);
    pthread_setspecific(key, &key);
}
static Said pthread02(void) {
    void* result = 0;
    pthread_t another;
    NEED(pthread_join(ended, &result) == 0 && result == directory && pthread_getspecific(key) == &key);
    NEED(pthread_create(&another, 0, end_at_once, 0) == 0 && pthread_join(another, 0) == 0);
    return 0;
}
static void rseq00_set(void) {}
static Said rseq00(void) {
    NEED(__rseq_size > 0);
    struct rseq* area = (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
    for (int i = 0; i < 100; ++i)
        if ((unsigned)sched_getcpu() == __atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED)) return 0;
    return "the registered area does not name the CPU";
}
static void membarrier_set(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0); }
static Said membarrier(void) {
    NEED(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
    return 0;
}
static sem_t semaphore, done_semaphore;
static int system_semaphore;
static void* wait_on_semaphore(void* nothing) {
    sem_wait(&semaphore);
    sem_post(&done_semaphore);
    return nothing;
}
static void sem_set(void) {
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    sem_init(&done_semaphore, 0, 0);
    pthread_create(&thread, 0, wait_on_semaphore, 0);
    pthread_detach(thread);
    system_semaphore = semget(IPC_PRIVATE, 1, 0600);
    semctl(system_semaphore, 0, SETVAL, 3);
}
static Said sem(void) {
    sem_post(&semaphore);
    while (sem_wait(&done_semaphore) != 0) {
    }
    int value = semctl(system_semaphore, 0, GETVAL); /* the node's, not the process's */
    semctl(system_semaphore, 0, IPC_RMID);
    NEED(value == 3);
    return 0;
}

/* ---- timers and signals */
static timer_t timer;
static volatile sig_atomic_t timer_ticks, alarms;
static void on_timer(int number) { (void)number, ++timer_ticks; }
static void on_alarm(int number) { (void)number, ++alarms; }
static void handler(int number, void (*function)(int)) {
    struct sigaction action = {.sa_handler = function, .sa_flags = SA_RESTART};
    sigaction(number, &action, 0);
}
static void posix_timers_set(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    handler(SIGUSR1, on_timer);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 10000000}, {0, 10000000}}, 0);
}
static Said posix_timers(void) {
    int before = timer_ticks;
    struct itimerspec now;
    for (int i = 0; i < 3000 && timer_ticks < before + 3; ++i) usleep(1000);
    NEED(timer_ticks >= before + 3 && timer_gettime(timer, &now) == 0 && now.it_interval.tv_nsec == 10000000);
    NEED(timer_delete(timer) == 0);
    return 0;
}
static void timers_set(void) {
    handler(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 20000}, {0, 20000}}, 0);
}
static Said timers(void) {
    int before = alarms;
    struct itimerval now;
    for (int i = 0; i < 3000 && alarms < before + 3; ++i) usleep(1000);
    NEED(alarms >= before + 3 && getitimer(ITIMER_REAL, &now) == 0 && now.it_interval.tv_usec == 20000);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    return 0;
}
static void one_shots_set(void) { set_one_shots(); }
static Said one_shots(void) {
    NEED(one_shot_goes_on(0));
    NEED(one_shot_goes_on(1));
    NEED(timer_delete(one_shot[0]) == 0 && timer_delete(one_shot[1]) == 0);
    return 0;
}
static int timer_fd, signal_fd;
static void timerfd_set(void) {
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(timer_fd, 0, &(struct itimerspec){{0, 5000000}, {0, 5000000}}, 0);
}
static Said timerfd(void) {
    uint64_t count = 0;
    struct itimerspec now;
    for (int i = 0; i < 3000 && read(timer_fd, &count, 8) != 8; ++i) usleep(1000);
    NEED(count > 0 && timerfd_gettime(timer_fd, &now) == 0 && now.it_interval.tv_nsec == 5000000);
    return 0;
}
static void signalfd00_set(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    raise(SIGUSR2);
}
static Said signalfd00(void) {
    struct signalfd_siginfo info;
    NEED(read(signal_fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2);
    NEED(read(signal_fd, &info, sizeof info) == -1 && errno == EAGAIN);
    return 0;
}
static void sigpending_set(void) {
    for (int i = 1; i <= 2; ++i) sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = i});
}
static Said sigpending_(void) {
    sigset_t set;
    sigpending(&set);
    NEED(sigismember(&set, SIGRTMIN + 3));
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    for (int i = 1; i <= 2; ++i) {
        siginfo_t info;
        struct timespec none = {0, 0};
        NEED(sigtimedwait(&set, &info, &none) == SIGRTMIN + 3 && info.si_value.sival_int == i);
    }
    return 0;
}

/* Two for one thread alone, and one that pthread_kill has sent. */
static pthread_t addressed;
static sem_t addressed_go, addressed_ready;
static Said addressed_took(void) {
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGRTMIN + 6);
    struct timespec none = {0, 0};
    siginfo_t info;
    for (int i = 1; i <= 2; ++i) {
        NEED(sigtimedwait(&mine, &info, &none) == SIGRTMIN + 6 && info.si_value.sival_int == i);
        NEED(info.si_code == SI_QUEUE && info.si_pid == getpid() && info.si_uid == getuid());
    }
    NEED(sigtimedwait(&mine, &info, &none) == -1);
    sigaddset(&mine, SIGWINCH);
    NEED(sigtimedwait(&mine, &info, &none) == SIGWINCH);
    NEED(sigtimedwait(&mine, &info, &none) == -1);
    return 0;
}
static void* addressed_thread(void* unused) {
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGRTMIN + 6);
    sigaddset(&mine, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &mine, 0);
    sem_post(&addressed_ready);
    while (sem_wait(&addressed_go) != 0) {
    }
    return (void*)addressed_took();
}
static void sigpending_thread_set(void) {
    sem_init(&addressed_go, 0, 0);
    sem_init(&addressed_ready, 0, 0);
    pthread_create(&addressed, 0, addressed_thread, 0);
    while (sem_wait(&addressed_ready) != 0) {
    }
    for (int i = 1; i <= 2; ++i) pthread_sigqueue(addressed, SIGRTMIN + 6, (union sigval){.sival_int = i});
    pthread_kill(addressed, SIGWINCH);
}
static Said sigpending_thread(void) {
    void* said = 0;
    sem_post(&addressed_go);
    NEED(pthread_join(addressed, &said) == 0);
    return said;
}

/* ---- descriptors */
static int event_fd, fifo_fd, append_fd, tcp[2], queue[2], datagram[2], memfd, memfd_sealed, epoll_fd,
    epoll_event, edge_fd, edge_pipe[2], cloexec_fd[2], shared_fd[2], attr_fd, lock_fd, posix_lock_fd,
    removed_fd, linked_fd;
static void eventfs00_set(void) { event_fd = eventfd(7, EFD_NONBLOCK); }
static Said eventfs00(void) {
    uint64_t value = 0;
    NEED(read(event_fd, &value, 8) == 8 && value == 7 && read(event_fd, &value, 8) == -1);
    return 0;
}
static void fifo_set(void) {
    mkfifo(in("fifo"), 0600);
    fifo_fd = open(in("fifo"), O_RDWR | O_NONBLOCK);
    if (write(fifo_fd, "waiting", 7) != 7) perror("fifo");
}
static Said fifo(void) {
    char text[16] = "";
    NEED(read(fifo_fd, text, 15) == 7 && strcmp(text, "waiting") == 0 && write(fifo_fd, "x", 1) == 1);
    return 0;
}
static void file_append_set(void) { append_fd = new_file("append", O_APPEND, "one "); }
static Said file_append(void) {
    lseek(append_fd, 0, SEEK_SET);
    NEED(write(append_fd, "two", 3) == 3 && holds(append_fd, "one two") &&
         (fcntl(append_fd, F_GETFL) & O_APPEND));
    return 0;
}
static void socket_tcp_local_set(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr*)&address, sizeof address);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr*)&address, &size);
    tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
    connect(tcp[0], (struct sockaddr*)&address, sizeof address);
    tcp[1] = accept(listener, 0, 0);
    close(listener);
    if (send(tcp[0], "queued", 6, 0) != 6) perror("tcp");
    usleep(10000);
}
static Said socket_tcp_local(void) {
    char text[16] = "";
    NEED(recv(tcp[1], text, 15, 0) == 6 && strcmp(text, "queued") == 0);
    NEED(send(tcp[1], "back", 4, 0) == 4 && recv(tcp[0], text, 15, 0) == 4 && memcmp(text, "back", 4) == 0);
    return 0;
}
static void socket_queues_set(void) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, queue);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, datagram);
    if (write(queue[0], "stream", 6) != 6 || write(datagram[0], "one", 3) != 3 ||
        write(datagram[0], "two", 3) != 3)
        perror("queue");
}
static Said socket_queues(void) {
    char text[16] = "";
    NEED(read(queue[1], text, 15) == 6 && strcmp(text, "stream") == 0);
    NEED(read(datagram[1], text, 15) == 3 && memcmp(text, "one", 3) == 0);
    NEED(read(datagram[1], text, 15) == 3 && memcmp(text, "two", 3) == 0);
    return 0;
}
static char *memfd_memory, *shm_memory;
static int shm_fd;
static void memfd00_set(void) {
    memfd = memfd_create("ours", MFD_CLOEXEC);
    if (write(memfd, "memory", 6) != 6) perror("memfd");
}
static Said memfd00(void) {
    NEED(holds(memfd, "memory") && lseek(memfd, 0, SEEK_CUR) == 6 && (fcntl(memfd, F_GETFD) & FD_CLOEXEC));
    return 0;
}
static void memfd01_set(void) { memfd_memory = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0); }
static Said memfd01(void) {
    memfd_memory[0] = 'M';
    NEED(holds(memfd, "Memory"));
    return 0;
}
static void memfd02_set(void) {
    memfd_sealed = memfd_create("sealed", MFD_ALLOW_SEALING);
    if (write(memfd_sealed, "sealed", 6) != 6) perror("memfd");
    fcntl(memfd_sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}
static Said memfd02(void) {
    NEED(holds(memfd_sealed, "sealed"));
    NEED(fcntl(memfd_sealed, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
    return 0;
}
static void shmemfd_set(void) {
    char name[64];
    snprintf(name, sizeof name, "/fermata-process-%d", getpid());
    shm_fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (ftruncate(shm_fd, PAGE) != 0) perror("shm");
    shm_memory = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, shm_fd, 0);
    shm_unlink(name);
    strcpy(shm_memory, "shared");
}
static Said shmemfd(void) {
    char text[8] = "";
    shm_memory[0] = 'S';
    NEED(pread(shm_fd, text, 7, 0) == 7 && strcmp(text, "Shared") == 0);
    return 0;
}
static void epoll_set(void) {
    epoll_fd = epoll_create1(0);
    epoll_event = eventfd(0, 0);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, epoll_event, &(struct epoll_event){EPOLLIN, {.u64 = 4711}});
}
static Said epoll(void) {
    struct epoll_event event;
    uint64_t one = 1;
    NEED(epoll_wait(epoll_fd, &event, 1, 0) == 0 && write(epoll_event, &one, 8) == 8);
    NEED(epoll_wait(epoll_fd, &event, 1, 1000) == 1 && event.data.u64 == 4711 && event.events == EPOLLIN);
    return 0;
}
static void epoll01_set(void) { /* edge-triggered, the edge not yet seen */
    edge_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pipe(edge_pipe) != 0 || write(edge_pipe[1], "x", 1) != 1) perror("pipe");
    epoll_ctl(edge_fd, EPOLL_CTL_ADD, edge_pipe[0], &(struct epoll_event){EPOLLIN | EPOLLET, {.u64 = 1}});
}
static Said epoll01(void) {
    struct epoll_event event;
    char x;
    NEED(epoll_wait(edge_fd, &event, 1, 1000) == 1 && epoll_wait(edge_fd, &event, 1, 0) == 0);
    NEED(read(edge_pipe[0], &x, 1) == 1 && x == 'x');
    return 0;
}
static void file_cloexec_set(void) {
    cloexec_fd[0] = open(in("cloexec"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cloexec_fd[1] = open(in("cloexec"), O_RDWR);
}
static Said file_cloexec(void) {
    NEED((fcntl(cloexec_fd[0], F_GETFD) & FD_CLOEXEC) && !(fcntl(cloexec_fd[1], F_GETFD) & FD_CLOEXEC));
    return 0;
}
static void file_shared_set(void) {
    shared_fd[0] = new_file("shared offset", 0, "0123456789");
    shared_fd[1] = dup(shared_fd[0]);
    lseek(shared_fd[0], 4, SEEK_SET);
}
static Said file_shared(void) {
    char c = 0;
    NEED(read(shared_fd[1], &c, 1) == 1 && c == '4' && lseek(shared_fd[0], 0, SEEK_CUR) == 5);
    return 0;
}
static void file_attr_set(void) {
    attr_fd = new_file("attributes", 0, "x");
    fchmod(attr_fd, 0640);
    futimens(attr_fd, (struct timespec[2]){{1000, 0}, {2000, 0}});
    unlink(in("attributes"));
}
static Said file_attr(void) {
    struct stat st;
    NEED(fstat(attr_fd, &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_nlink == 0);
    NEED(st.st_mtim.tv_sec == 2000);
    return 0;
}
static void file_locks_set(void) {
    lock_fd = new_file("flock", 0, "x");
    flock(lock_fd, LOCK_EX);
    posix_lock_fd = new_file("posix lock", 0, "x");
    fcntl(posix_lock_fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
}
static Said file_locks(void) {
    int other = open(in("flock"), O_RDWR), status = 0;
    NEED(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    pid_t child = fork(); /* POSIX locks are seen by others only */
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(posix_lock_fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 7 : 1);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    NEED(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 0;
}
static void unlink_fstat00_set(void) {
    removed_fd = new_file("removed", 0, "removed content");
    unlink(in("removed"));
}
static Said unlink_fstat00(void) {
    struct stat st;
    NEED(holds(removed_fd, "removed content") && fstat(removed_fd, &st) == 0 && st.st_nlink == 0 &&
         st.st_size == 15);
    return 0;
}
static void unlink_fstat03_set(void) { /* one of two names is gone */
    linked_fd = new_file("first name", 0, "linked content");
    if (link(in("first name"), in("second name")) != 0) perror("link");
    unlink(in("first name"));
}
static Said unlink_fstat03(void) {
    struct stat st, named;
    NEED(holds(linked_fd, "linked content") && fstat(linked_fd, &st) == 0 &&
         stat(in("second name"), &named) == 0);
    NEED(st.st_nlink == 1 && st.st_ino == named.st_ino);
    return 0;
}

/* ---- settings of the process */
static void rlimits00_set(void) { setrlimit(RLIMIT_CORE, &(struct rlimit){12345, 1 << 20}); }
static Said rlimits00(void) {
    struct rlimit limit;
    NEED(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 12345 && limit.rlim_max == 1 << 20);
    return 0;
}
static void sched_policy00_set(void) { sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); }
static Said sched_policy00(void) {
    NEED(sched_getscheduler(0) == SCHED_BATCH);
    return 0;
}
static void thp_disable_set(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }
static Said thp_disable(void) {
    NEED(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
    return 0;
}
static void personality_set(void) { personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE); }
static Said personality_(void) {
    NEED(personality(0xffffffff) & ADDR_NO_RANDOMIZE);
    return 0;
}
static void cwd01_set(void) {
    mkdir(in("removed directory"), 0700);
    if (chdir(in("removed directory")) != 0) perror("chdir");
    rmdir(in("removed directory"));
}
static Said cwd01(void) {
    struct stat st;
    char text[1200];
    NEED(stat(".", &st) == 0 && st.st_nlink == 0 && !getcwd(text, sizeof text) && errno == ENOENT);
    return 0;
}

/* On a small stack of its own, in the middle of its work, and in MPI before and after. */
static ucontext_t main_context, coroutine;
static int coroutine_sums[2];
static void coroutine_body(void) {
    for (int i = 0; i < 2; ++i) {
        int one = 1;
        MPI_Allreduce(&one, &coroutine_sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        swapcontext(&coroutine, &main_context);
    }
}
static void coroutine_set(void) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_size = 16384;
    coroutine.uc_stack.ss_sp = malloc(coroutine.uc_stack.ss_size);
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_body, 0);
    swapcontext(&main_context, &coroutine);
}
static Said coroutine_(void) {
    swapcontext(&main_context, &coroutine);
    NEED(coroutine_sums[0] > 0 && coroutine_sums[1] == coroutine_sums[0]);
    return 0;
}

static pthread_t smallest;
static volatile int smallest_runs, smallest_ends;
static void* smallest_body(void* unused) {
    while (!smallest_ends) ++smallest_runs, usleep(1000);
    return unused;
}
static void smallest_stack_set(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    if (pthread_create(&smallest, &attributes, smallest_body, 0) != 0) perror("pthread_create");
}
static Said smallest_stack(void) {
    int before = smallest_runs;
    usleep(50000);
    int after = smallest_runs;
    smallest_ends = 1;
    NEED(pthread_join(smallest, 0) == 0 && after > before);
    return 0;
}

/* Every tenth a duplicate, every eleventh without a name. */
enum { MANY = 700 };
static int many[MANY];
static void many_files_set(void) {
    for (int i = 0; i < MANY; ++i) {
        char name[32], text[32];
        snprintf(name, sizeof name, "many.%d", i);
        snprintf(text, sizeof text, "%d\n", i);
        many[i] = i % 10 == 9 ? dup(many[i - 1]) : new_file(name, 0, text);
        if (i % 11 == 0) unlink(in(name));
    }
}
static Said many_files(void) {
    for (int i = 0; i < MANY; ++i) {
        char text[32];
        snprintf(text, sizeof text, "%d\n", i % 10 == 9 ? i - 1 : i);
        NEED(holds(many[i], text) && lseek(many[i], 0, SEEK_CUR) == (off_t)strlen(text));
        close(many[i]);
    }
    return 0;
}

static const struct {
    const char* name;
    void (*set)(void);
    Said (*check)(void);
} cases[] = {
#define CASE(name) \
    { #name, name##_set, name }
    CASE(maps00),
    CASE(maps01),
    CASE(maps04),
    CASE(maps02),
    CASE(mprotect00),
    CASE(futex),
    CASE(fpu00),
    CASE(fpu03),
    CASE(vdso00),
    CASE(vdso01),
    CASE(posix_timers),
    CASE(signalfd00),
    CASE(eventfs00),
    CASE(fifo),
    CASE(unlink_mmap00),
    CASE(unlink_mmap01),
    CASE(file_append),
    {"socket-tcp-local", socket_tcp_local_set, socket_tcp_local},
    CASE(timers),
    CASE(one_shots),
    CASE(timerfd),
    {"sigpending", sigpending_set, sigpending_},
    CASE(sigpending_thread),
    CASE(rseq00),
    CASE(membarrier),
    CASE(pthread00),
    CASE(pthread02),
    CASE(memfd00),
    CASE(memfd01),
    CASE(memfd02),
    CASE(shmemfd),
    CASE(epoll),
    CASE(epoll01),
    CASE(rlimits00),
    CASE(sched_policy00),
    CASE(thp_disable),
    CASE(file_cloexec),
    CASE(file_attr),
    CASE(file_shared),
    CASE(file_locks),
    CASE(unlink_fstat00),
    CASE(unlink_fstat03),
    CASE(cwd01),
    CASE(sem),
    CASE(socket_queues),
    {"coroutine", coroutine_set, coroutine_},
    CASE(smallest_stack),
    CASE(many_files),
    {"personality", personality_set, personality_},
};

int main(int argc, char** argv) {
    sigset_t blocked;
    snprintf(directory, sizeof directory, "%s", argc > 1 ? argv[1] : ".");
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    MPI_Init(&argc, &argv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) cases[i].set();
    usleep(20000);
    hold();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        Said wrong = cases[i].check();
        printf("%s %s%s\n", cases[i].name, wrong ? "not true: " : "right", wrong ? wrong : "");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
