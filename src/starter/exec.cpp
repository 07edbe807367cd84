// exec and posix_spawn, as libc's, with two differences: what Fermata needs stays in the environment, and a
// program of MPI is not even loaded natively (its library need not be there: the fronts are).
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "starter/start.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace fermata::starter {
namespace {

template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// Where execvp would find it; as it is when it has a slash; "" = nowhere.
const char* find(const char* name, char (&found)[PATH_MAX]) {
    if (strchr(name, '/') != nullptr) return name;
    const char* path = getenv("PATH");
    if (path == nullptr) path = "/bin:/usr/bin";
    for (const char* at = path;; ++at) {
        size_t length = strcspn(at, ":");
        struct stat st;
        if (length + strlen(name) + 3 < sizeof found) {
            snprintf(found, sizeof found, "%.*s%s%s", static_cast<int>(length), at, length != 0 ? "/" : "",
                     name);
            if (access(found, X_OK) == 0 && stat(found, &st) == 0 && S_ISREG(st.st_mode)) return found;
        }
        at += length;
        if (*at == 0) return "";
    }
}

int replace(const char* name, char* const* argv, char* const* environment, bool search) {
    char** room = static_cast<char**>(alloca(room_for(environment) * sizeof(char*)));
    char** list = with_ours(environment, room, static_cast<char*>(alloca(text_for(environment))));
    if (mode == Mode::starter && argv != nullptr && name != nullptr) {
        char found[PATH_MAX];
        const char* file = search ? find(name, found) : name;
        if (file_needs_mpi(file) && access(file, X_OK) == 0) return become_rank(file, argv, list);
    }
    if (search) {
        static auto* real = next<int(const char*, char* const*, char* const*)>("execvpe");
        return real(name, argv, list);
    }
    return static_cast<int>(syscall(SYS_execve, name, argv, list));
}

using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);
int spawn(Spawn* real, pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* argv, char* const* environment) {
    char** room = static_cast<char**>(alloca(room_for(environment) * sizeof(char*)));
    char** list = with_ours(environment, room, static_cast<char*>(alloca(text_for(environment))));
    return real(pid, path, actions, attributes, argv, list);
}

// The arguments behind `first` into a vector that ends in null.
size_t count_of(va_list list) {
    size_t n = 1;
    while (va_arg(list, char*) != nullptr) ++n;
    return n;
}

}  // namespace
}  // namespace fermata::starter

using namespace fermata::starter;

EXPORT int execve(const char* path, char* const argv[], char* const environment[]) noexcept {
    return replace(path, argv, environment, false);
}
EXPORT int execv(const char* path, char* const argv[]) noexcept {
    return replace(path, argv, environ, false);
}
EXPORT int execvp(const char* name, char* const argv[]) noexcept {
    return replace(name, argv, environ, true);
}
EXPORT int execvpe(const char* name, char* const argv[], char* const environment[]) noexcept {
    return replace(name, argv, environment, true);
}
EXPORT int fexecve(int fd, char* const argv[], char* const environment[]) noexcept {
    static auto* real = next<int(int, char* const*, char* const*)>("fexecve");
    char** room = static_cast<char**>(alloca(room_for(environment) * sizeof(char*)));
    return real(fd, argv, with_ours(environment, room, static_cast<char*>(alloca(text_for(environment)))));
}

#define FERMATA_EXECL(name, get_environment, search)                        \
    EXPORT int name(const char* path, const char* first, ...) noexcept {    \
        va_list list, again;                                                \
        va_start(list, first);                                              \
        va_copy(again, list);                                               \
        size_t n = count_of(list);                                          \
        char** argv = static_cast<char**>(alloca((n + 1) * sizeof(char*))); \
        argv[0] = const_cast<char*>(first);                                 \
        for (size_t i = 1; i <= n; ++i) argv[i] = va_arg(again, char*);     \
        char* const* environment = get_environment;                         \
        va_end(again);                                                      \
        va_end(list);                                                       \
        return replace(path, argv, environment, search);                    \
    }
FERMATA_EXECL(execl, environ, false)
FERMATA_EXECL(execlp, environ, true)
FERMATA_EXECL(execle, va_arg(again, char* const*), false)

EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
    static auto* real = next<Spawn>("posix_spawn");
    return spawn(real, pid, path, actions, attributes, argv, environment);
}
EXPORT int posix_spawnp(pid_t* pid, const char* name, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
    static auto* real = next<Spawn>("posix_spawnp");
    return spawn(real, pid, name, actions, attributes, argv, environment);
}
