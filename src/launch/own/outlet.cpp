#include "launch/own/outlet.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/error.h"

namespace fermata::launch::own {

Outlet::Outlet(int descriptor) : descriptor_(descriptor), way_(Way::pieces) {
    struct stat status;
    if (::fstat(descriptor, &status) != 0) {
        broken_ = true;
    } else if (S_ISREG(status.st_mode)) {
        way_ = Way::file;
    } else if (S_ISSOCK(status.st_mode)) {
        way_ = Way::socket;
    } else {
        // The shell's own description stays as it is: others write through it, too.
        own_ = Fd(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                         O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
        if (own_) way_ = Way::stream, descriptor_ = own_.get();
    }
}

void Outlet::add(uint32_t node, std::string text) {
    if (broken_)
        note(node, text.size());
    else
        waiting_.push_back({node, std::move(text), 0});
}

void Outlet::drop() {
    for (const Piece& piece : std::exchange(waiting_, {})) note(piece.node, piece.text.size() - piece.done);
    broken_ = true;
}

void Outlet::add_to(std::vector<pollfd>& fds) const {
    fds.push_back({waiting_.empty() ? -1 : descriptor_, POLLOUT, 0});
}

void Outlet::serve(short revents) {
    if (!revents) return;
    while (!waiting_.empty() && write_some()) {
    }
}

// False: no more for now.
bool Outlet::write_some() {
    Piece& piece = waiting_.front();
    const char* from = piece.text.data() + piece.done;
    size_t size = piece.text.size() - piece.done;
    // Where a write may wait, there is room for so much when poll says that there is some.
    if (way_ == Way::pieces) size = std::min<size_t>(size, PIPE_BUF);
    ssize_t n = way_ == Way::socket ? ::send(descriptor_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : ::write(descriptor_, from, size);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) drop();
        return false;
    }
    note(piece.node, static_cast<uint64_t>(n));
    piece.done += static_cast<size_t>(n);
    if (piece.done == piece.text.size()) waiting_.pop_front();
    return way_ != Way::pieces;
}

void Outlet::note(uint32_t node, uint64_t bytes) {
    if (!written_.empty() && written_.back().node == node)
        written_.back().bytes += bytes;
    else
        written_.push_back({node, bytes});
}

}  // namespace fermata::launch::own
