#include "split/process/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#define XXH_INLINE_ALL  // the split process stands below src/image, which has its own
#include <xxhash.h>

#include "split/process/parts.h"

namespace fermata::split::process {
namespace {

constexpr size_t kPart = 1 << 20;

std::string hex(XXH128_hash_t hash) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    std::string text;
    for (unsigned char byte : bytes.digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

// Clocks of file systems are coarse, and may be another machine's: what is younger may change again unseen.
constexpr int64_t kSettledNs = 2'000'000'000;

nlohmann::json pair(const timespec& time) {
    return {static_cast<int64_t>(time.tv_sec), static_cast<int64_t>(time.tv_nsec)};
}

bool settled(const struct stat& status) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    auto age = [&](const timespec& then) {
        return (now.tv_sec - then.tv_sec) * 1'000'000'000 + (now.tv_nsec - then.tv_nsec);
    };
    return age(status.st_mtim) > kSettledNs && age(status.st_ctim) > kSettledNs;
}

bool write_whole(int fd, const char* data, size_t size) {
    while (size > 0) {
        ssize_t put = write(fd, data, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        data += put;
        size -= static_cast<size_t>(put);
    }
    return true;
}

// `each(bytes, size)` for all of a range; false with errno, ENODATA for a file that ends before.
template <class Each>
bool read_range(int fd, int64_t at, int64_t size, Each each) {
    std::vector<char> buffer(static_cast<size_t>(std::clamp<int64_t>(size, 1, kPart)));
    for (int64_t end = at + size; at < end;) {
        auto want = static_cast<size_t>(std::min<int64_t>(end - at, static_cast<int64_t>(buffer.size())));
        ssize_t got = pread(fd, buffer.data(), want, at);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = ENODATA;
        if (got <= 0) return false;
        if (!each(buffer.data(), static_cast<size_t>(got))) return false;
        at += got;
    }
    return true;
}

class Sum {
  public:
    Sum() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
    void add(const void* data, size_t size) { XXH3_128bits_update(state_.get(), data, size); }
    std::string text() const { return hex(XXH3_128bits_digest(state_.get())); }

  private:
    std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace

nlohmann::json describe_status(const struct stat& status) {
    return {{"size", static_cast<int64_t>(status.st_size)},
            {"inode", static_cast<uint64_t>(status.st_ino)},
            {"mode", status.st_mode & 07777},
            {"owner", {status.st_uid, status.st_gid}},
            {"modified", pair(status.st_mtim)},
            {"changed", pair(status.st_ctim)},
            {"settled", settled(status)}};
}

bool same_time(const nlohmann::json& saved, const timespec& now) {
    return saved.at(0).get<int64_t>() == now.tv_sec && saved.at(1).get<int64_t>() == now.tv_nsec;
}

bool is_untouched(const nlohmann::json& saved, const struct stat& now) {
    return saved.at("settled").get<bool>() && now.st_ino == saved.at("inode").get<uint64_t>() &&
           now.st_size == saved.at("size").get<int64_t>() && same_time(saved.at("modified"), now.st_mtim) &&
           same_time(saved.at("changed"), now.st_ctim);
}

std::string name_of_copy(const std::string& path, const struct stat& status) {
    std::string text = path;
    for (int64_t part :
         {static_cast<int64_t>(status.st_ino), static_cast<int64_t>(status.st_size),
          static_cast<int64_t>(status.st_mtim.tv_sec), static_cast<int64_t>(status.st_mtim.tv_nsec),
          static_cast<int64_t>(status.st_ctim.tv_sec), static_cast<int64_t>(status.st_ctim.tv_nsec)})
        text += "\n" + std::to_string(part);
    return sum_of_text(text);
}

files::Opened open_to_look(const std::string& path) {
    files::Opened file = files::open_regular(path, O_RDONLY | O_NOATIME);
    return file || file.error != EPERM ? std::move(file) : files::open_regular(path, O_RDONLY);
}

files::Opened open_itself(const std::string& path, int flags) {
    return open_as_owner(path, flags, {}, O_NOFOLLOW);
}

Fd make_new(const std::string& path, mode_t mode) {
    return Fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
}

std::string sum_of(int fd, int64_t at, int64_t size) {
    Sum sum;
    bool good = read_range(fd, at, size, [&](const char* data, size_t part) {
        sum.add(data, part);
        return true;
    });
    return good ? sum.text() : std::string();
}

std::string sum_of_text(const std::string& text) { return hex(XXH3_128bits(text.data(), text.size())); }

bool clone_file(int from, int to) { return ioctl(to, FICLONE, from) == 0; }

bool copy_file(int from, int64_t at, int64_t size, int to, std::string* sum) {
    Sum all;
    bool good = read_range(from, at, size, [&](const char* data, size_t part) {
        if (sum != nullptr) all.add(data, part);
        return write_whole(to, data, part);
    });
    if (good && sum != nullptr) *sum = all.text();
    return good;
}

std::string name_beside(const std::string& path, const std::string& what) {
    for (int n = 1;; ++n) {
        std::string name = path + "." + what + (n == 1 ? "" : "-" + std::to_string(n));
        struct stat there;
        if (lstat(name.c_str(), &there) != 0) return name;
    }
}

std::string cut_back(const std::string& path, int64_t size, const std::string& aside) {
    files::Opened file = open_itself(path, O_RDWR);
    if (!file) return file.why;
    struct stat now;
    if (fstat(file.fd.get(), &now) != 0) return error_text(errno);
    {
        Fd rest = make_new(aside, now.st_mode & 0777);
        if (!rest) return aside + ": " + error_text(errno);
        if (!copy_file(file.fd.get(), size, now.st_size - size, rest.get(), nullptr) ||
            fsync(rest.get()) != 0) {
            int error = errno;
            unlink(aside.c_str());
            return aside + ": " + error_text(error);
        }
    }
    if (ftruncate(file.fd.get(), size) != 0) {
        int error = errno;
        unlink(aside.c_str());
        return error_text(error);
    }
    fsync(file.fd.get());
    return {};
}

bool sync_parent(const std::string& path) {
    Fd parent(open(path.substr(0, std::max<size_t>(path.rfind('/'), 1)).c_str(),
                   O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return parent && fsync(parent.get()) == 0;
}

}  // namespace fermata::split::process
