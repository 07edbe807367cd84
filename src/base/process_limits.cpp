#include "base/process_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fermata {
namespace {

constexpr rlim_t kEnough = 1 << 20;  // files

struct Limit {
    __rlimit_resource_t which;
    rlimit users{};
    bool taken = false;
};
Limit g_files{RLIMIT_NOFILE}, g_core{RLIMIT_CORE};

template <class Change>
void take(Limit& limit, Change change) {
    if (limit.taken || ::getrlimit(limit.which, &limit.users) != 0) return;
    rlimit own = limit.users;
    change(own);
    limit.taken = ::setrlimit(limit.which, &own) == 0;
}

// A kernel that pipes cores to a program (core_pattern "|…") does not ask for the limit: nothing of the
// memory is in what it pipes.
class CoreFilter {
  public:
    void take() {
        if (taken_) return;
        const int fd = ::open(kPath, O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd < 0 ? -1 : ::read(fd, users_, sizeof users_);
        if (fd >= 0) ::close(fd);
        taken_ = n > 0 && write("0", 1);
        if (taken_) users_size_ = static_cast<size_t>(n);
    }
    // "00000033\n" would be read as octal.
    void give_back() const {
        char text[sizeof users_ + 2] = "0x";
        if (!taken_) return;
        std::memcpy(text + 2, users_, users_size_);
        write(text, 2 + users_size_);
    }

  private:
    static constexpr const char* kPath = "/proc/self/coredump_filter";
    static bool write(const char* text, size_t size) {
        const int fd = ::open(kPath, O_WRONLY | O_CLOEXEC);
        if (fd < 0) return false;
        const bool done = ::write(fd, text, size) == static_cast<ssize_t>(size);
        ::close(fd);
        return done;
    }
    char users_[16];
    size_t users_size_ = 0;
    bool taken_ = false;
};
CoreFilter g_filter;

}  // namespace

void take_own_limits() {
    take(g_files,
         [](rlimit& own) { own.rlim_cur = std::max(own.rlim_cur, std::min(own.rlim_max, kEnough)); });
    take(g_core, [](rlimit& own) { own.rlim_cur = 0; });
    g_filter.take();
}

void give_back_limits() {
    for (const Limit* limit : {&g_files, &g_core})
        if (limit->taken) ::setrlimit(limit->which, &limit->users);
    g_filter.give_back();
}

}  // namespace fermata
