#include "launch/own/feed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace fermata::launch::own {
namespace {

constexpr uint64_t kWindow = 65536;

}  // namespace

Feed::Feed(std::optional<TerminalInput> terminal, bool nothing)
    : terminal_(std::move(terminal)), descriptor_(terminal_ ? terminal_->launchers_end() : 0) {
    if (nothing) descriptor_ = -1;
}

void Feed::taken(uint64_t bytes, bool closed) {
    ahead_ -= std::min(ahead_, bytes);
    if (closed) descriptor_ = -1, end_told_ = true;
}

void Feed::add_to(std::vector<pollfd>& fds) const {
    fds.push_back({begun_ && ahead_ < kWindow ? descriptor_ : -1, POLLIN, 0});
    if (terminal_) terminal_->add_to(fds);
}

std::optional<Feed::Piece> Feed::serve(const std::vector<pollfd>& fds, size_t first) {
    if (terminal_) terminal_->serve(fds, first + 1);
    if (!begun_ || end_told_) return std::nullopt;
    if (descriptor_ < 0) {
        end_told_ = true;
        return Piece{"", true};
    }
    if (!fds[first].revents) return std::nullopt;
    Piece piece;
    piece.text.resize(kWindow - std::min(ahead_, kWindow));
    ssize_t n = ::read(descriptor_, piece.text.data(), piece.text.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    piece.text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) descriptor_ = -1, end_told_ = piece.end = true;
    ahead_ += piece.text.size();
    return piece;
}

}  // namespace fermata::launch::own
