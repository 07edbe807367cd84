/* A process that owns one of everything and describes all its state, line by line ("name: value"), before a
 * checkpoint, after it, and after a restart: everything_test.py compares the descriptions. Descriptions ask
 * the kernel, not the program: what the program did not think of shows, too (every option of every socket,
 * every line of fdinfo).
 *
 * What needs rights or a kernel that this machine lacks is left out, and a line says so.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/un.h>
#include <time.h>

#include "hold.h"

static FILE* out;
static int rank_, size_;
static char* const* arguments;
extern char** environ;

static void say(const char* format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(out, format, list);
    va_end(list);
    fputc('\n', out);
}
static void without(const char* what) {
    fprintf(stderr, "everything: without %s: %s\n", what, strerror(errno));
}

/* ---- what the process owns */

enum { kAreas = 8 };
static struct {
    const char* name;
    char* at;
    size_t size;
} area[kAreas];
static int areas;
static pthread_t second;
static volatile int second_tid, second_asked, second_done;
static timer_t timer_;

static void* keep(const char* name, size_t size, int prot, int flags, int fd) {
    char* at = mmap(NULL, size, prot, flags, fd, 0);
    if (at == MAP_FAILED) {
        without(name);
        return NULL;
    }
    area[areas].name = name, area[areas].at = at, area[areas].size = size;
    areas++;
    return at;
}

/* Only what another process can take over while this one lives (`fermata renew`). */
static int movable(void) { return getenv("EVERYTHING_MOVABLE") != NULL; }

static void own_memory(void) {
    unsigned long node = 1;
    char* at = keep("plain", 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memset(at, 7, 1 << 16);
    mprotect(at, 1 << 16, PROT_READ);
    keep("reserved beyond memory", 1UL << 38, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    at = keep("advised", 1 << 21, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise(at, 1 << 21, MADV_DONTFORK), madvise(at, 1 << 21, MADV_DONTDUMP),
        madvise(at, 1 << 21, MADV_RANDOM);
    at = keep("locked", 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (mlock(at, 1 << 14)) without("mlock");
    at = keep("bound", 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (syscall(SYS_mbind, at, 1 << 16, 2 /* MPOL_BIND */, &node, 64, 0)) without("mbind");
    at = keep("wiped in children", 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise(at, 1 << 14, MADV_WIPEONFORK);
    keep("shared", 1 << 14, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static void write_file(const char* path, const char* text) {
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) without(path);
    if (fd >= 0) close(fd);
}

static void handler(int number) { (void)number; }

static void own_attributes(void) {
    unsigned long node = 1;
    setpriority(PRIO_PROCESS, 0, 3);
    syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6);
    prctl(PR_SET_TIMERSLACK, 123456UL);
    prctl(PR_SET_NAME, "one-of-all");
    prctl(PR_SET_PDEATHSIG, SIGUSR2);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_DUMPABLE, 0), prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    prctl(PR_SET_KEEPCAPS, 1);
    if (syscall(SYS_set_mempolicy, 3 /* MPOL_INTERLEAVE */, &node, 64)) without("set_mempolicy");
    write_file("/proc/self/coredump_filter", "0x7f\n");
    write_file("/proc/self/oom_score_adj", "300\n");
    umask(027);
    struct rlimit limit = {1 << 20, 1 << 22};
    setrlimit(RLIMIT_CORE, &limit);
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)(rank_ % sysconf(_SC_NPROCESSORS_ONLN)), &one);
    sched_setaffinity(0, sizeof one, &one);
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaddset(&action.sa_mask, SIGWINCH);
    sigaction(SIGUSR1, &action, NULL), sigaction(SIGIO, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), SIGRTMIN + 3, value);
    struct itimerval often = {{50, 0}, {40, 0}};
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
    struct itimerspec hour = {{60, 0}, {3600, 0}};
    timer_create(CLOCK_MONOTONIC, &nothing, &timer_), timer_settime(timer_, 0, &hour, NULL);
    if (syscall(SYS_add_key, "user", "fermata-everything", "x", 1, -2 /* KEY_SPEC_PROCESS_KEYRING */) < 0)
        without("keyrings");
}

static void* second_thread(void* nothing) {
    (void)nothing;
    prctl(PR_SET_NAME, "second");
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 9);
    syscall(SYS_ioprio_set, 1, 0, 3 << 13);
    prctl(PR_SET_TIMERSLACK, 77777UL);
    second_tid = (int)syscall(SYS_gettid);
    while (!second_done) {
        while (!second_asked && !second_done) usleep(2000);
        if (second_asked) {
            char name[17];
            unsigned long mask = 0;
            int mode = -1;
            prctl(PR_GET_NAME, name);
            syscall(SYS_get_mempolicy, &mode, &mask, 64, 0, 0);
            say("second thread: %d %ld %s, nice %d, ioprio %ld, slack %d, policy %d", gettid(),
                syscall(SYS_gettid), name, getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)),
                syscall(SYS_ioprio_get, 1, 0), prctl(PR_GET_TIMERSLACK), mode);
            second_asked = 0;
        }
    }
    return NULL;
}

