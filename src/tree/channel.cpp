#include "tree/channel.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/clock.h"
#include "base/invariant.h"
#include "tree/local_socket.h"

namespace fermata::tree {
namespace {

constexpr size_t kMostUnwritten = 128u << 20;

}  // namespace

int64_t now_ms() { return monotonic_ms(); }

Channel::Channel(Fd socket, uint32_t max_payload, std::unique_ptr<wire::Seal> out,
                 std::unique_ptr<wire::Seal> in)
    : socket_(std::move(socket)),
      out_seal_(std::move(out)),
      in_seal_(std::move(in)),
      in_(max_payload, in_seal_.get()) {
    set_nonblocking(socket_.get());
}

short Channel::events() {
    if (!closed() && has_unwritten()) write_some();
    return static_cast<short>(closed() ? 0 : POLLIN | (has_unwritten() ? POLLOUT : 0));
}

void Channel::serve(short revents) {
    if (revents & (POLLIN | POLLHUP | POLLERR)) read_some();
    if (revents & POLLOUT) write_some();
}

void Channel::read_some() {
    char buffer[65536];
    // Bounded, so that one loud peer cannot starve the others.
    for (int turn = 0; turn < 16 && !closed_; ++turn) {
        ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0) {
            in_.feed(buffer, static_cast<size_t>(n));
            traffic_.bytes_in += static_cast<uint64_t>(n);
            if (n < static_cast<ssize_t>(sizeof buffer)) return;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            peer_has_ended_ = n == 0 || errno == ECONNRESET;
            closed_ = true;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

int64_t Channel::unconfirmed_ms() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    // Counts also what could not be sent: without a route nothing is on its way that could be confirmed.
    int waiting = 0;
    if (::ioctl(socket_.get(), SIOCOUTQ, &waiting) != 0) return 0;
    return waiting > 0 ? info.tcpi_last_ack_recv : 0;
}

std::optional<wire::Message> Channel::receive() {
    auto message = in_.next();
    if (message) ++traffic_.messages_in;
    return message;
}

void Channel::send(const wire::Message& message) {
    put(message);
    write_some();
}

void Channel::put(const wire::Message& message) {
    if (!closed()) queue(wire::encode(message, out_seal_.get()));
}

void Channel::put(const wire::Bytes& frame) {
    always(!out_seal_, "a frame without a seal for a channel that has one");
    if (!closed()) queue(frame);
}

void Channel::queue(const wire::Bytes& frame) {
    if (written_ > (1u << 20) && written_ * 2 >= out_.size()) {  // a peer that is never quite up to date
        out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(written_));
        written_ = 0;
    }
    always(written_ <= out_.size(), "bytes that were sent before they were there");
    out_.insert(out_.end(), frame.begin(), frame.end());
    ++traffic_.messages_out;
    traffic_.bytes_out += frame.size();
    if (out_.size() - written_ > kMostUnwritten) write_some();
    if (out_.size() - written_ > kMostUnwritten) closed_ = true;
}

void Channel::write_some() {
    while (!closed_ && written_ < out_.size()) {
        ssize_t n = ::send(socket_.get(), out_.data() + written_, out_.size() - written_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            written_ += static_cast<size_t>(n);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            // The peer's last words may still be unread: reading finds the end.
            out_.clear();
            written_ = 0;
            break;
        } else if (errno != EINTR) {
            closed_ = true;
        }
    }
    if (written_ == out_.size()) {
        out_.clear();
        written_ = 0;
    }
}

void Channel::flush(int ms) {
    int64_t end = now_ms() + ms;
    while (!closed_ && written_ < out_.size()) {
        int64_t left = end - now_ms();
        if (left <= 0) return;
        pollfd wait{socket_.get(), POLLOUT, 0};
        ::poll(&wait, 1, static_cast<int>(left));
        write_some();
    }
}

}  // namespace fermata::tree
