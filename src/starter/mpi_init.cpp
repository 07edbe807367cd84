// MPI_Init of a process that is not a rank: with the launcher's environment it would take the rank's place,
// or be a world of its own and compute something complete and wrong. The program ends with a line instead.
// This library is preloaded, so the program finds these functions before those of its MPI library, which come
// next.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "split/loader/starters.h"
#include "starter/start.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace fermata::starter {
namespace {

void check() {
    if (mode == Mode::off) return;
    // Whoever takes the launcher's variables away wants a world of its own.
    if (mode == Mode::outside && !launcher_is_known(environ)) return;
    char line[512];
    if (mode == Mode::outside)
        snprintf(
            line, sizeof line,
            "starts MPI, but %s started it, which has this rank's place in MPI: start %s directly, or with "
            "FERMATA_START=native (docs/instead-of-mpirun.md)",
            remembered(split::kOutsideOf), program_invocation_short_name);
    else
        snprintf(line, sizeof line,
                 "starts MPI, which it has loaded while it ran: where a script starts such a program it "
                 "needs `exec` "
                 "before it, or FERMATA_START=split (docs/instead-of-mpirun.md)");
    refuse(program_invocation_name, line);
}

template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

constexpr int kOther = 15;  // MPI_ERR_OTHER, which says enough where there is no such function

}  // namespace
}  // namespace fermata::starter

using namespace fermata::starter;

// NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters
#define FERMATA_INIT(name, parameters, arguments)         \
    EXPORT int name parameters {                          \
        check();                                          \
        auto* real = next<int parameters>(#name);         \
        return real != nullptr ? real arguments : kOther; \
    }
FERMATA_INIT(MPI_Init, (int* argc, char*** argv), (argc, argv))
FERMATA_INIT(PMPI_Init, (int* argc, char*** argv), (argc, argv))
FERMATA_INIT(MPI_Init_thread, (int* argc, char*** argv, int wanted, int* provided),
             (argc, argv, wanted, provided))
FERMATA_INIT(PMPI_Init_thread, (int* argc, char*** argv, int wanted, int* provided),
             (argc, argv, wanted, provided))
FERMATA_INIT(MPI_Session_init, (void* info, void* handler, void** session), (info, handler, session))
FERMATA_INIT(PMPI_Session_init, (void* info, void* handler, void** session), (info, handler, session))

#define FERMATA_INIT_FORTRAN(name, parameters, arguments) \
    EXPORT void name parameters {                         \
        check();                                          \
        auto* real = next<void parameters>(#name);        \
        if (real != nullptr) real arguments;              \
    }
FERMATA_INIT_FORTRAN(mpi_init_, (int* error), (error))
FERMATA_INIT_FORTRAN(mpi_init_thread_, (int* wanted, int* provided, int* error), (wanted, provided, error))
FERMATA_INIT_FORTRAN(mpi_init_f08_, (int* error), (error))
FERMATA_INIT_FORTRAN(mpi_init_thread_f08_, (int* wanted, int* provided, int* error),
                     (wanted, provided, error))
// NOLINTEND(bugprone-macro-parentheses)
