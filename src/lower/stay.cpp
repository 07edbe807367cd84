#include "lower/stay.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/stream_ring.h"
#include "lower/log_files.h"
#include "lower/private_files.h"
#include "lower/program_descriptors.h"
#include "lower/written_files.h"
#include "split/fds/descriptors.h"
#include "wire/message.h"

namespace fermata::lower {
namespace {

// The rank's own, while this process writes elsewhere; -1: it is no copy.
struct Streams {
    int output = -1, error = -1;
} ranks_own;

Fd stream;  // memory of the newest stream that goes to another node, or comes from one
Fd given;   // the newest shadow of a private file, until the program has opened it

enum class Sort { nothing, read, written, other };

// Nothing: both may have it, since it has no place.
Sort sort_of(int descriptor) {
    struct stat what {};
    if (::fstat(descriptor, &what) != 0) return Sort::nothing;
    const int mode = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    if (S_ISREG(what.st_mode) && mode != O_RDONLY) return Sort::written;
    if (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) return Sort::read;
    if (S_ISCHR(what.st_mode)) return Sort::nothing;  // /dev/null, /dev/urandom
    return Sort::other;
}

bool is_output(int descriptor) { return descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO; }

// Nothing comes any more.
bool has_ended(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & POLLIN) == 0;
}

int moved_aside(int descriptor) {
    const int aside = split::raise_descriptor(::dup(descriptor));
    const Fd own = make_file_aside("fermata-copy");
    if (aside < 0 || ::dup2(own.get(), descriptor) < 0) fail_errno("cannot keep the output of a copy apart");
    return aside;
}

}  // namespace

std::string why_not_stay() {
    for (int descriptor : programs_descriptors()) {
        const Sort sort = sort_of(descriptor);
        if (is_output(descriptor)) {
            if (sort == Sort::written) return fmt::format("its output goes to {}", name_of(descriptor));
            continue;
        }
        if (sort == Sort::nothing || sort == Sort::read) continue;
        if (sort == Sort::written && descriptor != STDIN_FILENO) {
            if (std::string why = why_no_shadow(descriptor); !why.empty()) return why;
            continue;
        }
        if (descriptor != STDIN_FILENO) return fmt::format("it has {} open", name_of(descriptor));
        if (!has_ended(descriptor)) return "it has the job's standard input (run the job with < /dev/null)";
    }
    return "";
}

std::string why_no_copy_elsewhere() {
    for (int descriptor : programs_descriptors())
        if (is_private(descriptor))
            return fmt::format("it reads and writes {}, which a copy on another node cannot have yet",
                               name_of(descriptor));
    return why_not_stay();
}

int make_stream_memory() {
    stream = Fd(split::raise_descriptor(::memfd_create("fermata-stream", MFD_CLOEXEC)));
    if (!stream || ::ftruncate(stream.get(), sizeof(StreamRing) + kStreamRingBytes) != 0)
        fail_errno("no memory for the stream of a rank's copy");
    return stream.get();
}

void stay_apart() {
    write_to_shadows();
    ranks_own = {moved_aside(STDOUT_FILENO), moved_aside(STDERR_FILENO)};
}

std::unique_ptr<tree::AgentLink> stay_behind(const tree::AgentConfig& config) {
    std::vector<int> read = programs_descriptors();
    std::erase_if(read, [](int one) { return is_output(one) || sort_of(one) != Sort::read; });
    for (const SamePlace& some : by_place(read)) put_in_place(some, open_again(some.front(), O_RDONLY));
    keep_private_files();
    stay_apart();
    auto link = std::make_unique<tree::AgentLink>(config);
    link->adopt(split::raise_descriptor(link->fd()));
    return link;
}

bool is_copy() { return ranks_own.output >= 0; }

int copys_file(tree::AgentLink& link, const FileWish& asked) {
    try {
        if (asked.sort == FileWish::Sort::take_private_files) {
            take_private_files();
            return 0;
        }
        if (asked.sort == FileWish::Sort::private_file) {
            given = begin_private_file(asked.wish);
            return given.get();
        }
        Fd real(split::raise_descriptor(asked.real));
        if (is_copy() || !real) return begin_shadow(std::move(real), asked.size);
        return real.release();  // it has the rank's place, and does once more what the rank has done
    } catch (const std::exception& error) {
        const std::string line =
            fmt::format("the files of a rank's copy are not as the rank's: {}", error.what());
        if (asked.sort == FileWish::Sort::take_private_files)
            link.send(wire::Fatal{"error: " + line, 1});
        else
            spdlog::warn("{}", line);
    }
    return -1;
}

void take_place(tree::AgentLink& link) {
    if (!is_copy()) return;
    try {
        write_to_files();
    } catch (const std::exception& error) {
        link.send(wire::Fatal{
            fmt::format("error: the files of a rank's copy are not as the rank's: {}", error.what()), 1});
    }
    const int output = split::raise_descriptor(::dup(STDOUT_FILENO));
    const int error = split::raise_descriptor(::dup(STDERR_FILENO));
    ::dup2(ranks_own.output, STDOUT_FILENO);
    ::dup2(ranks_own.error, STDERR_FILENO);
    link.send(wire::Wrote{output, error});
    ranks_own = {};
}

}  // namespace fermata::lower
