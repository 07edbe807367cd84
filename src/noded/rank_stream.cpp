#include "noded/rank_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace fermata::noded {
namespace {

constexpr size_t kMuch = 2 * OutputLines::kLongest;
constexpr int64_t kStragglerMs = 2000;

}  // namespace

Fd RankStream::make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    pipe_ = Fd(ends[0]);
    Fd ranks(ends[1]);
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) fail_errno("cannot create a pipe");
    return ranks;
}

void RankStream::add_to(std::vector<pollfd>& fds) const {
    fds.push_back({lines_.size() < kMuch ? pipe_.get() : -1, POLLIN, 0});
}

void RankStream::serve(short revents, int64_t now_ms) {
    if (!pipe_ || !revents) return;
    char buffer[65536];
    ssize_t n = ::read(pipe_.get(), buffer, sizeof buffer);
    if (n > 0) {
        add({buffer, static_cast<size_t>(n)}, now_ms);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        end();
    }
}

void RankStream::add(std::string_view bytes, int64_t now_ms) {
    last_ = now_ms;
    const std::string_view fresh = both_.wrote(bytes);
    if (!stream_) return lines_.add(fresh, now_ms);
    // Whatever the rank was told before it wrote this stands in the stream by now.
    if (!stream_->is_followed() && waiting_.empty()) return lines_.add(fresh, now_ms);
    if (!fresh.empty()) waiting_.push_back({stream_->written(), std::string(fresh)});
    let_go(now_ms);
}

// Without a copy nobody has to hear of it first.
void RankStream::let_go(int64_t now_ms) {
    while (!waiting_.empty() && (stream_->is_closed() || stream_->arrived() >= waiting_.front().at)) {
        lines_.add(waiting_.front().bytes, now_ms);
        waiting_.pop_front();
    }
    if (waiting_.empty() && stream_ && stream_->is_closed()) stream_.reset();
}

void RankStream::forget_what_waits() { waiting_.clear(); }

// A pipe holds what was written before.
void RankStream::read_all() {
    char buffer[65536];
    for (ssize_t n; pipe_ && (n = ::read(pipe_.get(), buffer, sizeof buffer)) > 0;)
        add({buffer, static_cast<size_t>(n)}, last_);
}

void RankStream::copy_is_made() {
    read_all();
    both_.copy_is_made();
}

void RankStream::copy_goes_on(const std::string& copys, int64_t now_ms) {
    read_all();
    const auto elsewhere = std::exchange(elsewhere_, {});
    lines_.add(elsewhere ? both_.copy_goes_on_after(*elsewhere, copys) : both_.copy_goes_on(copys), now_ms);
    last_ = now_ms;
}

uint64_t RankStream::written() {
    read_all();
    return both_.written();
}

std::string RankStream::take(int64_t now_ms) {
    if (stream_) let_go(now_ms);
    std::string piece = lines_.take(now_ms);
    handed_up_ += piece.size();
    return piece;
}

void RankStream::rank_has_died(int64_t since_ms, int64_t now_ms) {
    if (pipe_ && now_ms - std::max(last_, since_ms) > kStragglerMs) end();
}

void RankStream::drop() {
    end();
    lines_ = {};
}

void RankStream::end() {
    pipe_.reset();
    lines_.end();
}

}  // namespace fermata::noded
