#include "lower/at_place.h"

#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "lower/program_descriptors.h"

namespace fermata::lower {

size_t read_at(int file, char* to, size_t size, int64_t at) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = ::pread(file, to + done, size - done, at + static_cast<int64_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot read {}", name_of(file));
        if (n == 0) break;
        done += static_cast<size_t>(n);
    }
    return done;
}
void write_at(int file, const char* from, size_t size, int64_t at) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = ::pwrite(file, from + done, size - done, at + static_cast<int64_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot write {}", name_of(file));
        done += static_cast<size_t>(n);
    }
}

}  // namespace fermata::lower
