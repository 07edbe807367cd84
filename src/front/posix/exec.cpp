// Programs that the application starts. /proc/self/exe is the application for them, too, and they get a
// library that ends them, with a line, where they come to MPI_Init: they are no ranks, and the launcher's
// variables in their environment would lead them to this rank's place in MPI, or to a world of their own
// (src/starter/mpi_init.cpp).
#include <alloca.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/core/call.h"
#include "front/core/ids.h"
#include "front/core/line.h"
#include "front/posix/executable.h"
#include "front/posix/next.h"
#include "split/loader/starters.h"

namespace fermata::front::posix {
namespace {

Next<int(const char*, char* const*, char* const*)> next_execve{"execve"};
Next<int(const char*, char* const*, char* const*)> next_execvpe{"execvpe"};
Next<int(int, char* const*, char* const*)> next_fexecve{"fexecve"};
using SpawnFunction = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                          char* const*, char* const*);
Next<SpawnFunction> next_posix_spawn{"posix_spawn"};
Next<SpawnFunction> next_posix_spawnp{"posix_spawnp"};
Next<int(posix_spawnattr_t*, pid_t)> next_setpgroup{"posix_spawnattr_setpgroup"};
Next<int(const posix_spawnattr_t*, pid_t*)> next_getpgroup{"posix_spawnattr_getpgroup"};
Next<int(const char*)> next_system{"system"};
Next<FILE*(const char*, const char*)> next_popen{"popen"};

constexpr const char* kPreload = "LD_PRELOAD=";
constexpr size_t kAdded = 4;  // pointers, the null at the end too

const char* library() {
    return bridge() != nullptr && bridge()->guard_library != nullptr ? bridge()->guard_library : nullptr;
}

size_t count(char* const* environment) {
    size_t n = 0;
    while (environment != nullptr && environment[n] != nullptr) ++n;
    return n;
}

const char* preload_of(char* const* environment) {
    for (char* const* e = environment; e != nullptr && *e != nullptr; ++e)
        if (strncmp(*e, kPreload, strlen(kPreload)) == 0) return *e + strlen(kPreload);
    return "";
}

// Bytes that `guarded` writes as text.
size_t text_size(char* const* environment) {
    return 2 * strlen(library()) + strlen(bridge()->program) + strlen(preload_of(environment)) + 128;
}

// Called with a library. Without allocating: it may be the child of a vfork.
char** guarded(char* const* environment, char** list, char* text) {
    char** to = list;
    const char* theirs = preload_of(environment);
    for (char* const* e = environment; e != nullptr && *e != nullptr; ++e)
        if (strncmp(*e, kPreload, strlen(kPreload)) != 0 && strncmp(*e, "FERMATA_", 8) != 0) *to++ = *e;
    auto add = [&](const char* a, const char* b, const char* c, const char* d) {
        *to++ = text;
        text = stpcpy(stpcpy(stpcpy(stpcpy(text, a), b), c), d) + 1;
    };
    bool has_it = strstr(theirs, library()) != nullptr;
    add(kPreload, has_it ? "" : library(), has_it || *theirs == 0 ? "" : ":", theirs);
    add(split::kOutsideOf, "=", bridge()->program, "");
    add(split::kStarterLibrary, "=", library(), "");
    *to = nullptr;
    return list;
}

#define FERMATA_GUARDED(environment)                                                                        \
    (library() == nullptr                                                                                   \
         ? const_cast<char**>(environment)                                                                  \
         : guarded(environment, static_cast<char**>(alloca((count(environment) + kAdded) * sizeof(char*))), \
                   static_cast<char*>(alloca(text_size(environment)))))

// Guards `environ`, which libc's own functions hand on, for as long as one of them runs.
class GuardedEnviron {
  public:
    GuardedEnviron() {
        if (library() == nullptr) return;
        size_ = (count(environ) + kAdded) * sizeof(char*) + text_size(environ);
        void* room = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) return;
        list_ = static_cast<char**>(room);
        theirs_ = environ;
        guarded(theirs_, list_, reinterpret_cast<char*>(list_ + count(theirs_) + kAdded));
        environ = list_;
    }
    ~GuardedEnviron() {
        if (list_ == nullptr || environ != list_) return;  // another thread has set a variable: a copy by now
        environ = theirs_;
        munmap(list_, size_);
    }
    GuardedEnviron(const GuardedEnviron&) = delete;
    GuardedEnviron& operator=(const GuardedEnviron&) = delete;

  private:
    char** list_ = nullptr;
    char** theirs_ = nullptr;
    size_t size_ = 0;
};

// Where execvp would find it; as it is when it has a slash; "" = nowhere.
const char* find(const char* name, char (&found)[PATH_MAX]) {
    if (strchr(name, '/') != nullptr) return access(name, X_OK) == 0 ? name : "";
    const char* path = getenv("PATH");
    for (const char* at = path != nullptr ? path : "/bin:/usr/bin";; ++at) {
        size_t length = strcspn(at, ":");
        if (length + strlen(name) + 3 < sizeof found) {
            snprintf(found, sizeof found, "%.*s%s%s", static_cast<int>(length), at, length != 0 ? "/" : "",
                     name);
            if (access(found, X_OK) == 0) return found;
        }
        at += length;
        if (*at == 0) return "";
    }
}