/* What the kernel writes into /proc is its own number. */
static int kernels_pid(void) {
    int number = 0;
    FILE* stat_file = fopen("/proc/self/stat", "r");
    if (stat_file && fscanf(stat_file, "%d", &number) != 1) number = 0;
    if (stat_file) fclose(stat_file);
    return number;
}

static char inherited[256]; /* open when main began: the launcher's */

static int name_of(char* text, const char* what) { return sprintf(text, "%s.%d", what, rank_); }

/* Of no port that the kernel gives to others by itself: the restarted program wants its own back. */
static int internet(int type, int reuse) {
    int fd = socket(AF_INET, type, 0), tries = 0, bad;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (reuse) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    do {
        in.sin_port = htons((unsigned short)(20000 + (getpid() * 37 + tries) % 10000));
        bad = bind(fd, (void*)&in, sizeof in);
    } while (bad && errno == EADDRINUSE && ++tries < 10000);
    if (bad) perror("bind");
    return fd;
}
static void set(int fd, int level, int name, int value) {
    if (setsockopt(fd, level, name, &value, sizeof value))
        fprintf(stderr, "everything: option %d of level %d: %s\n", name, level, strerror(errno));
}

static void own_sockets(void) {
    struct timeval time = {2, 500000};
    struct linger linger = {1, 3};
    int udp = internet(SOCK_DGRAM, 0);
    setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time),
        setsockopt(udp, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    set(udp, SOL_SOCKET, SO_RCVBUF, 50000), set(udp, SOL_SOCKET, SO_BROADCAST, 1),
        set(udp, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    set(udp, IPPROTO_IP, IP_TOS, 0x10), set(udp, IPPROTO_IP, IP_TTL, 9), set(udp, IPPROTO_IP, IP_PKTINFO, 1);
    set(udp, IPPROTO_IP, IP_MULTICAST_LOOP, 0), set(udp, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    struct sockaddr_in self;
    socklen_t size = sizeof self;
    getsockname(udp, (void*)&self, &size);
    sendto(udp, "waits", 5, 0, (void*)&self, size);
    struct ip_mreqn group = {.imr_multiaddr.s_addr = inet_addr("239.7.7.7"),
                             .imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    int member = internet(SOCK_DGRAM, 1);
    if (setsockopt(member, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group)) without("multicast");
    int listener = internet(SOCK_STREAM, 0);
    set(listener, IPPROTO_TCP, TCP_NODELAY, 1), set(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(listener, IPPROTO_TCP, TCP_KEEPIDLE, 55), set(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, 12000);
    setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    listen(listener, 7);
    getsockname(listener, (void*)&self, &size);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, (void*)&self, size);
    int server = accept(listener, NULL, NULL);
    write(client, "tcp", 3);
    shutdown(client, SHUT_WR);
    set(server, IPPROTO_IP, IP_TOS, 8);
    int six = socket(AF_INET6, SOCK_DGRAM, 0);
    if (six < 0)
        without("IPv6");
    else
        set(six, IPPROTO_IPV6, IPV6_V6ONLY, 1), set(six, IPPROTO_IPV6, IPV6_TCLASS, 4),
            set(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 5);
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    write(pair[0], "unix", 4), shutdown(pair[0], SHUT_WR);
    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair);
    write(pair[0], "a", 1), write(pair[0], "bc", 2);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int abstract = socket(AF_UNIX, SOCK_STREAM, 0);
    int length = sprintf(un.sun_path + 1, "fermata-everything-%d-%d", getpid(), rank_);
    bind(abstract, (void*)&un, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)length));
    listen(abstract, 3);
    set(abstract, SOL_SOCKET, SO_PASSCRED, 1);
    struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    bind(netlink, (void*)&nl, sizeof nl);
    if (socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0) without("raw sockets");
}

