// Restartable sequences: a thread can have one registered area, so the halves must hand it over.
#pragma once

#include <cstdint>

namespace fermata::split::threads {

inline constexpr uint32_t kRseqSignature = 0x53053053;  // x86: what glibc registers with

// Takes back what the lower libc registered for the calling thread (glibc >= 2.35), so that its area reads
// "unknown CPU" and the upper libc may register its own. Lower context. 0, or -errno; 0 when there was none.
long unregister_own_rseq() noexcept;

// Finds the area that somebody registered for the calling thread, without knowing the libc: asking the kernel
// for the same registration again answers EBUSY. `fs` is the thread pointer, `offset`/`length` the last
// answer (length 0 = none yet) and the result. No TLS.
bool find_rseq(uint64_t fs, int32_t& offset, uint32_t& length) noexcept;

// Registers an area for the calling thread. No TLS. 0 or -errno.
long register_rseq(uint64_t area, uint32_t length) noexcept;

}  // namespace fermata::split::threads
