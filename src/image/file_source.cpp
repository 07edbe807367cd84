#include "image/file_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/invariant.h"
#include "image/page_cache.h"

namespace fermata::image {
namespace {

class FileStream : public Stream {
  public:
    FileStream(int fd, bool past_cache, uint64_t begin, const std::string& name)
        : file_(fd, past_cache), begin_(begin), name_(name) {}
    uint64_t read_cached(char* to, uint64_t size, uint64_t at) noexcept override {
        return file_.read_cached(to, size, begin_ + at);
    }
    void read(char* to, uint64_t size, uint64_t at) override { file_.read(to, size, begin_ + at, name_); }
    bool direct() const noexcept override { return file_.direct(); }

  private:
    UncachedFile file_;
    uint64_t begin_;
    const std::string& name_;
};

}  // namespace

FileSource::FileSource(const Place& place)
    : name_(place.path()), part_(place.begin), fd_(place.folder.read(place.name)) {
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) fail_errno("cannot stat {}", name_);
    auto size = static_cast<uint64_t>(st.st_size);
    size_ = size - std::min(size, begin());
}

void FileSource::read(void* to, uint64_t size, uint64_t at) const {
    always(at <= size_ && size <= size_ - at, "a read behind the end of an image");
    pread_all(fd_.get(), to, size, begin() + at, name_);
}

uint64_t FileSource::holes(uint64_t at, uint64_t size) const {
    always(at <= size_ && size <= size_ - at, "a look behind the end of an image");
    uint64_t from = begin() + at, end = from + size, sum = 0;
    while (from < end) {
        off_t data = ::lseek(fd_.get(), static_cast<off_t>(from), SEEK_DATA);
        if (data < 0) return errno == ENXIO ? sum + (end - from) : 0;  // else nobody knows
        auto to = std::min(static_cast<uint64_t>(data), end);
        sum += to - from;
        off_t hole = ::lseek(fd_.get(), static_cast<off_t>(to), SEEK_HOLE);
        if (hole < 0) break;
        from = std::max(static_cast<uint64_t>(hole), to);
    }
    return sum;
}

std::unique_ptr<Stream> FileSource::stream(bool past_cache) const {
    return std::make_unique<FileStream>(fd_.get(), past_cache, begin(), name_);
}

}  // namespace fermata::image
