/* Process and thread ids that the program has kept: all that it asks, and all that it does to processes by
 * their numbers, before and after a checkpoint. Each case says "NAME right" or what is not true, for all
 * ranks.
 *
 *   identity DIRECTORY */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "hold.h"

extern char** environ;
#define NEED(condition) \
    if (!(condition)) return #condition
typedef const char* Said; /* NULL: all is well */

static const char* directory;
static int rank, size;
static pid_t self, parent, group, session, worker_id, *all_ranks;
static volatile int quit;

/* A number that the kernel gives to nobody: of a child that was there at the checkpoint and is gone after a
 * restart, or has ended. */
static pid_t old_child;

static volatile sig_atomic_t heard, worker_heard;
static volatile pid_t sender, dead_child;
static void hear(int number, siginfo_t* info, void* context) {
    if (gettid() == worker_id) worker_heard = number;
    heard = number;
    sender = info->si_pid;
}
static void hear_child(int number, siginfo_t* info, void* context) { dead_child = info->si_pid; }
static void listen_to(int number, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(number, &action, 0);
}

static pthread_t worker;
static void* work(void* unused) {
    worker_id = gettid();
    while (!quit) usleep(1000);
    return unused;
}

static void set(void) {
    self = getpid();
    parent = getppid();
    setpgid(0, 0); /* where it may: a leader of its group leads after a restart */
    group = getpgrp();
    session = getsid(0);
    all_ranks = malloc(sizeof(pid_t) * (size_t)size);
    MPI_Allgather(&self, 1, MPI_INT, all_ranks, 1, MPI_INT, MPI_COMM_WORLD);
    listen_to(SIGUSR1, hear);
    listen_to(SIGCHLD, hear_child);
    pthread_create(&worker, 0, work, 0);
    while (!worker_id) usleep(1000);
}

