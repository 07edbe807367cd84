// Before main(): is this program one that becomes a rank?
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "split/loader/starters.h"
#include "starter/start.h"

namespace fermata::starter {

Mode mode = Mode::off;

namespace {

char program_path[PATH_MAX];

// As it was named, so that a link to the interpreter stays one (Python's virtual environments); not where a
// script was named.
const char* own_program() {
    ssize_t size = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[size > 0 ? size : 0] = 0;
    const char* named = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    struct stat a, b;
    if (named != nullptr && stat(named, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_ino == b.st_ino &&
        a.st_dev == b.st_dev)
        return named;
    return program_path;
}

// True for a program that was started natively, with libraries that may load MPI later.
bool goes_into_the_split(const char* program, char** argv) {
    if (split::is_starter_by_name(program) || split::is_starter_by_name(program_path)) return false;
    const char* said = remembered("FERMATA_START");
    if (strcmp(said, "native") == 0 || !dlopen_is_imported()) return false;
    if (strcmp(said, "split") == 0) return true;
    // In the place of the process that mpiexec made nothing comes after it. Others are often helpers, which
    // must not take the rank's place.
    return atoi(remembered(split::kStarterProcess)) == getpid() || mentions_mpi(argv);
}

__attribute__((constructor)) void start(int, char** argv, char** environment) {
    if (value_in(environment, split::kStarterVariable) != nullptr)
        mode = Mode::starter;
    else if (value_in(environment, split::kOutsideOf) != nullptr)
        mode = Mode::outside;
    else
        return;
    remember_environment(environment);
    const char* program = own_program();
    const split::Elsewhere* elsewhere = split::starts_elsewhere(program);
    if (elsewhere == nullptr) elsewhere = split::starts_elsewhere(program_path);
    if (elsewhere != nullptr) {
        bool in_place = mode == Mode::starter && atoi(remembered(split::kStarterProcess)) == getpid();
        if (mode == Mode::starter && (in_place || elsewhere->ranks)) refuse(program, elsewhere->why);
        return forget_environment(environ);
    }
    if (mode == Mode::starter && atoi(remembered(split::kStarterProcess)) == getpid()) end_quietly();
    if (mode == Mode::starter && (mpi_is_loaded() || goes_into_the_split(program, argv))) {
        become_rank(program, argv, environment);
        refuse(program, "cannot execute Fermata's lower half");
    }
}

}  // namespace
}  // namespace fermata::starter
