#include "noded/input_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/invariant.h"

namespace fermata::noded {

InputPipe::InputPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
    if (::fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) fail_errno("cannot create a pipe");
}

void InputPipe::close() {
    reader_.reset();
    writer_.reset();
}

void InputPipe::take(const wire::Input& input) {
    if (writer_) waiting_ += input.text;
    end_ = end_ || input.end;
    if (end_ && waiting_.empty()) writer_.reset();
}

void InputPipe::add_to(std::vector<pollfd>& fds) const {
    // Also without room: POLLERR tells that nobody reads any more.
    fds.push_back({writer_.get(), static_cast<short>(waiting_.empty() ? 0 : POLLOUT), 0});
}

std::optional<wire::InputTaken> InputPipe::serve(short revents) {
    uint64_t taken = 0;
    if (writer_ && (revents & POLLOUT)) {
        ssize_t n = ::write(writer_.get(), waiting_.data(), waiting_.size());
        if (n > 0) {
            taken = static_cast<uint64_t>(n);
            always(taken <= waiting_.size(), "more input that was written than was there");
            waiting_.erase(0, taken);
        } else if (errno != EAGAIN && errno != EINTR) {
            writer_.reset();
        }
    } else if (revents & (POLLERR | POLLNVAL)) {
        writer_.reset();
    }
    if (end_ && waiting_.empty()) writer_.reset();
    if (!writer_ && !closed_) {
        closed_ = true;
        waiting_.clear();
        return wire::InputTaken{taken, true};
    }
    if (taken == 0) return std::nullopt;
    return wire::InputTaken{taken, false};
}

}  // namespace fermata::noded
