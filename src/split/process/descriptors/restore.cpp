// Open descriptors of the application, out of the state.
#include "split/process/descriptors/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "files/others_link.h"
#include "split/process/descriptors/locks.h"
#include "split/process/descriptors/owner.h"
#include "split/shared/objects.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace descriptors {
namespace {

int first_number_of(const std::vector<Number>& numbers, size_t description) {
    for (const Number& one : numbers)
        if (one.description == description) return one.fd;
    return -1;
}

std::vector<Description> descriptions_of(const Json& state, const std::vector<Number>& numbers) {
    std::vector<Description> all;
    for (const Json& saved : state.at("descriptions")) {
        int number = first_number_of(numbers, all.size());
        all.push_back({saved, operations_of(saved.at("kind").get<std::string>()), all.size(), number,
                       saved.at("flags").get<int>(), "descriptor " + std::to_string(number)});
    }
    for (const Number& one : numbers)
        if (one.description >= all.size())
            throw Refused{"the image's process state is damaged: a descriptor of nothing"};
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

Restore::Restore(const Json& state, const Limits& limits, Lines& lines)
    : warnings(lines),
      contents(state.at("contents")),
      pipes(state.at("pipes")),
      numbers_(state.at("descriptors").get<std::vector<Number>>()),
      all_(descriptions_of(state, numbers_)),
      base_(own_descriptor_base(limits)) {
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

void Restore::make_all() {
    for (const Description& one : all_) {
        errno = 0;
        Fd fd = one.operations.make(*this, one);
        if (!fd && !one.operations.may_be_missing)
            throw Refused{one.who + " (" + std::string(word_of(one.operations.kind)) +
                          ") cannot be made again: " + error_text(errno)};
        made_.push_back(up(std::move(fd)));
    }
}

// May be called again: whatever a number means by then, it comes to mean this.
void Restore::give_numbers() const {
    for (const Number& one : numbers_) {
        const Fd& source = made_[one.description];
        if (!source) continue;
        // Raw: the lower half's dup3 may be interposed.
        long error = raw::call(SYS_dup3, source.get(), one.fd, one.close_on_exec ? O_CLOEXEC : 0);
        if (error < 0)
            throw Refused{"descriptor " + std::to_string(one.fd) +
                          " cannot be opened again: " + error_text(static_cast<int>(-error)) +
                          ": raise the limit of open files (ulimit -n) and restart again"};
    }
}

// What the application had closed is closed again.
void Restore::close_standard() const {
    for (int fd = 0; fd < 3; ++fd)
        if (origin_of(fd) < 0) raw::call(SYS_close, fd);
}

void Restore::set_again() const {
    for (const Description& one : all_) {
        int fd = made_[one.index].get();
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
        if (made_[one.index] && one.operations.connect != nullptr)
            one.operations.connect(*this, one, made_[one.index].get());
    give_numbers();
    close_standard();
}

void Restore::drop() {
    for (Fd& fd : made_) fd.reset();
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
    Fd high(raised(fd.release(), base_));
    if (!high)
        throw Refused{"no descriptor above " + std::to_string(base_) +
                      " is left: raise the hard limit of open files"};
    return high;
}

Fd Restore::placeholder() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    close(ends[1]);
    return Fd(ends[0]);
}

int Restore::origin_of(int number) const {
    for (const Number& one : numbers_)
        if (one.fd == number) return static_cast<int>(one.description);
    return -1;
}

}  // namespace descriptors

void restore_descriptors(const Json& state, const Limits& limits, Lines& warnings) {
    descriptors::Restore(state, limits, warnings).run();
}

}  // namespace fermata::split::process
