// Programs whose work is to start another one, by name: shells and tools that stand before the MPI program on
// a command line. Plain data without dependencies: the command line, the lower half and the library that is
// preloaded into starters (src/starter) share it.
#pragma once

namespace fermata::split {

// They run natively, until one of them becomes or starts the MPI program. Needed by name only when they (or
// libraries of theirs) import dlopen: who does neither import MPI nor dlopen is a starter anyway.
inline constexpr const char* kStarters[] = {
    "sh",        "bash",      "rbash",      "dash",    "ash",      "ksh",     "ksh93",      "ksh2020",
    "mksh",      "zsh",       "fish",       "csh",     "tcsh",     "busybox", "toybox",     "env",
    "nice",      "ionice",    "nohup",      "setsid",  "timeout",  "time",    "stdbuf",     "taskset",
    "numactl",   "chrt",      "prlimit",    "setarch", "linux64",  "uname26", "flock",      "xargs",
    "script",    "strace",    "ltrace",     "gdb",     "valgrind", "perf",    "hwloc-bind", "perl",
    "tini",      "expect",    "make",       "gmake",   "find",     "awk",     "gawk",       "mawk",
    "catchsegv", "dumb-init", "sleep",      "true",    "false",    "echo",    "cat",        "ls",
    "cp",        "mv",        "rm",         "mkdir",   "sed",      "sudo",    "su",         "runuser",
    "doas",      "setpriv",   "unshare",    "nsenter", "chroot",   "bwrap",   "firejail",   "unbuffer",
    "conda",     "mamba",     "micromamba", "uv",      "pixi",     "poetry",  "pipenv",     "nsys",
    "ncu"};

// Starters whose programs are out of sight: on another machine, in another container, or ranks of a job of
// its own.
struct Elsewhere {
    const char* name;
    const char* why;
    bool ranks = false;
};
inline constexpr Elsewhere kElsewhere[] = {
    {"mpiexec", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpirun", "starts ranks of its own: put `fermata run` in its place", true},
    {"orterun", "starts ranks of its own: put `fermata run` in its place", true},
    {"prterun", "starts ranks of its own: put `fermata run` in its place", true},
    {"prun", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpiexec.openmpi", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpirun.openmpi", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpiexec.mpich", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpirun.mpich", "starts ranks of its own: put `fermata run` in its place", true},
    {"mpiexec.hydra", "starts ranks of its own: put `fermata run` in its place", true},
    {"srun", "starts ranks of its own: put `fermata run` in its place", true},
    {"ssh", "starts the program on another machine, where Fermata cannot follow"},
    {"rsh", "starts the program on another machine, where Fermata cannot follow"},
    {"docker", "starts the program in a container, where Fermata cannot follow"},
    {"podman", "starts the program in a container, where Fermata cannot follow"},
    {"apptainer", "starts the program in a container, where Fermata cannot follow"},
    {"singularity", "starts the program in a container, where Fermata cannot follow"},
    {"starter", "starts the program in a container, where Fermata cannot follow"},  // Apptainer's own
    {"systemd-run", "starts the program outside of the job, where Fermata cannot follow"},
};

constexpr bool same_name(const char* a, const char* b) {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}
constexpr const char* last_part(const char* path) {
    const char* name = path;
    for (const char* at = path; *at; ++at)
        if (*at == '/') name = at + 1;
    return name;
}
constexpr bool is_starter_by_name(const char* path) {
    for (const char* name : kStarters)
        if (same_name(last_part(path), name)) return true;
    return false;
}
// Null: it does not start programs elsewhere.
constexpr const Elsewhere* starts_elsewhere(const char* path) {
    for (const Elsewhere& one : kElsewhere)
        if (same_name(last_part(path), one.name)) return &one;
    return nullptr;
}

// "libmpi.so.40", "libmpich.so.12", "libmpi_mpifh.so.40", "libmpi_abi.so.1": one of the libraries that the
// fronts stand for.
constexpr bool is_mpi_library(const char* path) {
    const char* name = last_part(path);
    constexpr const char* kBegin = "libmpi";
    for (int i = 0; i < 6; ++i)
        if (name[i] != kBegin[i]) return false;
    if (same_name(name, "libmpi_abi.so.1")) return true;
    for (const char* at = name; *at; ++at) {
        if (at[0] != '.' || at[1] != 's' || at[2] != 'o' || at[3] != '.') continue;
        if (((at[4] == '4' && at[5] == '0') || (at[4] == '1' && at[5] == '2')) &&
            (at[6] == 0 || at[6] == '.'))
            return true;
    }
    return false;
}

// How the lower half and the library that is preloaded into starters speak with each other, by environment.
inline constexpr const char* kStarterVariable = "FERMATA_STARTER";         // the first starter's name
inline constexpr const char* kStarterProcess = "FERMATA_STARTER_PID";      // of the process mpiexec made
inline constexpr const char* kStarterLibrary = "FERMATA_STARTER_LIBRARY";  // as LD_PRELOAD names it
inline constexpr const char* kStarterLower = "FERMATA_STARTER_LOWER";      // the lower half's program
inline constexpr const char* kStarterDirectory = "FERMATA_STARTER_DIR";    // the node daemon's
// LD_LIBRARY_PATH: to a starter the lower half's own, to the lower half the program's.
inline constexpr const char* kLibraryPath = "FERMATA_STARTER_LIBRARY_PATH";
inline constexpr const char* kLauncherProcess = "FERMATA_LAUNCHER_PID";  // parent of kStarterProcess
// A file in kStarterDirectory: SIGTERM comes because the job ends, and on purpose.
inline constexpr const char* kLeaving = "leaving";
// The value when the starter's own exit code shall be 0; else it is empty.
inline constexpr const char* kQuietly = "0";
inline constexpr const char* kOutsideOf = "FERMATA_OUTSIDE";  // a child of this program, which is a rank

}  // namespace fermata::split
