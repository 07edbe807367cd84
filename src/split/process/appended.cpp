#include "split/process/appended.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "split/process/parts.h"

namespace fermata::split::process {
namespace {

class File {
  public:
    File(const std::string& path, int flags, mode_t mode = 0)
        : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int fd() const { return fd_; }

  private:
    int fd_;
};

// Another rank may be at it; nobody needs longer than its copy takes.
bool lock(int fd) {
    constexpr int kPauseUs = 10'000, kTries = 6'000;  // a minute
    for (int tries = 0; tries < kTries; ++tries) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) return false;
        usleep(kPauseUs);
    }
    return false;
}

bool copy(int from, int64_t at, int64_t end, int to) {
    std::vector<char> buffer(1 << 20);
    while (at < end) {
        auto want = static_cast<size_t>(std::min<int64_t>(end - at, static_cast<int64_t>(buffer.size())));
        ssize_t got = pread(from, buffer.data(), want, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(to, buffer.data() + done, static_cast<size_t>(got - done));
            if (put < 0 && errno != EINTR) return false;
            done += put > 0 ? put : 0;
        }
        at += got;
    }
    return fsync(to) == 0;
}

// A name that is not taken yet.
std::string free_name(const std::string& path) {
    for (int n = 1;; ++n) {
        std::string name = path + ".fermata-cut-" + std::to_string(n);
        if (access(name.c_str(), F_OK) != 0) return name;
    }
}

}  // namespace

std::string cut_back(const std::string& path, int64_t size, std::string* aside) {
    aside->clear();
    // A description of its own: the lock is not the application's, and closing it gives it back.
    File file(path, O_RDWR);
    if (file.fd() < 0) return error_text(errno);
    if (!lock(file.fd())) return "it is locked by somebody else";
    struct stat now;
    if (fstat(file.fd(), &now) != 0) return error_text(errno);
    if (!S_ISREG(now.st_mode) || now.st_size <= size) return {};
    std::string name = free_name(path);
    {
        File rest(name, O_WRONLY | O_CREAT | O_EXCL, now.st_mode & 0777);
        if (rest.fd() < 0) return name + ": " + error_text(errno);
        if (!copy(file.fd(), size, now.st_size, rest.fd())) {
            int error = errno;
            unlink(name.c_str());
            return name + ": " + error_text(error);
        }
    }
    if (ftruncate(file.fd(), size) != 0) {
        int error = errno;
        unlink(name.c_str());
        return error_text(error);
    }
    *aside = name;
    return {};
}

}  // namespace fermata::split::process
