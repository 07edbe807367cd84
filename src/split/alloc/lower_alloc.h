// Where the lower half's memory comes from.
//
// Three layers, so that nothing of the lower half ever lands in the window after partition():
//   1. interpose.cpp: mmap, munmap, mremap, shmat … are exported by the lower executable, so every
//      library of the lower half binds to them (a program that is to be a lower half is linked with
//      fermata_lower_executable() of src/split/CMakeLists.txt);
//   2. patch.cpp: the mmap, munmap and mremap system-call instructions inside the lower half's own
//      ld.so and libc jump to the same functions (thread stacks, dlopen, nss and locales do not go
//      through the symbol);
//   3. malloc of the lower half is mimalloc, which asks layer 1; brk is never used.
//
// Only the lower half's own copies are touched: the upper half has its own ld.so and libc, which stay as they
// are. All functions of layers 1 and 2 use raw system calls and no TLS: upper threads run them with a donor's
// TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// Call early in main, before MPI_Init and before any thread exists: patches ld.so and libc, and tells MPI's
// libraries (environment, without overriding the user) to leave the memory functions alone.
void prepare_lower();

// The result of prepare_lower(): "" when both ld.so and libc were patched, else one line (dlopen and thread
// creation after partition() would then be placed by the kernel; check() will name them).
std::string lower_patch_report();

// Memory for the lower half, zeroed; MAP_NORESERVE when large. nullptr when there is none. Any context, no
// TLS.
void* lower_map(size_t size, int prot) noexcept;
void lower_unmap(void* address, size_t size) noexcept;

// The raw calls that the interposers use (after Linux's convention: -errno on failure). No TLS.
long lower_mmap(void* address, size_t size, int prot, int flags, int fd, long offset) noexcept;
long lower_munmap(void* address, size_t size) noexcept;
long lower_mremap(void* address, size_t old_size, size_t new_size, int flags, void* new_address) noexcept;

// Refuses mappings of the lower half at fixed addresses of the upper half from now on, for a lower half that
// starts beside an upper one.
void spare_upper_addresses() noexcept;

// partition() calls these: from now on new mappings of the lower half go to kLowerArea, and mappings at fixed
// addresses only there and into what it had before.
void redirect_lower_mappings() noexcept;
// Something of the lower half lies there that did not come by lower_mmap: not to be given out.
void keep_lower_mapping(Range range) noexcept;
void allow_fixed_mappings(const Range* ranges, size_t count) noexcept;

}  // namespace fermata::split
