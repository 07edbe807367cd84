// Open descriptors of the application, out of the state.
#include "split/process/descriptors/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "files/others_link.h"
#include "split/fds/descriptors.h"
#include "split/process/descriptors/locks.h"
#include "split/process/descriptors/owner.h"
#include "split/shared/objects.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace descriptors {
namespace {

constexpr int kStandard = 3;  // 0, 1 and 2 are the program's in any case

std::vector<Number> numbers_of(const Json& state, int limit) {
    auto numbers = state.at("descriptors").get<std::vector<Number>>();
    std::sort(numbers.begin(), numbers.end(), [](const Number& a, const Number& b) { return a.fd < b.fd; });
    // In between are those of the lower half where it cannot have them above.
    constexpr int kForLower = 1024;
    if (!numbers.empty() && numbers.back().fd >= limit)
        throw Refused{"descriptor " + std::to_string(numbers.back().fd) +
                      " cannot be opened again: here the program may have those below " +
                      std::to_string(limit) + ": raise the hard limit of open files (ulimit -Hn " +
                      std::to_string(numbers.back().fd + 1 + kForLower) + ") and restart again"};
    return numbers;
}

// `numbers` are ascending.
std::vector<Description> descriptions_of(const Json& state, const std::vector<Number>& numbers) {
    std::vector<int> first(state.at("descriptions").size(), -1);
    for (const Number& one : numbers) {
        if (one.description >= first.size())
            throw Refused{"the image's process state is damaged: a descriptor of nothing"};
        if (first[one.description] < 0) first[one.description] = one.fd;
    }
    std::vector<Description> all;
    for (const Json& saved : state.at("descriptions")) {
        int number = first[all.size()];
        all.push_back({saved, operations_of(saved.at("kind").get<std::string>()), all.size(), number,
                       saved.at("flags").get<int>(), "descriptor " + std::to_string(number)});
    }
    return all;
}

}  // namespace

int reopen_flags(int flags) {
    return (flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY;
}

Fd open_again(int fd, int flags) {
    std::string self = "/proc/self/fd/" + std::to_string(fd);
    return Fd(open(self.c_str(), reopen_flags(flags) & ~O_TMPFILE));
}

void check_way(int fd, const Description& one, const std::string& path) {
    if (const std::string link = files::others_link(path, fd); !link.empty())
        throw Refused{
            path + " (" + one.who + "): " + link +
            ": remove it, put the program's file back (or name its folder with --map) and restart again"};
}

void check_owner(int fd, const Description& one, const std::string& path) {
    check_way(fd, one, path);
    struct stat now;
    auto uid = one.saved.at("uid").get<uid_t>();
    if (fstat(fd, &now) != 0 || now.st_uid == geteuid() || now.st_uid == uid ||
        !shared::others_may_make(path))
        return;
    throw Refused{path + " (" + one.who + ") belongs to user " + std::to_string(now.st_uid) +
                  " now, at the checkpoint to " + std::to_string(uid) +
                  ": remove it, put the program's back and restart again"};
}

Restore::Restore(const Json& state, const Limits& limits, const Reading& from, Lines& lines)
    : warnings(lines),
      reading(from),
      contents(state.at("contents")),
      pipes(state.at("pipes")),
      numbers_(numbers_of(state, limits.descriptors)),
      all_(descriptions_of(state, numbers_)),
      made_(all_.size(), -1),
      beyond_(std::max(numbers_.empty() ? 0 : numbers_.back().fd + 1, kStandard)) {
    for (const Description& one : all_)
        if (one.operations.kind == Kind::socket) sockets.add(one);
}

void Restore::run() {
    make_all();
    give_numbers();
    close_standard();
    set_again();
    connect();
    drop();
    lock_again();
}

// Each comes to its first number at once, since there may be more of them than room beyond: whatever the
// lower half opens while another one is made comes above all of them.
void Restore::make_all() {
    for (const Description& one : all_) {
        errno = 0;
        Fd fd = one.operations.make(*this, one);
        if (!fd && !one.operations.may_be_missing)
            throw Refused{one.who + " (" + std::string(word_of(one.operations.kind)) +
                          ") cannot be made again: " + error_text(errno)};
        if (!fd || one.number < 0) continue;
        fd = up(std::move(fd));
        give(fd.get(), {one.number, one.index, true});
        made_[one.index] = one.number;
    }
}

void Restore::give(int from, const Number& one) const {
    // Raw: the lower half's dup3 may be interposed.
    long error = from == one.fd ? raw::call(SYS_fcntl, from, F_SETFD, one.close_on_exec ? FD_CLOEXEC : 0)
                                : raw::call(SYS_dup3, from, one.fd, one.close_on_exec ? O_CLOEXEC : 0);
    if (error < 0)
        throw Refused{"descriptor " + std::to_string(one.fd) +
                      " cannot be opened again: " + error_text(static_cast<int>(-error)) +
                      ": raise the limit of open files (ulimit -n) and restart again"};
}

// May be called again: whatever a number means by then, it comes to mean this.
void Restore::give_numbers() const {
    for (const Number& one : numbers_)
        if (int from = made_[one.description]; from >= 0) give(from, one);
}

// A standard stream that the application had closed is closed again.
void Restore::close_standard() const {
    for (int fd = 0; fd < 3; ++fd)
        if (origin_of(fd) < 0) raw::call(SYS_close, fd);
}

void Restore::set_again() const {
    for (const Description& one : all_) {
        int fd = made_[one.index];
        if (fd < 0) continue;
        if (one.operations.has_offset && one.saved.contains("position") && (one.flags & O_PATH) == 0)
            lseek(fd, one.saved.at("position").get<off_t>(), SEEK_SET);
        if (one.operations.sets_flags) fcntl(fd, F_SETFL, one.flags & (O_NONBLOCK | O_APPEND | O_ASYNC));
        if (one.operations.kind != Kind::inherited) restore_owner(fd, one.saved);
    }
}

// A watch may borrow numbers, which get their own again.
void Restore::connect() {
    for (const Description& one : all_)
        if (made_[one.index] >= 0 && one.operations.connect != nullptr)
            one.operations.connect(*this, one, made_[one.index]);
    close_standard();
}

void Restore::drop() {
    contents.drop();
    pipes.drop();
    sockets.drop();
}

// Last: closing any descriptor of a file drops the process's POSIX locks on it.
void Restore::lock_again() const {
    for (const Description& one : all_)
        if (one.operations.kind != Kind::inherited) restore_locks(one, warnings);
}

Fd Restore::up(Fd fd) const {
    if (!fd) return fd;
    Fd high(static_cast<int>(raw::call(SYS_fcntl, fd.get(), F_DUPFD_CLOEXEC, beyond_)));
    if (high.get() < 0)
        throw Refused{"no descriptor above " + std::to_string(beyond_) +
                      " is left: raise the hard limit of open files (ulimit -Hn)"};
    return high;
}

Fd Restore::placeholder() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    close(ends[1]);
    return Fd(ends[0]);
}

int Restore::origin_of(int number) const {
    auto found = std::lower_bound(numbers_.begin(), numbers_.end(), number,
                                  [](const Number& one, int fd) { return one.fd < fd; });
    return found != numbers_.end() && found->fd == number ? static_cast<int>(found->description) : -1;
}

}  // namespace descriptors

void restore_descriptors(const Json& state, const Limits& limits, const Reading& reading, Lines& warnings) {
    split::RaisedLimit scope;
    descriptors::Restore(state, limits, reading, warnings).run();
}

}  // namespace fermata::split::process
