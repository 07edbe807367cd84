// Names of MPI libraries: libmpi.so.20, libmpich.so.10, libmpi_mt.so.4 …; not libmpitrampoline.so, which
// hands calls on. No libc: also for the auditor (src/front/which).
#pragma once

namespace fermata::split {

constexpr bool named_like_mpi(const char* soname) {
    for (const char* at = "libmpi"; *at != 0; ++at, ++soname)
        if (*soname != *at) return false;
    if (soname[0] == 'c' && soname[1] == 'h') soname += 2;
    return *soname == '.' || *soname == '_' || *soname == '-';
}

// Every implementation has it, tools that stand before one do not.
inline constexpr const char* kOnlyInMpi = "PMPI_Init";

}  // namespace fermata::split