static int high; /* the highest descriptor that it may have */

/* Above the limit it was started with; and a file that it only reads, in the middle of it. */
static void own_high_and_read(void) {
    char name[64];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit)) without("a higher limit of open files");
    high = (int)limit.rlim_max - 1;
    name_of(name, "high");
    int fd = open(name, O_CREAT | O_RDWR, 0600);
    write(fd, "high", 4);
    if (dup2(fd, high) != high) without("a high descriptor");
    close(fd);
    name_of(name, "table");
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    write(fd, "a table that is read", 20), close(fd);
    lseek(open(name, O_RDONLY), 8, SEEK_SET);
}

static void own_descriptors(void) {
    char name[64];
    int pipes[2];
    own_high_and_read();
    name_of(name, "appended");
    int fd = open(name, O_CREAT | O_RDWR | O_APPEND | O_SYNC, 0640);
    write(fd, "appended", 8), lseek(fd, 3, SEEK_SET), flock(fd, LOCK_SH);
    if (!movable()) fcntl(fd, F_SETOWN, getpid()), fcntl(fd, F_SETSIG, SIGRTMIN + 5);
    name_of(name, "read-only");
    fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0444);
    write(fd, "0444", 4);
    struct flock range = {F_WRLCK, SEEK_SET, 1, 2, 0};
    if (!movable()) fcntl(fd, F_SETLK, &range);
    name_of(name, "removed");
    fd = open(name, O_CREAT | O_RDWR, 0600);
    write(fd, "removed", 7), unlink(name), dup(fd);
    name_of(name, "leased");
    fd = open(name, O_CREAT | O_RDONLY, 0600);
    if (movable() || fcntl(fd, F_SETLEASE, F_RDLCK)) without("leases");
    fd = memfd_create("everything", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    write(fd, "memory", 6), fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
    pipe2(pipes, O_NONBLOCK), fcntl(pipes[0], F_SETPIPE_SZ, 1 << 17), write(pipes[1], "piped", 5);
    open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), open(".", O_PATH);
    open("/dev/zero", O_RDWR);
    if (!movable()) open("/proc/self/stat", O_RDONLY), open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    char task[64];
    sprintf(task, "/proc/self/task/%d/comm", second_tid);
    if (!movable()) open(task, O_RDWR);
    fd = eventfd(41, EFD_SEMAPHORE | EFD_NONBLOCK);
    sigset_t some;
    sigemptyset(&some), sigaddset(&some, SIGRTMIN + 3);
    int signals = signalfd(-1, &some, SFD_CLOEXEC | SFD_NONBLOCK);
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
    struct itimerspec hour = {{60, 0}, {3600, 0}};
    timerfd_settime(timer, 0, &hour, NULL);
    int wall = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    hour.it_value.tv_sec = now.tv_sec + 7200;
    timerfd_settime(wall, TFD_TIMER_ABSTIME | 2 /* TFD_TIMER_CANCEL_ON_SET */, &hour, NULL);
    int epoll = epoll_create1(EPOLL_CLOEXEC), gone = dup(fd);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
    epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event);
    event.data.u64 = 2, event.events = EPOLLIN | EPOLLET;
    epoll_ctl(epoll, EPOLL_CTL_ADD, gone, &event); /* a duplicate, closed right after */
    close(gone);
    int watch = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(watch, ".", IN_CREATE);
    if (movable() || syscall(SYS_pidfd_open, getpid(), 0) < 0) without("pidfd");
    if (syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY) < 0) without("fanotify");
    open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

/* ---- what it looks like */

static void read_text(const char* path, char* text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);
    text[got > 0 ? got : 0] = 0;
    if (fd >= 0) close(fd);
}

