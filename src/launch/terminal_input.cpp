#include "launch/terminal_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace fermata::launch {

std::optional<TerminalInput> TerminalInput::of_this_process() {
    if (!::isatty(0)) return std::nullopt;
    TerminalInput input;
    // Opened again, so that a read never waits (others may read the same line first) while the shell's own
    // description stays as it is. Where that is not allowed, the shell's is used.
    input.terminal_ = Fd(::open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (!input.terminal_) input.terminal_ = Fd(::fcntl(0, F_DUPFD_CLOEXEC, 3));
    int ends[2];
    if (!input.terminal_ || ::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot read from the terminal");
    input.reader_ = Fd(ends[0]);
    input.writer_ = Fd(ends[1]);
    if (::fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) fail_errno("cannot read from the terminal");
    return input;
}

// A terminal that is not this session's stops nobody.
bool TerminalInput::in_foreground() const {
    pid_t group = ::tcgetpgrp(terminal_.get());
    return group < 0 || group == ::getpgrp();
}

void TerminalInput::add_to(std::vector<pollfd>& fds) const {
    bool wanted = terminal_ && writer_ && typed_.empty() && in_foreground();
    fds.push_back({wanted ? terminal_.get() : -1, POLLIN, 0});
    // Also without room: POLLERR tells that nobody reads any more.
    fds.push_back({writer_.get(), static_cast<short>(typed_.empty() ? 0 : POLLOUT), 0});
}

void TerminalInput::serve(const std::vector<pollfd>& fds, size_t first) {
    if (fds[first].revents) take();
    if (fds[first + 1].revents & POLLERR)
        writer_.reset();
    else if (!typed_.empty())
        hand_on();
    // Only behind the last line typed.
    if (!terminal_ && typed_.empty()) writer_.reset();
}

void TerminalInput::take() {
    char buffer[4096];
    ssize_t n = ::read(terminal_.get(), buffer, sizeof buffer);
    if (n > 0)
        typed_.assign(buffer, static_cast<size_t>(n));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR && in_foreground()))
        terminal_.reset();  // Ctrl-D, or it has been closed
}

void TerminalInput::hand_on() {
    ssize_t n = ::write(writer_.get(), typed_.data(), typed_.size());
    if (n > 0)
        typed_.erase(0, static_cast<size_t>(n));
    else if (errno != EAGAIN && errno != EINTR)
        typed_.clear(), writer_.reset();
}

}  // namespace fermata::launch
