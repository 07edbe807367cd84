// The end of a starter: this process becomes a rank, or says in one line why it cannot.
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "split/loader/starters.h"
#include "starter/start.h"

namespace fermata::starter {
namespace {

// One of these a launcher always gives: without it the program would be a world of its own.
constexpr const char* kOfLaunchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD",
                                        "SLURM_PROCID"};

// LD_PRELOAD without this library; null when nothing is left.
char* without_library(const char* preload, char* text) {
    const char* library = remembered(split::kStarterLibrary);
    char* to = stpcpy(text, "LD_PRELOAD=");
    char* begin = to;
    for (const char* at = preload; *at != 0;) {
        at += strspn(at, " :");
        size_t length = strcspn(at, " :");
        if (length != 0 && (length != strlen(library) || strncmp(at, library, length) != 0)) {
            if (to != begin) *to++ = ':';
            memcpy(to, at, length);
            to += length;
        }
        at += length;
    }
    *to = 0;
    return to == begin ? nullptr : text;
}

}  // namespace

bool launcher_is_known(char* const* environment) {
    for (const char* name : kOfLaunchers)
        if (value_in(environment, name) != nullptr) return true;
    return false;
}

void refuse(const char* program, const char* why) {
    const char* directory = remembered(split::kStarterDirectory);
    bool first = true;
    if (*directory != 0) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/refused", directory);
        first = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) >= 0 || errno != EEXIST;
    }
    if (first) dprintf(2, "fermata: error: %s: %s\n", program, why);
    _exit(1);
}

int become_rank(const char* program, char* const* argv, char* const* environment) {
    if (!launcher_is_known(environment))
        refuse(program,
               "the environment that mpiexec gives its ranks was cleared before (env -i, sudo?), and MPI "
               "would make a "
               "world of one process: keep it");
    size_t arguments = 0, variables = 0;
    while (argv[arguments] != nullptr) ++arguments;
    while (environment[variables] != nullptr) ++variables;
    auto** words = static_cast<char**>(alloca((arguments + 6) * sizeof(char*)));
    size_t n = 0;
    const char* lower = remembered(split::kStarterLower);
    words[n++] = const_cast<char*>(lower);
    words[n++] = const_cast<char*>("--argv0");
    words[n++] = arguments > 0 ? argv[0] : const_cast<char*>(program);
    words[n++] = const_cast<char*>("--");
    words[n++] = const_cast<char*>(program);
    for (size_t i = 1; i < arguments; ++i) words[n++] = argv[i];
    words[n] = nullptr;

    // The lower half finds its libraries as at its first start. The program's own path comes behind it.
    const char* first_path = remembered(split::kLibraryPath);
    const char* path = value_in(environment, "LD_LIBRARY_PATH");
    const char* preload = value_in(environment, "LD_PRELOAD");
    auto* preload_text = static_cast<char*>(alloca((preload != nullptr ? strlen(preload) : 0) + 16));
    auto* path_text = static_cast<char*>(alloca(strlen(first_path) + 20));
    auto* own_text = static_cast<char*>(alloca((path != nullptr ? strlen(path) : 0) + 40));
    auto** list = static_cast<char**>(alloca((variables + 4) * sizeof(char*)));
    n = 0;
    for (size_t i = 0; i < variables; ++i) {
        bool changed = false;
        for (const char* name : {"LD_LIBRARY_PATH", "LD_PRELOAD", split::kLibraryPath})
            changed = changed || (strncmp(environment[i], name, strlen(name)) == 0 &&
                                  environment[i][strlen(name)] == '=');
        if (!changed) list[n++] = environment[i];
    }
    if (preload != nullptr && (preload_text = without_library(preload, preload_text)) != nullptr)
        list[n++] = preload_text;
    if (*first_path != 0) {
        strcpy(stpcpy(path_text, "LD_LIBRARY_PATH="), first_path);
        list[n++] = path_text;
    }
    strcpy(stpcpy(stpcpy(own_text, split::kLibraryPath), "="), path != nullptr ? path : "");
    list[n++] = own_text;
    list[n] = nullptr;
    return static_cast<int>(syscall(SYS_execve, lower, words, list));
}

}  // namespace fermata::starter