/* Words that are another process's after a restart: its number, inodes, times. */
static void show_line(int fd, const char* line) {
    static const char* const kOther[] = {"mnt_id:", "ino:",     "eventfd-id:", "it_value:", "flags:",
                                         "inotify", "fanotify", "NSpid:",      "tty-index:"};
    for (size_t i = 0; i < sizeof kOther / sizeof *kOther; ++i)
        if (!strncmp(line, kOther[i], strlen(kOther[i]))) return;
    int number;
    unsigned events;
    unsigned long long data;
    char kind[16], access[16], end[32];
    long long start;
    if (sscanf(line, "tfd: %d events: %x data: %llx", &number, &events, &data) == 3)
        say("fd %d watch %llx: number %d, events %x", fd, data, number, events);
    else if (sscanf(line, "lock:\t%*d: %15s %*s %15s %*d %*s %lld %31s", kind, access, &start, end) == 4)
        say("fd %d lock %s: %s %lld %s", fd, kind, access, start, end);
    else if (sscanf(line, "Pid:\t%d", &number) == 1)
        say("fd %d pid: %s", fd, number == kernels_pid() ? "this" : "another");
    else
        say("fd %d info %s", fd, line);
}

static void show_options(int fd) {
    static const int kLevels[] = {SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP};
    /* The kernel's own: credentials of the peer, numbers, memory, cookies, sizes that follow the traffic. */
    static const int
        kKernels[]
                [2] = {
                    {SOL_SOCKET, 4},   {SOL_SOCKET, 17},  {SOL_SOCKET, 49},  {SOL_SOCKET, 55},
                    {SOL_SOCKET, 56},  {SOL_SOCKET, 57},  {SOL_SOCKET, 59},  {SOL_SOCKET, 77},
                    {IPPROTO_TCP, 10}, {IPPROTO_TCP, 11}, {IPPROTO_TCP, 24}, {IPPROTO_TCP, 26},
                    {IPPROTO_TCP, 35}, {IPPROTO_TCP, 12} /* quick acknowledgements: the kernel changes it */};
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size), getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    for (size_t level = 0; level < sizeof kLevels / sizeof *kLevels; ++level)
        for (int name = 1; name < 110; ++name) {
            unsigned char value[64];
            size = sizeof value;
            int skip = 0;
            for (size_t i = 0; i < sizeof kKernels / sizeof *kKernels; ++i)
                skip |= kKernels[i][0] == kLevels[level] && kKernels[i][1] == name;
            /* Multicast of a connection is what came with it. */
            if (type == SOCK_STREAM && kLevels[level] == IPPROTO_IP && (name == 33 || name == 34)) skip = 1;
            if (kLevels[level] == IPPROTO_IP && name == 52)
                skip = 1; /* of TCP it answers the port (Linux 6.18) */
            if (skip || getsockopt(fd, kLevels[level], name, value, &size) || size > sizeof value) continue;
            char text[2 * sizeof value + 1] = "";
            for (socklen_t i = 0; i < size; ++i) sprintf(text + 2 * i, "%02x", value[i]);
            say("fd %d option %d/%d: %s", fd, kLevels[level], name, text);
        }
    struct sockaddr_storage address = {0};
    size = sizeof address;
    if (!getsockname(fd, (void*)&address, &size) &&
        (domain == AF_UNIX || domain == AF_NETLINK || domain == AF_INET)) {
        unsigned long hash = 5381;
        for (socklen_t i = 0; i < size; ++i) hash = hash * 33 + ((unsigned char*)&address)[i];
        struct sockaddr_in peer;
        socklen_t peers = sizeof peer;
        /* A connection within the process comes back with other ports. */
        if (domain != AF_INET || getpeername(fd, (void*)&peer, &peers)) say("fd %d address: %lx", fd, hash);
    }
    int waiting = 0;
    if (type == SOCK_STREAM) say("fd %d end of file: %d", fd, (ioctl(fd, 0x541b, &waiting), waiting));
    char text[64] = "";
    ssize_t got = recv(fd, text, sizeof text - 1, MSG_PEEK | MSG_DONTWAIT);
    say("fd %d waits: %zd '%s'", fd, got, got > 0 ? text : "");
}

