#include "transfer/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/invariant.h"

namespace fermata::transfer {
namespace {

constexpr int kLookMs = 100;  // so often for somebody who has given up
// A whole frame of data, and the head of the next one.
constexpr size_t kBuffer = kHead + kMostData + wire::kTagSize + kHead;

template <typename... Args>
[[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) {
    throw StreamError(fmt::format(format, std::forward<Args>(args)...));
}
[[noreturn]] void ended() { broken("the connection to the other node has ended: {}", std::strerror(errno)); }

Head head_of(View bytes, uint32_t most) {
    try {
        return read_head(bytes, most);
    } catch (const Error& error) {
        broken("{}", error.what());
    }
}

}  // namespace

Stream::Stream(Fd socket, const wire::Handshake& shake, Patience patience)
    : socket_(std::move(socket)),
      patience_(std::move(patience)),
      out_(shake.bulk_outgoing()),
      in_(shake.bulk_incoming()),
      buffer_(kBuffer) {
    always(shake.rest().size() <= buffer_.size(), "more than a guest may have sent");
    std::memcpy(buffer_.data(), shake.rest().data(), shake.rest().size());
    end_ = shake.rest().size();
}

int64_t Stream::from_now() const { return monotonic_ms() + patience_.silent_ms; }

void Stream::wait_for(short events, int64_t end) const {
    for (;;) {
        if (patience_.given_up()) broken("the transfer was given up");
        const int64_t left = end - monotonic_ms();
        if (left <= 0)
            broken("the other node has been silent, or slow, for {} s",
                   static_cast<double>(patience_.silent_ms) / 1000);
        pollfd one{socket_.get(), events, 0};
        const int n = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, kLookMs)));
        if (n > 0) return;
        if (n < 0 && errno != EINTR) ended();
    }
}

void Stream::write(View bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            bytes = bytes.subspan(static_cast<size_t>(n));
        else if (errno == EAGAIN)
            wait_for(POLLOUT, from_now());
        else if (errno != EINTR)
            ended();
    }
}

void Stream::send(Kind kind, View payload) {
    always(payload.size() <= kMostData, "a payload that is longer than a frame");
    const wire::Bytes head = write_head({static_cast<uint32_t>(payload.size()), kind});
    const wire::Tag tag = out_.next(head, payload);
    if (payload.size() <= kMostQuestion) {  // one packet
        wire::Bytes all(head);
        all.insert(all.end(), payload.begin(), payload.end());
        all.insert(all.end(), tag.begin(), tag.end());
        return write(all);
    }
    write(head);
    write(payload);
    write(tag);
}

// So that `size` bytes stand at begin_. Whoever stands between the nodes could let a byte through now and
// then for ever: a frame is whole in time, or it is none.
void Stream::fill(size_t size) {
    always(size <= buffer_.size(), "a frame that is longer than its buffer");
    always(begin_ <= end_ && end_ <= buffer_.size(), "bytes that are used before they have come");
    if (begin_ + size > buffer_.size()) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    const int64_t end = from_now();
    while (end_ - begin_ < size) {
        const ssize_t n = ::recv(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
        if (n > 0)
            end_ += static_cast<size_t>(n);
        else if (n == 0)
            broken("the other node has closed the connection");
        else if (errno == EAGAIN)
            wait_for(POLLIN, end);
        else if (errno != EINTR)
            ended();
    }
}

Stream::Frame Stream::receive(uint32_t most) {
    fill(kHead);
    const Head head = head_of({buffer_.data() + begin_, kHead}, std::min(most, kMostData));
    const size_t whole = kHead + head.length + wire::kTagSize;
    fill(whole);
    const View frame(buffer_.data() + begin_, whole);
    wire::Tag tag;
    std::memcpy(tag.data(), frame.data() + kHead + head.length, tag.size());
    const View payload = frame.subspan(kHead, head.length);
    if (!wire::same(tag, in_.next(frame.first(kHead), payload))) broken("a frame with a wrong tag");
    always(begin_ + whole <= end_, "a frame that is used before it is whole");
    begin_ += whole;
    return {head.kind, payload};
}

}  // namespace fermata::transfer
