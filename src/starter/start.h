// The library that is preloaded into starters: shells, `env`, `nice`, scripts, everything that stands between
// mpiexec and the MPI program. A starter runs natively. The library makes the MPI program, wherever in the
// starter's descendants it comes up, a rank: before its main() it is replaced by the lower half, which then
// loads it as if mpiexec had started it so.
//
// The library needs libc only, allocates nothing, and is no part of any image. The same library, in children
// of a program that is a rank already, only ends a child that comes to MPI_Init: the rank's place in the
// library's world is taken.
#pragma once

#include <stddef.h>

namespace fermata::starter {

enum class Mode {
    off,      // not under Fermata, or set free: the library does nothing
    starter,  // below a starter: an MPI program becomes a rank
    outside,  // below a rank: an MPI program is ended at MPI_Init
};
extern Mode mode;

// environment.cpp: what must survive whatever starters do with the environment.
void remember_environment(char** environment);
void forget_environment(char** environment);  // takes it out: for launchers of jobs of their own
const char* remembered(const char* name);     // "" = was not there
const char* value_in(char* const* environment, const char* name);  // null = not there
// The same environment with what must survive. `room` holds room_for() pointers, `text` text_for() bytes.
size_t room_for(char* const* environment);
size_t text_for(char* const* environment);
char** with_ours(char* const* environment, char** room, char* text);

// programs.cpp
bool mpi_is_loaded();                   // a library of MPI is in this process
bool dlopen_is_imported();              // something in this process may load one later
bool mentions_mpi(char** argv);         // the arguments, or the text of a script among them, speak of MPI
bool file_needs_mpi(const char* path);  // the file names a library of MPI as needed

// become_rank.cpp
// Replaces this process by the lower half with this program. Comes back only with errno, when that cannot be
// executed.
int become_rank(const char* program, char* const* argv, char* const* environment);
bool launcher_is_known(char* const* environment);
// In the process that mpiexec made: SIGTERM ends it with an exit code when the job is being stopped.
void end_quietly();
// One line for the whole node, then the end of this process.
[[noreturn]] void refuse(const char* program, const char* why);

}  // namespace fermata::starter
