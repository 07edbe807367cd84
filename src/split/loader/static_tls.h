// Room for thread-local storage that ld.so has to know of beforehand.
//
// With an auditor (src/front/which) ld.so (glibc 2.36) lays out the static TLS before it has loaded the
// program's libraries: those with thread-locals of the initial-exec model get their part from a reserve of
// some 1.7 KiB, and a library with more (jemalloc has 2.6 KiB) ends the program. A tunable makes the reserve
// larger, by what the program would have natively.
#pragma once

#include <cstdint>
#include <string>

#include "split/loader/program.h"

namespace fermata::split {

// Bytes of PT_TLS of all that is loaded with the program.
uint64_t static_tls_of(const ProgramCheck& check);

// Makes the variable for ld.so, `more` bytes beside its own reserve; `theirs`: GLIBC_TUNABLES as the program
// has it. It stands twice at the end of the environment, and the auditor takes both away.
std::string static_tls_variable(uint64_t more, const std::string& theirs);

}  // namespace fermata::split
