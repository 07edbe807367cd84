#include "noded/rank_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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
    lines_.add(both_.wrote(bytes), now_ms);
}

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
    lines_.add(both_.copy_goes_on(copys), now_ms);
    last_ = now_ms;
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
