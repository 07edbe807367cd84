#include "split/threads/rseq.h"

#include <cerrno>
#include <cstddef>

#include "split/gate.h"
#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"

// glibc >= 2.35; absent in other libcs.
extern "C" __attribute__((weak)) const ptrdiff_t __rseq_offset;
extern "C" __attribute__((weak)) const unsigned int __rseq_size;

namespace fermata::split::threads {
namespace {
constexpr int kUnregister = 1;
// The length is part of the registration: 32 is the original size (glibc 2.35 .. 2.40), later ones ask for
// what the kernel's AT_RSEQ_FEATURE_SIZE says, rounded up.
constexpr uint32_t kLengths[] = {32, 64, 40, 48};

FERMATA_NO_TLS bool registered(uint64_t area, uint32_t length) {
    long answer = raw::call(SYS_rseq, static_cast<long>(area), length, 0, kRseqSignature);
    if (answer == -EBUSY) return true;
    // There was none at all and now there is: take it back.
    if (answer == 0) raw::call(SYS_rseq, static_cast<long>(area), length, kUnregister, kRseqSignature);
    return false;
}
}  // namespace

long unregister_own_rseq() noexcept {
    if (&__rseq_offset == nullptr || &__rseq_size == nullptr) return 0;
    uint64_t area = read_fs() + static_cast<uint64_t>(__rseq_offset);
    for (uint32_t length : kLengths) {
        long answer = raw::call(SYS_rseq, static_cast<long>(area), length, kUnregister, kRseqSignature);
        if (answer == 0) return 0;
    }
    return -EINVAL;
}

FERMATA_NO_TLS bool find_rseq(uint64_t fs, int32_t& offset, uint32_t& length) noexcept {
    if (fs == 0) return false;
    // A probe at a guessed address would register it when there is no registration yet, and the kernel would
    // write the CPU number there. So first with an area of our own: success means that there was none.
    alignas(64) unsigned char scratch[64] = {};
    if (raw::call(SYS_rseq, raw::word(scratch), 32, 0, kRseqSignature) == 0) {
        raw::call(SYS_rseq, raw::word(scratch), 32, kUnregister, kRseqSignature);
        return false;
    }
    if (length != 0 && registered(fs + static_cast<uint64_t>(static_cast<int64_t>(offset)), length))
        return true;
    uint64_t base = fs & ~uint64_t{31};
    for (uint32_t candidate : kLengths) {
        for (int64_t distance = 0; distance <= 16384; distance += 32) {
            for (int side = 0; side < 2; ++side) {
                uint64_t area = side == 0 ? base + static_cast<uint64_t>(distance)
                                          : base - static_cast<uint64_t>(distance);
                if (!registered(area, candidate)) continue;
                offset = static_cast<int32_t>(static_cast<int64_t>(area - fs));
                length = candidate;
                return true;
            }
        }
    }
    return false;
}

FERMATA_NO_TLS long register_rseq(uint64_t area, uint32_t length) noexcept {
    return raw::call(SYS_rseq, static_cast<long>(area), length, 0, kRseqSignature);
}

}  // namespace fermata::split::threads