static Said own(void) {
    NEED(getpid() == self);
    NEED(getppid() == parent);
    NEED(gettid() == self);
    NEED(getpgrp() == group && getpgid(0) == group && getpgid(self) == group);
    NEED(getsid(0) == session && getsid(self) == session);
    /* The kernel's numbers: a signal to the group must not meet the launcher. */
    int pid = 0, leader = 0;
    FILE* stat_file = fopen("/proc/self/stat", "r");
    NEED(stat_file && fscanf(stat_file, "%d %*s %*c %*d %d", &pid, &leader) == 2);
    fclose(stat_file);
    NEED(group != self || leader == pid);
    return 0;
}
static Said raw(void) {
    NEED(syscall(SYS_getpid) == self);
    NEED(syscall(SYS_gettid) == self);
    NEED(syscall(SYS_getppid) == parent);
    NEED(syscall(SYS_getpgrp) == group);
    NEED(syscall(SYS_getpgid, self) == group);
    NEED(syscall(SYS_getsid, 0) == session);
    NEED(syscall(SYS_kill, self, 0) == 0);
    NEED(syscall(SYS_tgkill, self, worker_id, 0) == 0);
    NEED(syscall(SYS_tkill, worker_id, 0) == 0);
    NEED(syscall(SYS_tkill, -1, 0) == -1 && errno == EINVAL);
    NEED(syscall(SYS_write, -1, "", 1) == -1 && errno == EBADF);
    struct rlimit limit;
    NEED(syscall(SYS_prlimit64, self, RLIMIT_CORE, 0, &limit) == 0);
    /* Six words, the last of them on the stack. */
    char* page =
        (char*)syscall(SYS_mmap, 0L, 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
    NEED(page != MAP_FAILED && (page[17] = 1) == 1 && syscall(SYS_munmap, page, 4096L) == 0);
    return 0;
}
static Said signals(void) {
    heard = sender = 0;
    NEED(kill(self, SIGUSR1) == 0);
    while (!heard) usleep(1000);
    NEED(heard == SIGUSR1 && sender == self);
    heard = sender = 0;
    union sigval value = {.sival_int = 5};
    NEED(sigqueue(self, SIGUSR1, value) == 0);
    while (!heard) usleep(1000);
    NEED(sender == self);
    worker_heard = sender = 0;
    NEED(tgkill(self, worker_id, SIGUSR1) == 0);
    for (int i = 0; i < 2000 && !worker_heard; ++i) usleep(1000);
    NEED(worker_heard == SIGUSR1 && sender == self);
    worker_heard = 0;
    NEED(pthread_kill(worker, SIGUSR1) == 0);
    for (int i = 0; i < 2000 && !worker_heard; ++i) usleep(1000);
    NEED(worker_heard == SIGUSR1);
    NEED(raise(SIGUSR1) == 0 && sender == self);
    siginfo_t told = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    told.si_pid = self;
    sender = heard = 0;
    NEED(syscall(SYS_rt_sigqueueinfo, self, SIGUSR1, &told) == 0);
    while (!heard) usleep(1000);
    NEED(sender == self);
    NEED(kill(-group, 0) == 0 || errno == EPERM);
    NEED(killpg(group, 0) == 0 || errno == EPERM);
    sigset_t one, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    NEED(tgkill(self, self, SIGUSR2) == 0);
    siginfo_t info = {0};
    NEED(sigwaitinfo(&one, &info) == SIGUSR2 && info.si_pid == self);
    struct timespec second = {1, 0};
    NEED(tgkill(self, self, SIGUSR2) == 0 && sigtimedwait(&one, &info, &second) == SIGUSR2 &&
         info.si_pid == self);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    return 0;
}
/* What waits for the process keeps its sender. */
static void waiting_set(void) {
    union sigval value = {.sival_int = 7};
    sigqueue(self, SIGRTMIN + 3, value);
}
static Said waiting(void) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 3);
    siginfo_t info = {0};
    NEED(sigwaitinfo(&one, &info) == SIGRTMIN + 3 && info.si_value.sival_int == 7 && info.si_pid == self);
    return 0;
}
static Said children(void) {
    int status = 0, pipes[2];
    NEED(pipe(pipes) == 0);
    dead_child = 0;
    pid_t child = fork();
    if (child == 0) {
        pid_t said[2] = {getpid(), getppid()};
        _exit(write(pipes[1], said, sizeof said) == sizeof said && kill(self, 0) == 0 ? 3 : 4);
    }
    pid_t said[2] = {0, 0};
    NEED(child > 0 && child != self && read(pipes[0], said, sizeof said) == sizeof said);
    NEED(said[0] == child && said[1] == self);
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    for (int i = 0; i < 2000 && !dead_child; ++i) usleep(1000);
    NEED(dead_child == child);
    NEED(kill(child, 0) == -1 && errno == ESRCH);
    child = vfork();
    if (child == 0) _exit(5);
    NEED(child > 0 && wait4(child, &status, 0, 0) == child && WEXITSTATUS(status) == 5);
    char* words[] = {"sh", "-c", "exit 6", 0};
    NEED(posix_spawn(&child, "/bin/sh", 0, 0, words, environ) == 0);
    siginfo_t info = {0};
    NEED(waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_pid == child && info.si_status == 6);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        _exit(getpgrp() == getpid() ? 7 : 8);
    }
    NEED(waitpid(-1, &status, 0) == child && WEXITSTATUS(status) == 7);
    NEED(system("exit 9") == 9 << 8);
    close(pipes[0]), close(pipes[1]);
    return 0;
}
/* A child that was there before: it runs while the program is resumed, and counts as killed after a restart.
 */