int spawned(pid_t* pid, int error) {
    if (error == 0 && pid != nullptr) *pid = shown_id(*pid);
    return error;
}

// The rank's own process is about to become another program. The library below has begun, and its launcher
// ends the job when the process that it knows goes away (MPICH's does so without a word).
void check_leaving(const char* name) {
    if (bridge() == nullptr || bridge()->process != real_pid() || front.life == Life::finalized ||
        name == nullptr)
        return;
    char found[PATH_MAX], text[1024];
    const char* program = find(name, found);
    struct stat st;
    if (*program == 0 || stat(program, &st) != 0 || !S_ISREG(st.st_mode)) return;  // it will fail
    Line line(text, sizeof text);
    line << "error: " << bridge()->program << " replaces itself by " << program
         << ", and the rank's place in MPI would be lost: start that program directly, or both with "
            "FERMATA_START=native (docs/instead-of-mpirun.md)";
    bridge()->fatal(text, 1);
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE int execve(const char* path, char* const argv[], char* const environment[]) noexcept {
    check_leaving(path);
    return next_execve(instead_of(path), argv, FERMATA_GUARDED(environment));
}
FERMATA_INTERPOSE int execv(const char* path, char* const argv[]) noexcept {
    check_leaving(path);
    return next_execve(instead_of(path), argv, FERMATA_GUARDED(environ));
}
FERMATA_INTERPOSE int execvpe(const char* name, char* const argv[], char* const environment[]) noexcept {
    check_leaving(name);
    return next_execvpe(instead_of(name), argv, FERMATA_GUARDED(environment));
}
FERMATA_INTERPOSE int execvp(const char* name, char* const argv[]) noexcept {
    check_leaving(name);
    return next_execvpe(instead_of(name), argv, FERMATA_GUARDED(environ));
}
FERMATA_INTERPOSE int fexecve(int fd, char* const argv[], char* const environment[]) noexcept {
    return next_fexecve(fd, argv, FERMATA_GUARDED(environment));
}

#define FERMATA_EXECL(name, get_environment, next)                                  \
    FERMATA_INTERPOSE int name(const char* path, const char* first, ...) noexcept { \
        va_list list, again;                                                        \
        va_start(list, first);                                                      \
        va_copy(again, list);                                                       \
        size_t n = 1;                                                               \
        while (va_arg(list, char*) != nullptr) ++n;                                 \
        auto** argv = static_cast<char**>(alloca((n + 1) * sizeof(char*)));         \
        argv[0] = const_cast<char*>(first);                                         \
        for (size_t i = 1; i <= n; ++i) argv[i] = va_arg(again, char*);             \
        char* const* environment = get_environment;                                 \
        va_end(again);                                                              \
        va_end(list);                                                               \
        check_leaving(path);                                                        \
        return next(instead_of(path), argv, FERMATA_GUARDED(environment));          \
    }
FERMATA_EXECL(execl, environ, next_execve)
FERMATA_EXECL(execlp, environ, next_execvpe)
FERMATA_EXECL(execle, va_arg(again, char* const*), next_execve)

FERMATA_INTERPOSE int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                                  const posix_spawnattr_t* attributes, char* const argv[],
                                  char* const environment[]) {
    return spawned(pid, next_posix_spawn(pid, instead_of(path), actions, attributes, argv,
                                         FERMATA_GUARDED(environment)));
}
FERMATA_INTERPOSE int posix_spawnp(pid_t* pid, const char* name, const posix_spawn_file_actions_t* actions,
                                   const posix_spawnattr_t* attributes, char* const argv[],
                                   char* const environment[]) {
    return spawned(pid, next_posix_spawnp(pid, instead_of(name), actions, attributes, argv,
                                          FERMATA_GUARDED(environment)));
}
// The group that a program to be spawned joins, 0 = one of its own.
FERMATA_INTERPOSE int posix_spawnattr_setpgroup(posix_spawnattr_t* attributes, pid_t group) noexcept {
    return next_setpgroup(attributes, fermata::front::real_group(group));
}
FERMATA_INTERPOSE int posix_spawnattr_getpgroup(const posix_spawnattr_t* attributes, pid_t* group) noexcept {
    const int error = next_getpgroup(attributes, group);
    if (error == 0 && *group != 0) *group = fermata::front::shown_group(*group);
    return error;
}
FERMATA_INTERPOSE int system(const char* command) {
    GuardedEnviron guard;
    return next_system(command);
}
FERMATA_INTERPOSE FILE* popen(const char* command, const char* mode) {
    GuardedEnviron guard;
    return next_popen(command, mode);
}