static void show_descriptor(int fd) {
    struct stat status;
    if (fd == fileno(out) || (fd < 256 && inherited[fd]) || fstat(fd, &status)) return;
    char path[64], link[4096] = "", info[4096];
    sprintf(path, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(path, link, sizeof link - 1);
    link[size > 0 ? size : 0] = 0;
    if (size > 10 && !strncmp(link, "/proc/", 6) && atoi(link + 6) == getpid()) {
        char *task = strstr(link, "/task/"), name[256];
        snprintf(name, sizeof name, "%s", strrchr(link, '/'));  // (link is written over)
        if (task)
            sprintf(link, "own proc file of thread %s", atoi(task + 6) == second_tid ? "two" : "?");
        else
            sprintf(link, "own proc file %s", name);
    }
    if (strstr(link, ":[")) strstr(link, ":[")[0] = 0;
    if (strstr(link, "(deleted)") && strncmp(link, "/memfd:", 7)) strcpy(link, "a removed file");
    say("fd %d is: type %o, mode %o, size %lld, links %d, %s", fd, status.st_mode & S_IFMT,
        status.st_mode & 07777, S_ISREG(status.st_mode) ? (long long)status.st_size : 0, (int)status.st_nlink,
        link);
    /* Without O_LARGEFILE, which every open() sets here. */
    say("fd %d flags: %x %x", fd, fcntl(fd, F_GETFL) & ~0100000, fcntl(fd, F_GETFD));
    say("fd %d owner: %s, signal %d", fd, fcntl(fd, F_GETOWN) == getpid() ? "this" : "none",
        fcntl(fd, F_GETSIG));
    say("fd %d seals, pipe, lease: %d %d %d", fd, fcntl(fd, F_GET_SEALS), fcntl(fd, F_GETPIPE_SZ),
        fcntl(fd, F_GETLEASE));
    sprintf(path, "/proc/self/fdinfo/%d", fd);
    read_text(path, info, sizeof info);
    for (char* line = strtok(info, "\n"); line; line = strtok(NULL, "\n")) show_line(fd, line);
    struct itimerspec left;
    if (!timerfd_gettime(fd, &left))
        say("fd %d timer: %s, every %ld", fd, left.it_value.tv_sec > 3400 ? "runs" : "does not run",
            (long)left.it_interval.tv_sec);
    if (S_ISSOCK(status.st_mode)) show_options(fd);
    if (S_ISREG(status.st_mode) && strncmp(link, "own", 3)) {
        char text[65] = "";
        if (pread(fd, text, 64, 0) >= 0) say("fd %d content: %s", fd, text);
    }
}

static void show_areas(void) {
    char line[512], flags[256] = "";
    for (int i = 0; i < areas; ++i) {
        int mode = -1;
        unsigned long nodes = 0;
        syscall(SYS_get_mempolicy, &mode, &nodes, 64, area[i].at, 2 /* MPOL_F_ADDR */);
        say("memory %s policy: %d %lx", area[i].name, mode, nodes);
        FILE* maps = fopen("/proc/self/smaps", "re");
        unsigned long begin = 0, end = 0, first, last;
        char access[5];
        while (fgets(line, sizeof line, maps)) {
            if (sscanf(line, "%lx-%lx %4s", &first, &last, access) == 3)
                begin = first, end = last, strcpy(flags, access);
            if (!strncmp(line, "VmFlags:", 8) && begin <= (unsigned long)area[i].at &&
                (unsigned long)area[i].at < end) {
                line[strcspn(line, "\n")] = 0;
                /* Soft-dirty and "not counted" are the kernel's. */
                for (char* at; (at = strstr(line, " sd")) || (at = strstr(line, " ac"));)
                    memmove(at, at + 3, strlen(at + 3) + 1);
                say("memory %s flags: %s %s", area[i].name, flags, line + 8);
            }
        }
        fclose(maps);
    }
    say("memory content: %d", area[0].at[4097]);
}

static void show_process(void) {
    static const char* const kKeys[] = {"Umask",
                                        "Uid",
                                        "Gid",
                                        "Groups",
                                        "CapInh",
                                        "CapPrm",
                                        "CapEff",
                                        "CapBnd",
                                        "CapAmb",
                                        "NoNewPrivs",
                                        "Seccomp",
                                        "Seccomp_filters",
                                        "Speculation_Store_Bypass",
                                        "SpeculationIndirectBranch",
                                        "SigBlk",
                                        "SigIgn",
                                        "SigCgt",
                                        "SigPnd",
                                        "ShdPnd",
                                        "THP_enabled",
                                        "CoreDumping",
                                        "Cpus_allowed",
                                        "Mems_allowed"};
    static const int kGets[] = {PR_GET_DUMPABLE,   PR_GET_KEEPCAPS,      PR_GET_TIMING,
                                PR_GET_SECCOMP,    PR_GET_SECUREBITS,    PR_GET_TIMERSLACK,
                                PR_MCE_KILL_GET,   PR_GET_NO_NEW_PRIVS,  PR_GET_THP_DISABLE,
                                PR_GET_IO_FLUSHER, 66 /* PR_GET_MDWE */, 68 /* PR_GET_MEMORY_MERGE */};
    char text[8192], name[17];
    read_text("/proc/self/status", text, sizeof text);
    for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        for (size_t i = 0; i < sizeof kKeys / sizeof *kKeys; ++i)
            if (!strncmp(line, kKeys[i], strlen(kKeys[i])) && line[strlen(kKeys[i])] == ':')
                say("status %s", line);
    for (size_t i = 0; i < sizeof kGets / sizeof *kGets; ++i)
        say("prctl %d: %d", kGets[i], prctl(kGets[i], 0, 0, 0, 0));
    int value = 0;
    prctl(PR_GET_PDEATHSIG, &value), say("prctl pdeathsig: %d", value);
    prctl(PR_GET_CHILD_SUBREAPER, &value), say("prctl subreaper: %d", value);
    prctl(PR_GET_TSC, &value), say("prctl tsc: %d", value);
    prctl(PR_GET_NAME, name), say("name: %s", name);
    for (int i = 0; i < RLIM_NLIMITS; ++i) {
        struct rlimit limit;
        getrlimit(i, &limit);
        say("limit %d: %llx %llx", i, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    }
    for (int i = 1; i < 64; ++i) { /* 64 is Fermata's */
        struct {
            unsigned long handler, flags, restorer, mask;
        } action = {0};
        syscall(SYS_rt_sigaction, i, NULL, &action, 8);
        say("signal %d: %lx %lx %lx", i, action.handler, action.flags, action.mask);
    }
    stack_t stack;
    sigaltstack(NULL, &stack),
        say("stack for signals: %p %d %zu", stack.ss_sp, stack.ss_flags, stack.ss_size);
    say("ids: %d %d %d %d %d, raw %ld %ld", getpid(), getppid(), gettid(), getpgrp(), getsid(0),
        syscall(SYS_getpid), syscall(SYS_gettid));
    say("nice, ioprio, scheduler: %d %ld %d", getpriority(PRIO_PROCESS, 0), syscall(SYS_ioprio_get, 1, 0),
        sched_getscheduler(0));
    unsigned long nodes = 0;
    int mode = -1;
    syscall(SYS_get_mempolicy, &mode, &nodes, 64, 0, 0), say("memory policy: %d %lx", mode, nodes);
    static const char* const kFiles[] = {"coredump_filter", "oom_score_adj", "personality", "loginuid",
                                         "timerslack_ns",   "setgroups",     "autogroup"};
    for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; ++i) {
        char path[64];
        sprintf(path, "/proc/self/%s", kFiles[i]);
        read_text(path, text, sizeof text);
        if (strcmp(kFiles[i], "autogroup")) say("file %s: %.*s", kFiles[i], (int)strcspn(text, "\n"), text);
    }
    static const char* const kLinks[] = {"cwd",    "root",   "exe",     "ns/mnt",    "ns/net", "ns/ipc",
                                         "ns/uts", "ns/pid", "ns/user", "ns/cgroup", "ns/time"};
    for (size_t i = 0; i < sizeof kLinks / sizeof *kLinks; ++i) {
        char path[64];
        sprintf(path, "/proc/self/%s", kLinks[i]);
        ssize_t size = readlink(path, text, sizeof text - 1);
        say("link %s: %.*s", kLinks[i], (int)(size > 0 ? size : 0), text);
    }
    void* head = NULL;
    size_t length = 0;
    syscall(SYS_get_robust_list, 0, &head, &length), say("robust list: %p %zu", head, length);
    struct itimerval often;
    getitimer(ITIMER_VIRTUAL, &often),
        say("virtual timer: %s, every %ld", often.it_value.tv_sec > 10 ? "runs" : "does not run",
            (long)often.it_interval.tv_sec);
    struct itimerspec left;
    timer_gettime(timer_, &left),
        say("timer: %s, every %ld", left.it_value.tv_sec > 3400 ? "runs" : "does not run",
            (long)left.it_interval.tv_sec);
    siginfo_t info;
    sigset_t waiting;
    sigpending(&waiting), say("pending: %d", sigismember(&waiting, SIGRTMIN + 3));
    (void)info;
    say("keyring: %s", syscall(SYS_keyctl, 0, -2, 0) > 0 ? "one" : "none");
    unsigned long hash = 5381;
    for (char** at = environ; *at; ++at)
        for (char* c = *at; *c; ++c) hash = hash * 33 + (unsigned char)*c;
    say("environment: %lx", hash);
    for (char* const* at = arguments; *at; ++at) say("argument: %s", *at);
}

/* What only grows. */
static double clock_value(int which) {
    struct timespec now = {0};
    struct rusage usage;
    struct tms used;
    switch (which) {
        case 0:
            return (double)clock() / CLOCKS_PER_SEC;
        case 1:
            getrusage(RUSAGE_SELF, &usage);
            return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
        case 2:
            getrusage(RUSAGE_SELF, &usage);
            return (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
        case 3:
            times(&used);
            return (double)used.tms_utime;
        case 4:
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
            break;
        case 5:
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
            break;
        case 6:
            clock_gettime(CLOCK_MONOTONIC, &now);
            break;
        case 7:
            clock_gettime(CLOCK_BOOTTIME, &now);
            break;
        case 8:
            clock_gettime(CLOCK_REALTIME, &now);
            break;
        case 9:
            return MPI_Wtime();
        case 10:
            getrusage(RUSAGE_SELF, &usage);
            return (double)usage.ru_minflt;
        case 11:
            getrusage(RUSAGE_THREAD, &usage);
            return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
        default:
            break;
    }
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
enum { kClocks = 12 };
static double clocks[kClocks];

static void describe(const char* when) {
    char name[64];
    sprintf(name, "%s.%d", when, rank_);
    out = fopen(name, "we");
    second_asked = 1;
    while (second_asked) usleep(1000);
    for (int fd = 3; fd < 256; ++fd) show_descriptor(fd);
    show_descriptor(high);
    show_areas();
    show_process();
    for (int i = 0; i < kClocks; ++i) {
        double now = clock_value(i);
        say("clock %d: %s", i, now + 1e-9 >= clocks[i] ? "goes on" : "went back");
        clocks[i] = now;
    }
    fclose(out);
}

static void wait_for(const char* name, const char* word) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) printf("%s\n", word), fflush(stdout);
    while (access(name, F_OK) != 0) usleep(5000);
}

int main(int argc, char** argv) {
    arguments = argv;
    for (int fd = 0; fd < 256; ++fd) inherited[fd] = fcntl(fd, F_GETFD) != -1;
    sigset_t some;
    sigemptyset(&some), sigaddset(&some, SIGRTMIN + 3), sigaddset(&some, SIGURG);
    sigprocmask(SIG_BLOCK, &some, NULL); /* in every thread, those of the library, too */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    own_memory();
    pthread_create(&second, NULL, second_thread, NULL);
    while (!second_tid) usleep(1000);
    own_sockets(), own_descriptors(), own_attributes();
    for (volatile long i = 0; clock() < CLOCKS_PER_SEC / 2; ++i) {
    }
    describe("before");
    wait_for("go-resumed", "READY");
    describe("resumed");
    wait_for("go-restarted", "AGAIN");
    describe("restarted");
    second_done = 1;
    pthread_join(second, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) printf("described\n");
    MPI_Finalize();
}