static void gone_set(void) {
    old_child = fork();
    if (old_child == 0) {
        while (1) pause();
    }
}
static Said gone(void) {
    int status = 0;
    if (kill(old_child, 0) == 0) NEED(kill(old_child, SIGKILL) == 0);
    for (int i = 0; i < 2000 && !dead_child; ++i) usleep(1000);
    NEED(dead_child == old_child);
    NEED(waitpid(old_child, &status, 0) == old_child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    NEED(kill(old_child, 0) == -1 && errno == ESRCH);
    NEED(waitpid(old_child, &status, 0) == -1 && errno == ECHILD);
    return 0;
}
/* Children that had ended before, and that nobody has asked for. */
static pid_t ended_child[4];
static FILE* ended_stream;
static void ended_set(void) {
    for (int i = 0; i < 4; ++i) {
        siginfo_t info = {0};
        ended_child[i] = fork();
        if (ended_child[i] == 0) {
            if (i == 2) setpgid(0, 0);
            if (i == 1) signal(SIGTERM, SIG_DFL), raise(SIGTERM);
            _exit(10 + i);
        }
        waitid(P_PID, (id_t)ended_child[i], &info, WEXITED | WNOWAIT);
    }
    ended_stream = popen("exit 4", "r");
    while (fgetc(ended_stream) != EOF) {
    }
    usleep(100000);
    dead_child = 0;
}
static Said ended(void) {
    siginfo_t info = {0};
    int status = 0;
    struct rusage usage = {0};
    NEED(waitid(P_PID, (id_t)ended_child[0], &info, WEXITED | WNOWAIT) == 0);
    NEED(info.si_signo == SIGCHLD && info.si_code == CLD_EXITED && info.si_pid == ended_child[0]);
    NEED(info.si_status == 10 && info.si_uid == getuid());
    NEED(waitpid(ended_child[0], &status, WNOHANG) == ended_child[0] && status == 10 << 8);
    NEED(waitpid(ended_child[0], &status, WNOHANG) == -1 && errno == ECHILD);
    NEED(syscall(SYS_wait4, ended_child[1], &status, WNOHANG, 0) == ended_child[1]);
    NEED(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    NEED(waitpid(-ended_child[2], &status, 0) == ended_child[2] && status == 12 << 8);
    NEED(pclose(ended_stream) == 4 << 8);
    NEED(wait3(&status, 0, &usage) == ended_child[3] && status == 13 << 8 && usage.ru_maxrss > 0);
    NEED(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
    return 0;
}
static int is_listed(int thread) {
    struct dirent** listed = NULL;
    int count = scandir("/proc/self/task", &listed, NULL, NULL), found = 0;
    for (int i = 0; i < count; ++i) {
        found += atoi(listed[i]->d_name) == thread;
        free(listed[i]);
    }
    free(listed);
    return found;
}
/* The number that the kernel gave last, for who may set it. What is set back goes forward again afterwards,
 * or the numbers of the next restart's threads are those that these ranks are shown under. */
static FILE* last_number;
static int last_before;
static void counter_is_taken(void) {
    last_number = fopen("/proc/sys/kernel/ns_last_pid", "r+");
    if (last_number && fscanf(last_number, "%d", &last_before) != 1) last_before = 1;
    MPI_Barrier(MPI_COMM_WORLD);
}
static void next_number_is(int number) {
    if (!last_number) return;
    rewind(last_number); /* elsewhere than at its beginning the kernel ignores what is written */
    fprintf(last_number, "%d", number - 1);
    fflush(last_number);
}
static void counter_is_given_back(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    next_number_is(last_before + 1);
    if (last_number) fclose(last_number);
}
/* The next child gets the number that the program itself has had: it must be shown under another one. */
static Said same_number(void) {
    int status = 0, same = 0;
    counter_is_taken();
    for (int attempt = 0; attempt < 20 && !same; ++attempt) {
        next_number_is(self);
        pid_t child = fork();
        if (child == 0) _exit(getpid() == self ? 1 : 0);
        same = child == self || waitpid(child, &status, 0) != child || status != 0;
    }
    counter_is_given_back();
    NEED(!same);
    return 0;
}
static volatile pid_t other_id;
static void* be_another(void* unused) {
    other_id = gettid();
    while (other_id) usleep(100);
    return unused;
}
/* The next thread gets another rank's number: its name in /proc means the thread. */
static Said same_thread(void) {
    const char* wrong = 0;
    counter_is_taken();
    for (int attempt = 0; attempt < 20 && !wrong; ++attempt) {
        pthread_t thread;
        const int next = all_ranks[(rank + 1) % size];
        next_number_is(next);
        if (pthread_create(&thread, 0, be_another, 0) != 0) continue;
        while (!other_id) usleep(100);
        if (size > 1 && other_id == next) wrong = "another rank's number is shown";
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", other_id);
        if (access(path, F_OK) != 0) wrong = "the thread is not found by its number";
        if (!is_listed(other_id)) wrong = "scandir does not list the thread";
        other_id = 0;
        pthread_join(thread, 0);
    }
    counter_is_given_back();
    return wrong;
}
static Said attributes(void) {
    struct rlimit limit;
    cpu_set_t cpus;
    struct sched_param how = {0};
    struct timespec interval;
    char byte = 42, there = 0;
    struct iovec to = {&there, 1}, from = {&byte, 1};
    clockid_t clock;
    NEED(prlimit(self, RLIMIT_NOFILE, 0, &limit) == 0);
    NEED(sched_getaffinity(self, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 0);
    NEED(sched_setaffinity(worker_id, sizeof cpus, &cpus) == 0);
    NEED(sched_getscheduler(worker_id) >= 0 && sched_getparam(self, &how) == 0);
    NEED(sched_rr_get_interval(self, &interval) == 0);
    errno = 0;
    int nice_now = getpriority(PRIO_PROCESS, (id_t)worker_id);
    NEED(errno == 0 && setpriority(PRIO_PROCESS, (id_t)worker_id, nice_now) == 0);
    NEED(process_vm_readv(self, &to, 1, &from, 1, 0) == 1 && there == 42);
    NEED(clock_getcpuclockid(self, &clock) == 0);
    int fd = pidfd_open(self, 0);
    NEED(fd >= 0);
    close(fd);
    return 0;
}
static Said timer(void) {
    timer_t id;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = worker_id;
    worker_heard = 0;
    NEED(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
    struct itimerspec soon = {.it_value = {0, 1000000}};
    timer_settime(id, 0, &soon, 0);
    for (int i = 0; i < 2000 && !worker_heard; ++i) usleep(1000);
    NEED(worker_heard == SIGUSR1);
    timer_delete(id);
    return 0;
}
static int owned[2];
static void descriptors_set(void) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, owned) != 0) perror("socketpair");
    fcntl(owned[0], F_SETOWN, self);
}
static Said descriptors(void) {
    NEED(fcntl(owned[0], F_GETOWN) == self);
    struct f_owner_ex owner = {F_OWNER_TID, worker_id}, now;
    NEED(fcntl(owned[1], F_SETOWN_EX, &owner) == 0 && fcntl(owned[1], F_GETOWN_EX, &now) == 0 &&
         now.pid == worker_id);
    struct ucred peer;
    socklen_t length = sizeof peer;
    NEED(getsockopt(owned[0], SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == self);
    int on = 1;
    NEED(setsockopt(owned[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    struct ucred mine = {self, getuid(), getgid()};
    char room[CMSG_SPACE(sizeof mine)], byte = 1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_CREDENTIALS, head->cmsg_len = CMSG_LEN(sizeof mine);
    memcpy(CMSG_DATA(head), &mine, sizeof mine);
    NEED(sendmsg(owned[0], &message, 0) == 1);
    memset(room, 0, sizeof room);
    message.msg_controllen = sizeof room;
    NEED(recvmsg(owned[1], &message, 0) == 1 && (head = CMSG_FIRSTHDR(&message)) != 0);
    memcpy(&mine, CMSG_DATA(head), sizeof mine);
    NEED(mine.pid == self);
    char name[1200];
    snprintf(name, sizeof name, "%s/lock.%d", directory, rank);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    NEED(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK && asked.l_pid == self ? 0 : 1);
    }
    int status = 1;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    close(fd);
    return 0;
}
static Said names(void) {
    char path[256], text[256] = "";
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/comm", self);
    FILE* file = fopen(path, "r");
    NEED(file && fgets(text, sizeof text, file) && strstr(text, "identity"));
    fclose(file);
    snprintf(path, sizeof path, "/proc/%d/task/%d", self, worker_id);
    NEED(stat(path, &st) == 0 && access(path, F_OK) == 0);
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", worker_id);
    int fd = open(path, O_RDONLY);
    NEED(fd >= 0);
    close(fd);
    const ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    NEED(length > 0);
    text[length] = 0;
    NEED(atoi(text) == self);
    snprintf(path, sizeof path, "/proc/%d", self);
    char* whole = realpath("/proc/self", 0);
    NEED(whole && strcmp(whole, path) == 0);
    free(whole);
    struct dirent** listed = NULL;
    int count = scandir("/proc/self/task", &listed, NULL, NULL);
    for (int i = 0; i < count; ++i) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", listed[i]->d_name);
        const int thread = atoi(listed[i]->d_name); /* one of the library may have ended since */
        NEED(!thread || access(path, F_OK) == 0 || !is_listed(thread));
        free(listed[i]);
    }
    free(listed);
    snprintf(path, sizeof path, "/proc/%d/task", self);
    DIR* tasks = opendir(path);
    int found = 0;
    for (struct dirent* entry; tasks && (entry = readdir(tasks));)
        found += atoi(entry->d_name) == self || atoi(entry->d_name) == worker_id;
    NEED(tasks && found == 2);
    closedir(tasks);
    return 0;
}
/* Of the ranks on this node, all of them here. */
static Said others(void) {
    for (int i = 0; i < size; ++i) NEED(kill(all_ranks[i], 0) == 0);
    for (int i = 0; i < size; ++i)
        for (int k = 0; k < i; ++k) NEED(all_ranks[i] != all_ranks[k]);
    char byte = (char)(rank + 1), there = 0;
    uint64_t mine = (uintptr_t)&byte, *where = malloc(sizeof *where * (size_t)size);
    MPI_Allgather(&mine, 1, MPI_UINT64_T, where, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    struct iovec to = {&there, 1}, from = {(void*)(uintptr_t)where[(rank + 1) % size], 1};
    NEED(process_vm_readv(all_ranks[(rank + 1) % size], &to, 1, &from, 1, 0) == 1 || errno == EPERM);
    NEED(there == (rank + 1) % size + 1 || errno == EPERM);
    MPI_Barrier(MPI_COMM_WORLD);
    free(where);
    return 0;
}
/* Last: the group is another one afterwards. */
static Said new_group(void) {
    NEED(setpgid(0, 0) == 0 || errno == EPERM);
    NEED(getpgrp() == self || getpgrp() == group);
    pid_t child = fork();
    if (child == 0) {
        pid_t leads = setsid();
        _exit(leads == getpid() && getsid(0) == leads && getpgrp() == leads ? 0 : 1);
    }
    int status = 1;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static void nothing(void) {}
static const struct {
    const char* name;
    void (*set)(void);
    Said (*check)(void);
} cases[] = {{"own", nothing, own},
             {"raw", nothing, raw},
             {"waiting", waiting_set, waiting},
             {"signals", nothing, signals},
             {"gone", gone_set, gone}, /* before others ask for any child */
             {"ended", ended_set, ended},
             {"children", nothing, children},
             {"same_number", nothing, same_number},
             {"same_thread", nothing, same_thread},
             {"attributes", nothing, attributes},
             {"timer", nothing, timer},
             {"descriptors", descriptors_set, descriptors},
             {"names", nothing, names},
             {"others", nothing, others},
             {"new_group", nothing, new_group}};
enum { CASES = sizeof cases / sizeof *cases };

int main(int argc, char** argv) {
    sigset_t one; /* no thread takes it, the library's neither: it waits for the process (waiting) */
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 3);
    pthread_sigmask(SIG_BLOCK, &one, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    directory = argv[1];
    set();
    for (int i = 0; i < CASES; ++i) cases[i].set();
    hold();
    for (int i = 0; i < CASES; ++i) {
        const char* said = cases[i].check();
        int wrong = said ? rank + 1 : 0, all = 0;
        if (said) fprintf(stderr, "rank %d: %s: not true: %s (errno %d)\n", rank, cases[i].name, said, errno);
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) printf("%s %s\n", cases[i].name, all ? "not true" : "right"), fflush(stdout);
    }
    quit = 1;
    pthread_join(worker, 0);
    MPI_Finalize();
    return 0;
}
