#include "image/file_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/invariant.h"
#include "image/page_cache.h"
#include "image/spare.h"

namespace fermata::image {
namespace {

// Images from this size on go past the page cache, where the storage can do that. A small one takes as long
// either way, but new pages for the cache may have to be found by a virtual machine's host first: 20 ms
// instead of 6 for four of 2.7 MiB (docs/internals/images.md).
constexpr uint64_t kPastPageCache = 1 << 20;
// Storage is asked to begin early, so that the final fsync finds little to do.
constexpr uint64_t kFlush = 16 << 20;
// Blocks of a shared file are reserved in steps of this: each stops all ranks' writes for a moment.
constexpr uint64_t kReserve = 256 << 20;

}  // namespace

std::unique_ptr<FileSink> FileSink::create(const Place& place) {
    return std::make_unique<FileSink>(place.path(), place.folder.create(place.name), place);
}

std::unique_ptr<FileSink> FileSink::part_of(const Place& file) {
    return std::make_unique<FileSink>(file.path(), file.folder.write(file.name), std::nullopt);
}

bool FileSink::begin(uint64_t expected, WriteOptions::Direct wanted) {
    always(static_cast<bool>(fd_), "a file of an image that is closed already");
    use_again(expected);
    bool direct = wanted == WriteOptions::Direct::yes;
    if (wanted == WriteOptions::Direct::automatic)
        direct = expected >= kPastPageCache && !page_cache_is_better(fd_.get());
    return direct && ::fcntl(fd_.get(), F_SETFL, O_DIRECT) == 0;
}

// Only now it is known how much comes: an increment leaves the pages of a whole image to the next one.
void FileSink::use_again(uint64_t expected) {
    if (!place_ || !MemoryFile::is_one(fd_.get())) return;
    if (auto spare = take_spare(place_->folder, place_->name, place_->name, expected)) {
        fd_ = std::move(*spare);
        used_again_ = true;
    }
    place_.reset();
}

size_t FileSink::space() const { return MemoryFile::is_one(fd_.get()) ? FileWindow::kSpace : 0; }

void FileSink::prepare(State* state, unsigned threads, char* space, size_t stride) {
    always(state && threads > 0, "an image that nobody writes");
    always(this->space() == 0 || (space && stride >= this->space()), "windows of two threads in one place");
    state_ = state;
    windows_.clear();
    if (this->space() == 0) return;
    for (unsigned i = 0; i < threads; ++i) windows_.emplace_back(space + i * stride);
}

void FileSink::place(uint64_t begin, uint64_t room) noexcept {
    begin_ = begin;
    room_ = room;
}

void FileSink::enter() noexcept {
    if (!state_->large) memory_.open(fd_.get(), part_, begin_, begin_ + room_);
}

void FileSink::leave() noexcept {
    for (FileWindow& window : windows_) window.leave();
    if (memory_) state_->reserved = std::max(state_->reserved.load(), memory_.ahead() - begin_);
    memory_.close();
}

// Writes past the page cache into one file go on side by side only where blocks are reserved (ext4): else
// each has the inode for itself. Nothing is lost where that is not possible, or not done in time.
void FileSink::reserve(uint64_t end) noexcept {
    uint64_t from = state_->reserved.load();
    while (from < end) {
        // A last step of less than a quarter joins the one before.
        uint64_t to = room_ - from <= kReserve * 5 / 4 ? room_ : from + kReserve;
        if (!state_->reserved.compare_exchange_strong(from, to)) continue;
        if (::fallocate(fd_.get(), 0, static_cast<off_t>(begin_ + from), static_cast<off_t>(to - from)) != 0)
            break;
        from = to;
    }
}

Sink::Failure FileSink::put(unsigned thread, const void* data, uint64_t size, uint64_t at) noexcept {
    // Never into another rank's part.
    if (at > room_ || size > room_ - at) return {EOVERFLOW, "stay inside its part of", begin_ + at};
    auto* from = static_cast<const char*>(data);
    if (thread < windows_.size() && windows_[thread].put(memory_, from, size, begin_ + at)) return {};
    if (part_ && state_->large.load(std::memory_order_relaxed)) reserve(at + size);
    return write(from, size, begin_ + at);
}

void FileSink::leave_direct() noexcept {
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_DIRECT);
}

Sink::Failure FileSink::write(const char* data, uint64_t size, uint64_t at) noexcept {
    const uint64_t begin = at;
    bool again = false;
    while (size > 0) {
        ssize_t n = ::pwrite(fd_.get(), data, size, static_cast<off_t>(at));
        if (n < 0) {
            int code = errno;
            if (code == EINTR) continue;
            // The storage, or this kind of memory, or the rest of a short write cannot go past the page
            // cache.
            if ((code == EINVAL || code == EFAULT) && !again) {
                state_->large = false;
                leave_direct();
                again = true;
                continue;
            }
            return {code, "write", at};
        }
        if (n == 0) return {EIO, "write", at};
        data += n;
        at += static_cast<uint64_t>(n);
        size -= static_cast<uint64_t>(n);
    }
    if (!state_->large.load(std::memory_order_relaxed) && begin / kFlush != at / kFlush && at >= kFlush)
        ::sync_file_range(fd_.get(), static_cast<off64_t>(at / kFlush * kFlush - kFlush), kFlush,
                          SYNC_FILE_RANGE_WRITE);
    return {};
}

void FileSink::expect_small() noexcept {
    if (state_->large.exchange(false)) leave_direct();
}

void FileSink::end(uint64_t at) noexcept {
    uint64_t from = page_up(at), to = state_->reserved.load();
    if (from >= to && !used_again_) return;
    if (!part_)
        ::ftruncate(fd_.get(), static_cast<off_t>(at));
    else
        ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin_ + from),
                    static_cast<off_t>(to - from));
}

int FileSink::sync() noexcept { return ::fsync(fd_.get()) == 0 ? 0 : errno; }

void FileSink::close() {
    always(static_cast<bool>(fd_), "a file of an image that is closed twice");
    int fd = fd_.release();
    if (::close(fd) != 0) fail_errno("cannot close {}", name_);
}

}  // namespace fermata::image
