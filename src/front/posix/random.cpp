// Random numbers of the operating system: a copy of a rank gets those that the rank got. A process has them
// in hand before MPI begins mostly, and so does its copy.
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "front/core/recorded.h"
#include "front/posix/next.h"

namespace fermata::front::posix {
namespace {

Next<ssize_t(void*, size_t, unsigned)> next_getrandom{"getrandom"};
Next<int(void*, size_t)> next_getentropy{"getentropy"};
Next<void(void*, size_t)> next_arc4random_buf{"arc4random_buf"};
Next<uint32_t()> next_arc4random{"arc4random"};
Next<uint32_t(uint32_t)> next_arc4random_uniform{"arc4random_uniform"};

// An answer of any length: pieces of it, each recorded for itself.
constexpr size_t kPiece = 256;  // as the kernel gives at once

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front::posix;
using fermata::front::recorded;

FERMATA_INTERPOSE ssize_t getrandom(void* buffer, size_t length, unsigned flags) {
    struct {
        char bytes[kPiece];
        ssize_t result;
        int error;
    } now{};
    size_t done = 0;
    do {
        const size_t piece = length - done < kPiece ? length - done : kPiece;
        recorded("getrandom", &now, sizeof now, [&] {
            now.result = next_getrandom(now.bytes, piece, flags);
            now.error = errno;
        });
        if (now.result <= 0) break;
        memcpy(static_cast<char*>(buffer) + done, now.bytes, static_cast<size_t>(now.result));
        done += static_cast<size_t>(now.result);
        if (static_cast<size_t>(now.result) < piece) break;
    } while (done < length);
    if (done > 0 || now.result >= 0) return static_cast<ssize_t>(done);
    errno = now.error;
    return now.result;
}
FERMATA_INTERPOSE int getentropy(void* buffer, size_t length) {
    struct {
        char bytes[kPiece];
        int result, error;
    } now{};
    if (length > kPiece) {
        errno = EIO;
        return -1;
    }
    recorded("getentropy", &now, sizeof now, [&] {
        now.result = next_getentropy(now.bytes, length);
        now.error = errno;
    });
    if (now.result != 0) errno = now.error;
    if (now.result == 0) memcpy(buffer, now.bytes, length);
    return now.result;
}
// libc 2.36 has these.
FERMATA_INTERPOSE uint32_t arc4random() {
    uint32_t value = 0;
    recorded("arc4random", &value, sizeof value, [&] { value = next_arc4random(); });
    return value;
}
FERMATA_INTERPOSE uint32_t arc4random_uniform(uint32_t bound) {
    uint32_t value = 0;
    recorded("arc4random_uniform", &value, sizeof value, [&] { value = next_arc4random_uniform(bound); });
    return value;
}
FERMATA_INTERPOSE void arc4random_buf(void* buffer, size_t length) {
    char bytes[kPiece];
    for (size_t done = 0; done < length;) {
        const size_t piece = length - done < kPiece ? length - done : kPiece;
        recorded("arc4random_buf", bytes, sizeof bytes, [&] { next_arc4random_buf(bytes, piece); });
        memcpy(static_cast<char*>(buffer) + done, bytes, piece);
        done += piece;
    }
}
