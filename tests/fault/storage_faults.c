/* Faults at chosen storage calls, for crash_test.py: preloaded into every process of a job, it counts the
 * calls that change something below $FAULT_PATH and, at the chosen one, kills the process, holds it, or lets
 * the call fail or fall short. What to do stands in $FAULT_FILE, read anew at every call, so that one job can
 * have many faults:
 *
 *     ID WHO AT ACTION         e.g. "17 root 5 kill"
 *
 * WHO: root (the fermata command), rank, writer (a rank's forked child), node (the node daemon, whose
 * messages are counted). AT counts from 1 in each process since the ID changed. ACTION: none; kill, after (=
 * killed when the call is done); hold (stopped until SIGCONT); eio (this call); enospc (from this call on
 * until the ID changes); short (this write and every third after it). Every counted call appends "ID WHO PID
 * N CALL PATH" to $FAULT_FILE.log.
 *
 * It runs in bare clones that share a thread pointer with others and below another libc: system calls only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char path[512], file[512], log_file[520];
static size_t path_size;
static int is_root, is_rank, is_node;
static long own_pid;
static atomic_long id, count;

static long call(long number, long a, long b, long c, long d, long e) {
    long result;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = 0; /* sendto's: no address */
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

static long done(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static int ends_with(const char* text, const char* end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

__attribute__((constructor)) static void start(void) {
    const char *where = getenv("FAULT_PATH"), *what = getenv("FAULT_FILE");
    if (!where || !what || strlen(where) >= sizeof path || strlen(what) >= sizeof file) return;
    strcpy(path, where);
    strcpy(file, what);
    strcpy(log_file, what);
    strcat(log_file, ".log");
    char exe[512] = "";
    call(SYS_readlink, (long)"/proc/self/exe", (long)exe, sizeof exe - 1, 0, 0);
    is_root = ends_with(exe, "/fermata");
    is_rank = ends_with(exe, "/lower-openmpi") || ends_with(exe, "/lower-mpich");
    is_node = ends_with(exe, "/noded");
    own_pid = call(SYS_getpid, 0, 0, 0, 0, 0);
    path_size = strlen(path);
}

static char* put(char* to, const char* text) {
    while (*text) *to++ = *text++;
    *to++ = ' ';
    return to;
}

static char* put_number(char* to, long n) {
    char digits[24], *at = digits + sizeof digits;
    *--at = 0;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    return put(to, at);
}

enum action { none, kill_now, kill_after, hold, eio, enospc, shorter };

static enum action counted(const char* what, const char* name, int writes);

/* Is this call to be disturbed? `name` may be relative to a directory's descriptor, or only a descriptor. */
static enum action fault(const char* what, int fd, const char* name, int writes) {
    char full[1100] = "";
    if (!path_size) return none;
    if (!name || name[0] != '/') {
        char link[32], *end = put_number(put(link, "/proc/self/fd/") - 1, fd);
        end[-1] = 0;
        long n = fd >= 0 ? call(SYS_readlink, (long)link, (long)full, 512, 0, 0) : 0;
        if (n < 0) return none;
        full[n] = 0;
        if (name) strcat(strcat(full, "/"), strlen(name) < 512 ? name : "?");
    } else {
        strncpy(full, name, 1000);
    }
    return strncmp(full, path, path_size) == 0 ? counted(what, full + path_size, writes) : none;
}

static enum action counted(const char* what, const char* name, int writes) {
    char words[128] = "";
    long spec = call(SYS_open, (long)file, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (spec < 0) return none;
    long n = call(SYS_read, spec, (long)words, sizeof words - 1, 0, 0);
    call(SYS_close, spec, 0, 0, 0, 0);
    if (n <= 0) return none;
    char *at = words, *item[4] = {0};
    for (int i = 0; i < 4 && at; ++i) {
        item[i] = at;
        at = strpbrk(at, " \n");
        if (at) *at++ = 0;
    }
    if (!item[3]) return none;
    long now = atol(item[0]), first = atol(item[2]), before = atomic_load(&id);
    if (before != now && atomic_compare_exchange_strong(&id, &before, now)) atomic_store(&count, 0);
    long number = atomic_fetch_add(&count, 1) + 1, pid = call(SYS_getpid, 0, 0, 0, 0, 0);
    const char* who = is_root   ? "root"
                      : is_rank ? pid == own_pid ? "rank" : "writer"
                      : is_node ? "node"
                                : "other";

    char line[1300], *end = put_number(line, now);
    end = put_number(put_number(put(end, who), pid), number);
    end = put(put(end, what), name);
    *end++ = '\n';
    long to = call(SYS_open, (long)log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600, 0, 0);
    call(SYS_write, to, (long)line, end - line, 0, 0);
    call(SYS_close, to, 0, 0, 0, 0);

    if (strcmp(who, item[1]) != 0) return none;
    const char* wish = item[3];
    if (strcmp(wish, "enospc") == 0) return writes && number >= first ? enospc : none;
    if (strcmp(wish, "short") == 0) return number >= first && (number - first) % 3 == 0 ? shorter : none;
    if (number != first) return none;
    if (strcmp(wish, "kill") == 0) return kill_now;
    if (strcmp(wish, "after") == 0) return kill_after;
    if (strcmp(wish, "hold") == 0) return hold;
    if (strcmp(wish, "eio") == 0) return eio;
    return none;
}

static long run(enum action action, long number, long a, long b, long c, long d, long e) {
    long self = call(SYS_getpid, 0, 0, 0, 0, 0);
    if (action == kill_now) call(SYS_kill, self, 9, 0, 0, 0);
    if (action == hold) call(SYS_kill, self, 19, 0, 0, 0);
    if (action == eio) return done(-EIO);
    if (action == enospc) return done(-ENOSPC);
    if (action == shorter && (number == SYS_write || number == SYS_pwrite64) && c > 1) c = c / 3 + 1;
    long result = call(number, a, b, c, d, e);
    if (action == kill_after) call(SYS_kill, self, 9, 0, 0, 0);
    return done(result);
}

#define OPEN(FD, NAME, FLAGS)                                                 \
    mode_t mode = 0;                                                          \
    if ((FLAGS)&O_CREAT) {                                                    \
        va_list more;                                                         \
        va_start(more, FLAGS);                                                \
        mode = va_arg(more, mode_t);                                          \
        va_end(more);                                                         \
    }                                                                         \
    enum action action = (FLAGS)&O_CREAT ? fault("open", FD, NAME, 1) : none; \
    return (int)run(action, SYS_openat, FD, (long)(NAME), FLAGS, mode, 0)

int open(const char* name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }
int open64(const char* name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }
int openat(int fd, const char* name, int flags, ...) { OPEN(fd, name, flags); }
int openat64(int fd, const char* name, int flags, ...) { OPEN(fd, name, flags); }

ssize_t write(int fd, const void* data, size_t size) {
    return run(fault("write", fd, 0, 1), SYS_write, fd, (long)data, (long)size, 0, 0);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
    return run(fault("pwrite", fd, 0, 1), SYS_pwrite64, fd, (long)data, (long)size, at, 0);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
int fsync(int fd) { return (int)run(fault("fsync", fd, 0, 1), SYS_fsync, fd, 0, 0, 0, 0); }
int fdatasync(int fd) { return (int)run(fault("fdatasync", fd, 0, 1), SYS_fdatasync, fd, 0, 0, 0, 0); }
int ftruncate(int fd, off_t size) {
    return (int)run(fault("ftruncate", fd, 0, 1), SYS_ftruncate, fd, size, 0, 0, 0);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
int rename(const char* from, const char* to) {
    return (int)run(fault("rename", AT_FDCWD, to, 1), SYS_rename, (long)from, (long)to, 0, 0, 0);
}
int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
    return (int)run(fault("renameat2", to_fd, to, 1), SYS_renameat2, from_fd, (long)from, to_fd, (long)to,
                    flags);
}
int mkdir(const char* name, mode_t mode) {
    return (int)run(fault("mkdir", AT_FDCWD, name, 1), SYS_mkdir, (long)name, mode, 0, 0, 0);
}
int rmdir(const char* name) {
    return (int)run(fault("rmdir", AT_FDCWD, name, 0), SYS_rmdir, (long)name, 0, 0, 0, 0);
}
int unlink(const char* name) {
    return (int)run(fault("unlink", AT_FDCWD, name, 0), SYS_unlink, (long)name, 0, 0, 0, 0);
}
int unlinkat(int fd, const char* name, int flags) {
    return (int)run(fault("unlink", fd, name, 0), SYS_unlinkat, fd, (long)name, flags, 0, 0);
}
int remove(const char* name) {
    enum action action = fault("unlink", AT_FDCWD, name, 0);
    int result = (int)run(action, SYS_unlink, (long)name, 0, 0, 0, 0);
    return result == 0 || errno != EISDIR ? result : (int)done(call(SYS_rmdir, (long)name, 0, 0, 0, 0));
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
    return run(is_node && path_size ? counted("send", "", 0) : none, SYS_sendto, fd, (long)data, (long)size,
               flags, 0);
}
