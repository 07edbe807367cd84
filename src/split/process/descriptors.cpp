// Open descriptors of the application.
//
// Descriptors that share an open file description (dup, fork) share it again: offset and flags are the
// description's. 0, 1 and 2, and duplicates of them, become the new launcher's. Files are opened again by
// name; what they hold then is put_back.cpp's;
// removed files, memfds, pipes, event and timer descriptors carry their content. What cannot be held (a
// connection to a stranger, a device) is replaced by something that reads as "the other side has gone", with
// a warning.
#include "split/fds/descriptors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/fd.h"
#include "split/address/ranges.h"
#include "split/process/parts.h"
#include "split/shared/registry.h"
#include "split/shared/roster.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

int g_inherited[3] = {-1, -1, -1};

struct Entry {
    int fd = -1;
    struct stat status = {};
    std::string link;
    std::string info;  // fdinfo
    int flags = 0;     // F_GETFL
    bool close_on_exec = false;
    size_t description = 0;
};

std::vector<int> open_descriptors(int limit) {
    std::vector<int> found;
    int fd = static_cast<int>(
        raw::call(SYS_openat, AT_FDCWD, raw::word("/proc/self/fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return found;
    alignas(8) char buffer[8192];
    for (long size; (size = raw::call(SYS_getdents64, fd, raw::word(buffer), sizeof buffer)) > 0;) {
        for (long at = 0; at < size;) {
            // struct linux_dirent64: u64 ino, s64 off, u16 length, u8 type, name
            uint16_t length;
            std::memcpy(&length, buffer + at + 16, sizeof length);
            const char* name = buffer + at + 19;
            int number = std::atoi(name);
            if (name[0] != '.' && number != fd && number < limit) found.push_back(number);
            at += length;
        }
    }
    raw::call(SYS_close, fd);
    std::sort(found.begin(), found.end());
    return found;
}

Entry look_at(int fd) {
    Entry entry;
    if (fstat(fd, &entry.status) != 0) return entry;
    entry.fd = fd;
    std::string self = "/proc/self/fd/" + std::to_string(fd);
    std::string link(4096, 0);
    ssize_t size = readlink(self.c_str(), link.data(), link.size());
    link.resize(size > 0 ? static_cast<size_t>(size) : 0);
    entry.link = link;
    entry.info = read_proc("/proc/self/fdinfo/" + std::to_string(fd));
    entry.flags = fcntl(fd, F_GETFL);
    entry.close_on_exec = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    return entry;
}

std::string number(int fd) { return "descriptor " + std::to_string(fd); }

bool is_readable(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool is_writable(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// ---- content of what has no name

// Data extents of this part: [[offset, bytes], …].
void read_extents(int fd, off_t at, off_t size, Json& extents) {
    while (at < size) {
        off_t begin = lseek(fd, at, SEEK_DATA);
        if (begin < 0) {
            if (errno == ENXIO) break;  // a hole until the end
            begin = at;
        }
        off_t end = lseek(fd, begin, SEEK_HOLE);
        if (begin >= size) break;
        if (end < 0 || end > size) end = size;
        std::vector<uint8_t> bytes(static_cast<size_t>(end - begin));
        size_t got = 0;
        while (got < bytes.size()) {
            ssize_t part = pread(fd, bytes.data() + got, bytes.size() - got, begin + static_cast<off_t>(got));
            if (part <= 0)
                fail(
                    "only {} of {} bytes of a file without a name can be read ({}): checkpoint it again when "
                    "nobody "
                    "changes it",
                    begin + static_cast<off_t>(got), size,
                    part < 0 ? error_text(errno) : "it became shorter");
            got += static_cast<size_t>(part);
        }
        extents.push_back({static_cast<int64_t>(begin), Json::binary(std::move(bytes))});
        at = end;
    }
}

void write_extents(int fd, const Json& content, const std::string& what) {
    for (const Json& extent : content.at("extents")) {
        const auto& bytes = extent.at(1).get_binary();
        for (size_t done = 0; done < bytes.size();) {
            ssize_t part = pwrite(fd, bytes.data() + done, bytes.size() - done,
                                  extent.at(0).get<off_t>() + static_cast<off_t>(done));
            if (part <= 0)
                throw Refused{"the content of " + what + " cannot be written: " + error_text(errno) +
                              ": make room on its file system and restart again"};
            done += static_cast<size_t>(part);
        }
    }
    if (ftruncate(fd, content.at("size").get<off_t>()) != 0)
        throw Refused{what + " cannot be made as long as it was: " + error_text(errno) +
                      ": make room on its file system and restart again"};
}

// What the ranks have told each other of it; null when it is this rank's alone, and a descriptor's only.
const shared::Object* shared_object(const shared::Key& key) {
    const shared::Object* object = shared::roster() ? shared::roster()->find(key) : nullptr;
    return object && (object->ranks.size() > 1 || !object->mapped.empty()) ? object : nullptr;
}

// A removed file, a memfd: by inode, as several descriptions may be of the same one.
Json capture_content(const Entry& entry, Lines& warnings) {
    shared::Key key = shared::key_of(shared::Kind::memory, entry.status);
    Json content = {{"size", static_cast<int64_t>(entry.status.st_size)},
                    {"mode", entry.status.st_mode & 07777},
                    {"modified", {entry.status.st_mtim.tv_sec, entry.status.st_mtim.tv_nsec}},
                    {"extents", Json::array()}};
    const shared::Object* object = shared_object(key);
    if (object) {
        content["object"] = shared::to_text(key);
        content["settles"] = object->opener == shared::roster()->rank();
    }
    // Opened anew: the descriptor may be write-only, and its offset is not ours to move.
    int fd = open(("/proc/self/fd/" + std::to_string(entry.fd)).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && object && object->covered.size() == 1 && object->covered[0].begin == 0 &&
        object->covered[0].end >= static_cast<uint64_t>(entry.status.st_size))
        return content;  // others save all of it
    if (fd < 0) {
        warnings.push_back(number(entry.fd) + ": the content of the removed file " + entry.link +
                           " cannot be read: it comes back empty");
        return content;
    }
    // What is mapped is in the image's memory, and what lower ranks have is in theirs.
    auto size = static_cast<uint64_t>(entry.status.st_size);
    std::vector<Range> rest{{0, size}};
    if (object) rest = difference(difference(rest, object->lower), object->mapped);
    for (const Range& part : rest)
        if (!part.empty())
            read_extents(fd, static_cast<off_t>(part.begin), static_cast<off_t>(part.end),
                         content["extents"]);
    close(fd);
    constexpr int kGetSeals = 1034;  // F_GET_SEALS
    int seals = fcntl(entry.fd, kGetSeals);
    content["seals"] = seals > 0 ? seals : 0;
    return content;
}

// Bytes that wait in a pipe, without taking them out. `fd` is a read end.
std::vector<uint8_t> pipe_content(int fd) {
    int waiting = 0;
    std::vector<uint8_t> bytes;
    if (ioctl(fd, FIONREAD, &waiting) != 0 || waiting <= 0) return bytes;
    bytes.resize(static_cast<size_t>(waiting));
    int copy[2];
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) != 0)
        fail("{}: no pipe to copy the bytes that wait in it: {}", number(fd), error_text(errno));
    Fd from(copy[0]), to(copy[1]);
    int capacity = fcntl(fd, F_GETPIPE_SZ);
    if (capacity > 0) fcntl(to.get(), F_SETPIPE_SZ, capacity);
    ssize_t copied = tee(fd, to.get(), bytes.size(), SPLICE_F_NONBLOCK);
    size_t got = 0;
    for (ssize_t part; copied > 0 && got < static_cast<size_t>(copied); got += static_cast<size_t>(part)) {
        part = read(from.get(), bytes.data() + got, bytes.size() - got);
        if (part <= 0) break;
    }
    if (got != bytes.size())
        fail(
            "{}: only {} of the {} bytes that wait in this pipe can be saved (fs.pipe-user-pages-soft?): "
            "checkpoint "
            "again when less waits",
            number(fd), got, waiting);
    return bytes;
}

// ---- one description

std::string without_deleted(std::string path) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
    return path;
}

// "lock:\t1: POSIX  ADVISORY  WRITE 4022 fd:01:1234 0 EOF" lines of fdinfo.
Json capture_locks(const std::string& info) {
    Json locks = Json::array();
    for (size_t at = info.find("lock:"); at != std::string::npos; at = info.find("lock:", at + 1)) {
        char kind[16] = {}, access[16] = {}, end[32] = {};
        long long start = 0;
        if (std::sscanf(info.c_str() + at, "lock:\t%*d: %15s %*s %15s %*d %*s %lld %31s", kind, access,
                        &start, end) != 4)
            continue;
        long long length = std::strcmp(end, "EOF") == 0 ? 0 : std::atoll(end) - start + 1;
        locks.push_back({kind, std::strcmp(access, "WRITE") == 0, start, length});
    }
    return locks;
}

void restore_locks(int fd, const Json& saved, Lines& warnings) {
    for (const Json& lock : saved.at("locks")) {
        std::string kind = lock.at(0);
        bool exclusive = lock.at(1);
        int result;
        if (kind == "FLOCK") {
            result = flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
        } else if (kind == "LEASE") {
            result = fcntl(fd, F_SETLEASE, exclusive ? F_WRLCK : F_RDLCK);
        } else {
            struct flock range = {};
            range.l_type = exclusive ? F_WRLCK : F_RDLCK;
            range.l_whence = SEEK_SET;
            range.l_start = lock.at(2);
            range.l_len = lock.at(3);
            result = fcntl(fd, kind == "OFDLCK" ? F_OFD_SETLK : F_SETLK, &range);
        }
        if (result != 0)
            warnings.push_back(number(fd) + ": the lock on " + saved.value("path", "a file") +
                               " cannot be had (held by somebody else?)");
    }
}

Json capture_timerfd(const Entry& entry) {
    itimerspec left = {};
    timerfd_gettime(entry.fd, &left);
    int clock = std::atoi(field(entry.info, "clockid").c_str());
    long flags = std::strtol(field(entry.info, "settime flags").c_str(), nullptr, 8);
    // A moment of the wall clock stays that moment; moments of other clocks are distances.
    bool moment = (flags & TFD_TIMER_ABSTIME) != 0 &&
                  (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM) &&
                  (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0);
    if (moment) {
        timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        left.it_value.tv_sec += now.tv_sec + (left.it_value.tv_nsec + now.tv_nsec) / 1000000000;
        left.it_value.tv_nsec = (left.it_value.tv_nsec + now.tv_nsec) % 1000000000;
    }
    return {{"kind", "timerfd"},
            {"clock", clock},
            {"set", moment ? flags & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) : 0},
            {"ticks", std::strtoull(field(entry.info, "ticks").c_str(), nullptr, 10)},
            {"left", {left.it_value.tv_sec, left.it_value.tv_nsec}},
            {"interval", {left.it_interval.tv_sec, left.it_interval.tv_nsec}}};
}

// Does a read take one from this eventfd's `count`, rather than all? Asked of the descriptor itself: the
// count is as before when this returns, but for children that take some of it meanwhile.
bool tried_to_be_semaphore(int fd, uint64_t count) {
    auto add = [&](uint64_t more) { raw::call(SYS_write, fd, raw::word(&more), sizeof more); };
    auto take = [&] {
        uint64_t got = 0;
        iovec into{&got, sizeof got};
        raw::call(SYS_preadv2, fd, raw::word(&into), 1, -1, 0, RWF_NOWAIT);
        return got;
    };
    uint64_t more = count < 2 ? 2 : 0;
    if (more != 0) add(more);
    uint64_t got = take();
    bool semaphore = got == 1;
    if (semaphore && more != 0)
        take();
    else if (semaphore)
        add(1);
    else if (got > more)
        add(got - more);
    return semaphore;
}

// Who gets SIGIO.
void capture_owner(const Entry& entry, Json& one, Lines& warnings) {
    f_owner_ex owner = {};
    if (fcntl(entry.fd, F_GETOWN_EX, &owner) != 0 || owner.pid == 0) return;
    bool process = owner.type == F_OWNER_PID && owner.pid == raw::getpid();
    bool thread = owner.type == F_OWNER_TID &&
                  !read_proc("/proc/self/task/" + std::to_string(owner.pid) + "/comm").empty();
    if (process || thread) {
        one["owner_signal"] = fcntl(entry.fd, F_GETSIG);
        one["owner_thread"] = thread ? owner.pid : 0;
    } else {
        warnings.push_back(number(entry.fd) +
                           ": its owner (F_SETOWN) is another process or group: after a restart it "
                           "has none");
    }
}

Json capture_eventfd(const Entry& entry) {
    uint64_t count = std::strtoull(field(entry.info, "eventfd-count").c_str(), nullptr, 16);
    std::string semaphore = field(entry.info, "eventfd-semaphore");
    // (Linux 6.1 does not say.)
    return {{"kind", "eventfd"},
            {"count", count},
            {"semaphore", semaphore.empty() ? tried_to_be_semaphore(entry.fd, count) : semaphore != "0"}};
}

Json lost(const Entry& entry, Lines& warnings) {
    warnings.push_back(number(entry.fd) + " (" + entry.link +
                       ") cannot be saved: after a restart it reads as end of file");
    return {{"kind", "lost"}};
}

Json capture_regular(const Entry& entry, Json& contents, Lines& warnings) {
    // Its messages are with what ranks share.
    if (shared::is_queue(entry.fd))
        return {{"kind", "queue"},
                {"path", without_deleted(entry.link)},
                {"object", shared::to_text(shared::key_of(shared::Kind::queue, entry.status))}};
    Json one = {{"kind", "file"},
                {"path", entry.link},
                {"size", static_cast<int64_t>(entry.status.st_size)},
                {"uid", entry.status.st_uid}};
    if (entry.link.starts_with("/memfd:")) {
        one["kind"] = "memfd";
        one["path"] = without_deleted(entry.link.substr(std::strlen("/memfd:")));
    } else if (OwnProcFile own = own_proc_file(entry.link); !own.path.empty()) {
        one["path"] = own.path;
        one["thread"] = own.tid;
        one["size"] = 0;
        return one;
    } else if (!entry.link.starts_with("/") || of_another_process(entry.link)) {
        return lost(entry, warnings);
    } else {
        struct stat there;
        std::string path = entry.link;
        one["mode"] = entry.status.st_mode & 07777;
        bool same = stat(path.c_str(), &there) == 0 && there.st_dev == entry.status.st_dev &&
                    there.st_ino == entry.status.st_ino;
        if (same) return one;
        if (entry.status.st_nlink != 0)
            warnings.push_back(number(entry.fd) + ": " + without_deleted(path) +
                               " was renamed or replaced while open: it comes back as a file without a name");
        one["kind"] = "removed";
        one["path"] = without_deleted(path);
    }
    std::string id = std::to_string(entry.status.st_dev) + ":" + std::to_string(entry.status.st_ino);
    one["content"] = id;
    if (!contents.contains(id)) contents[id] = capture_content(entry, warnings);
    return one;
}

Json capture_fifo(const Entry& entry, Json& pipes, Lines&) {
    std::string id = std::to_string(entry.status.st_ino);
    bool named = !entry.link.starts_with("pipe:[");
    Json& pipe = pipes[id];
    if (pipe.is_null())
        pipe = {{"capacity", fcntl(entry.fd, F_GETPIPE_SZ)},
                {"read", false},
                {"write", false},
                {"fd", entry.fd},
                {"named", named}};
    // In two ranks: what waits in it is saved by the lowest that could read it.
    shared::Key key = shared::key_of(named ? shared::Kind::fifo : shared::Kind::pipe, entry.status);
    const shared::Object* object = shared_object(key);
    if (object && !named) pipe["object"] = shared::to_text(key);
    if (is_readable(entry.flags)) {
        pipe["read"] = true;
        bool ours = !object || object->reader == shared::roster()->rank();
        if (ours && !pipe.contains("content")) pipe["content"] = Json::binary(pipe_content(entry.fd));
    }
    if (is_writable(entry.flags)) pipe["write"] = true;
    Json one = {{"kind", named ? "fifo" : "pipe"}, {"pipe", id}};
    if (named) {
        one["path"] = entry.link;
        one["uid"] = entry.status.st_uid;
    }
    return one;
}

// A pidfd of this process. (Linux 6.9 made them files of a file system of their own.)
bool is_own_pidfd(const Entry& entry) {
    return (entry.link == "anon_inode:[pidfd]" || entry.link.starts_with("pidfd:")) &&
           field(entry.info, "Pid") == std::to_string(raw::getpid());
}

// Devices that are the same everywhere.
bool everywhere(const std::string& path) {
    static const std::set<std::string> kKnown = {"/dev/null",   "/dev/zero",    "/dev/full",
                                                 "/dev/random", "/dev/urandom", "/dev/tty"};
    return kKnown.contains(path);
}

// Which of the launcher's 0, 1, 2 this is; -1 = none. A terminal is all three: then each number means itself,
// and a duplicate means output. Files, and /dev/null as output, are no launcher's: a starter has redirected
// the program (`./prog > log`), and they are the program's like any other.
int given_by_launcher(const Entry& entry) {
    for (int i : {entry.fd, 1, 2, 0}) {
        struct stat given;
        if (i > 2 || g_inherited[i] < 0 || fstat(g_inherited[i], &given) != 0) continue;
        if (given.st_dev != entry.status.st_dev || given.st_ino != entry.status.st_ino) continue;
        bool redirected =
            S_ISREG(given.st_mode) || (i > 0 && S_ISCHR(given.st_mode) && everywhere(entry.link));
        if (!redirected && same_description(entry.fd, g_inherited[i])) return i;
    }
    return -1;
}

Json capture_given(const Entry& entry, int number, Lines& warnings) {
    int unread = 0;
    if (number == 0 && entry.fd == 0 && ioctl(entry.fd, FIONREAD, &unread) == 0 && unread > 0)
        warnings.push_back(
            fmt::format("{} bytes of standard input that the program has not read yet are not in the "
                        "image: give input as a "
                        "file (fermata run … < FILE)",
                        unread));
    return {{"kind", "inherited"}, {"number", number}};
}

Json capture_one(const Entry& entry, Json& contents, Json& pipes, Lines& warnings) {
    switch (entry.status.st_mode & S_IFMT) {
        case S_IFREG:
            if (is_own_pidfd(entry)) return {{"kind", "pidfd"}};
            return capture_regular(entry, contents, warnings);
        case S_IFDIR: {
            if (entry.status.st_nlink == 0)
                warnings.push_back(number(entry.fd) + ": the directory " + entry.link +
                                   " has been removed: after a restart it is an empty one");
            if (OwnProcFile own = own_proc_file(entry.link); !own.path.empty())
                return {{"kind", "directory"}, {"path", own.path}, {"thread", own.tid}};
            if (of_another_process(entry.link)) return lost(entry, warnings);
            return {{"kind", entry.status.st_nlink == 0 ? "removed_directory" : "directory"},
                    {"path", entry.link}};
        }
        case S_IFIFO:
            return capture_fifo(entry, pipes, warnings);
        case S_IFSOCK:
            return {{"kind", "socket"}};
        case S_IFCHR:
        case S_IFBLK:
            if (entry.link.starts_with("/dev/infiniband/"))
                fail(
                    "{} is {}: the program itself talks to the adapter, and what it holds there cannot be "
                    "saved; "
                    "close it before a checkpoint",
                    number(entry.fd), entry.link);
            if (!everywhere(entry.link))
                warnings.push_back(number(entry.fd) + ": device " + entry.link +
                                   " is opened again at a restart, its state is not saved");
            return {{"kind", "device"}, {"path", entry.link}};
        default:
            break;
    }
    if (entry.link == "anon_inode:[eventfd]") return capture_eventfd(entry);
    if (entry.link == "anon_inode:[timerfd]") return capture_timerfd(entry);
    if (entry.link == "anon_inode:[signalfd]")
        return {{"kind", "signalfd"},
                {"mask", std::strtoull(field(entry.info, "sigmask").c_str(), nullptr, 16)}};
    if (entry.link == "anon_inode:[eventpoll]")
        return {{"kind", "epoll"}};  // "watched": when all descriptions are known
    if (entry.link == "anon_inode:inotify") {
        if (entry.info.find("inotify wd:") != std::string::npos)
            warnings.push_back(number(entry.fd) +
                               ": inotify watches are not saved: after a restart no events come");
        return {{"kind", "inotify"}};
    }
    if (is_own_pidfd(entry)) return {{"kind", "pidfd"}};
    // Memory or writes of the program would be wrong without a word.
    for (std::string_view whole : {"[userfaultfd]", "[io_uring]"})
        if (entry.link == "anon_inode:" + std::string(whole))
            fail("{} is {}: what it does to memory and files cannot be saved; close it before a checkpoint",
                 number(entry.fd), whole);
    return lost(entry, warnings);
}

}  // namespace

int raised(int fd, int base) {
    if (fd < 0 || fd >= base) return fd;
    // The partition's own way: it lifts the soft limit meanwhile.
    int high = raise_descriptor(fd);
    if (high >= base) return high;
    high = static_cast<int>(raw::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base));
    raw::call(SYS_close, fd);
    return high < 0 ? -1 : high;
}

bool same_description(int a, int b) {
    int pid = raw::getpid();
    long answer = raw::call(SYS_kcmp, pid, pid, KCMP_FILE, a, b);
    if (answer >= 0) return answer == 0;
    // No kcmp (CONFIG_KCMP off, seccomp): the same inode, and an offset that moves in both.
    struct stat first, second;
    if (fstat(a, &first) != 0 || fstat(b, &second) != 0) return false;
    if (first.st_dev != second.st_dev || first.st_ino != second.st_ino ||
        fcntl(a, F_GETFL) != fcntl(b, F_GETFL))
        return false;
    off_t at = lseek(a, 0, SEEK_CUR);
    if (at < 0) return true;  // no offset to tell by: the inode has to do
    off_t before = lseek(b, 0, SEEK_CUR);
    lseek(a, at + 1, SEEK_SET);
    bool moved = before == at && lseek(b, 0, SEEK_CUR) == at + 1;
    lseek(a, at, SEEK_SET);
    return moved;
}

void keep_inherited_descriptors() {
    for (int i = 0; i < 3; ++i)
        if (g_inherited[i] < 0)
            g_inherited[i] = raised(static_cast<int>(raw::call(SYS_dup, i)), lower_descriptor_base());
}

int inherited_descriptor(int number) { return g_inherited[number]; }

Json capture_descriptors(const Limits& limits, Lines& warnings) {
    std::vector<Entry> entries;
    for (int fd : open_descriptors(limits.descriptors)) {
        if (fd == g_inherited[0] || fd == g_inherited[1] || fd == g_inherited[2]) continue;
        if (split::launcher_channel(fd)) continue;  // not the program's: neither saved nor missed
        Entry entry = look_at(fd);
        // libibverbs gets these by ioctl, so they have low numbers; a program with its own is refused
        // (capture_one).
        if (entry.link == "anon_inode:[infinibandevent]") continue;
        if (entry.fd >= 0) entries.push_back(std::move(entry));
    }
    // Only descriptors of one inode can share a description. All anonymous inodes are one, so kcmp decides.
    std::map<std::pair<dev_t, ino_t>, std::vector<size_t>> by_inode;
    std::vector<const Entry*> descriptions;
    std::map<int, size_t> by_given;
    std::map<size_t, int> given;
    for (Entry& entry : entries) {
        if (int number = given_by_launcher(entry); number >= 0) {
            auto [place, fresh] = by_given.emplace(number, descriptions.size());
            entry.description = place->second;
            if (fresh) given[descriptions.size()] = number, descriptions.push_back(&entry);
            continue;
        }
        auto& candidates = by_inode[{entry.status.st_dev, entry.status.st_ino}];
        bool known = false;
        for (size_t candidate : candidates) {
            if (!same_description(descriptions[candidate]->fd, entry.fd)) continue;
            entry.description = candidate;
            known = true;
            break;
        }
        if (known) continue;
        entry.description = descriptions.size();
        candidates.push_back(entry.description);
        descriptions.push_back(&entry);
    }
    Json contents = Json::object(), pipes = Json::object(), list = Json::array();
    std::vector<SocketFd> sockets;
    std::vector<size_t> socket_places;
    for (const Entry* entry : descriptions) {
        auto number = given.find(entry->description);
        Json one = number != given.end() ? capture_given(*entry, number->second, warnings)
                                         : capture_one(*entry, contents, pipes, warnings);
        one["flags"] = entry->flags;
        if (std::string position = field(entry->info, "pos"); !position.empty())
            one["position"] = std::strtoll(position.c_str(), nullptr, 10);
        one["locks"] = capture_locks(entry->info);
        capture_owner(*entry, one, warnings);
        if (one["kind"] == "socket") {
            socket_places.push_back(list.size());
            sockets.push_back({entry->fd, entry->status.st_ino});
        }
        list.push_back(std::move(one));
    }
    std::vector<OpenDescriptor> numbers;
    for (const Entry& entry : entries) numbers.push_back({entry.fd, entry.description});
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i]["kind"] == "epoll")
            list[i]["watched"] = capture_epoll(descriptions[i]->fd, descriptions[i]->info, numbers, warnings);
    std::vector<Json> socket_values = capture_sockets(sockets, warnings);
    for (size_t i = 0; i < socket_places.size(); ++i)
        list[socket_places[i]]["socket"] = std::move(socket_values[i]);
    for (auto& [id, pipe] : pipes.items())
        if (!pipe["named"].get<bool>() && !pipe.contains("object") &&
            !(pipe["read"].get<bool>() && pipe["write"].get<bool>()))
            warnings.push_back(number(pipe["fd"].get<int>()) +
                               " is a pipe to another process: after a restart its other end is closed");
    Json fds = Json::array();
    for (const Entry& entry : entries) fds.push_back({entry.fd, entry.description, entry.close_on_exec});
    return {{"descriptions", list}, {"descriptors", fds}, {"contents", contents}, {"pipes", pipes}};
}

namespace {

// Flags that make sense when a file is opened again.
int reopen_flags(int flags) {
    return (flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY)) | O_CLOEXEC | O_NOCTTY;
}

class Rebuild {
  public:
    Rebuild(const Json& state, const Limits& limits, Lines& warnings)
        : state_(state), warnings_(warnings), base_(own_descriptor_base(limits)) {}

    void run() {
        const Json& descriptions = state_.at("descriptions");
        for (const Json& one : descriptions)
            if (one.at("kind") == "socket") sockets_.push_back(&one.at("socket"));
        socket_ends_.assign(sockets_.size(), -1);
        std::vector<int> made(descriptions.size(), -1);
        for (size_t i = 0; i < descriptions.size(); ++i) {
            target_ = target_of(i);
            made[i] = up(make(descriptions[i]));
        }
        give_numbers(made);
        clear_standard();
        for (size_t i = 0; i < descriptions.size(); ++i)
            if (made[i] >= 0) finish(descriptions[i], made[i]);
        watch(descriptions, made);
        for (int fd : made)
            if (fd >= 0) raw::call(SYS_close, fd);
        for (auto& [id, ends] : pipes_) {
            raw::call(SYS_close, ends.first);
            raw::call(SYS_close, ends.second);
        }
        for (auto& [id, fd] : contents_) raw::call(SYS_close, fd);
        for (int fd : fifos_) raw::call(SYS_close, fd);
        for (int fd : socket_ends_)
            if (fd >= 0) raw::call(SYS_close, fd);
        // Last: closing any descriptor of a file drops the process's POSIX locks on it.
        for (size_t i = 0; i < descriptions.size(); ++i)
            if (made[i] >= 0 && descriptions[i].at("kind") != "inherited")
                restore_locks(target_of(i), descriptions[i], warnings_);
    }

  private:
    // May be called again: whatever a number means by then, it comes to mean this.
    void give_numbers(const std::vector<int>& made) {
        for (const Json& fd : state_.at("descriptors")) {
            int source = made[fd.at(1).get<size_t>()];
            if (source < 0) continue;
            // Raw: the lower half's dup3 may be interposed.
            long error =
                raw::call(SYS_dup3, source, fd.at(0).get<int>(), fd.at(2).get<bool>() ? O_CLOEXEC : 0);
            if (error < 0)
                throw Refused{number(fd.at(0)) +
                              " cannot be opened again: " + error_text(static_cast<int>(-error)) +
                              ": raise the limit of open files (ulimit -n) and restart again"};
        }
    }
    // Numbers are known only now.
    void watch(const Json& descriptions, const std::vector<int>& made) {
        auto origin = [this](int fd) { return origin_of(fd); };
        for (size_t i = 0; i < descriptions.size(); ++i)
            if (made[i] >= 0 && descriptions[i].at("kind") == "epoll")
                watch_again(made[i], descriptions[i].at("watched"), made, origin, warnings_);
        give_numbers(made);
        clear_standard();
    }
    // What the application had closed is closed again.
    void clear_standard() {
        bool used[3] = {};
        for (const Json& fd : state_.at("descriptors"))
            if (fd.at(0).get<int>() < 3) used[fd.at(0).get<size_t>()] = true;
        for (int fd = 0; fd < 3; ++fd)
            if (!used[fd]) raw::call(SYS_close, fd);
    }
    int target_of(size_t description) {
        for (const Json& fd : state_.at("descriptors"))
            if (fd.at(1).get<size_t>() == description) return fd.at(0);
        return -1;
    }
    // Out of the range where the targets are.
    int up(int fd) {
        int high = raised(fd, base_);
        if (fd >= 0 && high < 0)
            throw Refused{"no descriptor above " + std::to_string(base_) +
                          " is left: raise the hard limit of open files"};
        return high;
    }

    int placeholder() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return -1;
        close(ends[1]);
        return ends[0];
    }

    int make(const Json& one) {
        std::string kind = one.at("kind");
        int flags = one.at("flags");
        int extra = O_CLOEXEC | (flags & O_NONBLOCK);
        if (kind == "inherited") {
            int from = inherited_descriptor(one.at("number"));
            return from < 0 ? -1 : static_cast<int>(raw::call(SYS_dup, from));
        }
        if (kind == "file") return open_named(one, flags);
        if (kind == "directory" || kind == "device") return open_other(one, flags);
        if (kind == "removed_directory") return make_directory();
        if (kind == "removed" || kind == "memfd") return open_content(one, kind == "memfd", flags);
        if (kind == "pipe") return open_pipe(one.at("pipe"), flags);
        if (kind == "fifo") return open_fifo(one, flags);
        if (kind == "eventfd") {
            int fd = eventfd(0, extra | (one.at("semaphore").get<bool>() ? EFD_SEMAPHORE : 0));
            uint64_t count = one.at("count");
            if (count != 0 && write(fd, &count, sizeof count) < 0) warnings_.push_back("eventfd: count lost");
            return fd;
        }
        if (kind == "timerfd") {
            int fd = timerfd_create(one.at("clock"), extra);
            itimerspec left = {{one.at("interval").at(0), one.at("interval").at(1)},
                               {one.at("left").at(0), one.at("left").at(1)}};
            timerfd_settime(fd, one.at("set"), &left, nullptr);
            uint64_t ticks = one.at("ticks");
            constexpr unsigned long kSetTicks = _IOW('T', 0, uint64_t);  // TFD_IOC_SET_TICKS
            if (ticks != 0 && ioctl(fd, kSetTicks, &ticks) != 0)
                warnings_.push_back(number(target_) +
                                    ": expirations of the timer that were not read yet are lost");
            return fd;
        }
        if (kind == "signalfd") {
            uint64_t mask = one.at("mask");
            return static_cast<int>(raw::call(SYS_signalfd4, -1, raw::word(&mask), 8, extra));
        }
        if (kind == "epoll") return epoll_create1(EPOLL_CLOEXEC);
        if (kind == "pidfd")
            return static_cast<int>(raw::call(SYS_pidfd_open, raw::getpid(), flags & O_NONBLOCK));
        if (kind == "queue") {
            int fd = shared::descriptor_of(one.at("object").get<std::string>());
            return fd < 0 ? placeholder() : open_again(fd, flags);
        }
        if (kind == "inotify") return inotify_init1(extra);
        if (kind == "socket") {
            size_t index = next_socket_++;
            int fd = restore_socket(sockets_, index, socket_ends_, warnings_);
            for (int& end : socket_ends_) end = up(end);
            return fd >= 0 ? fd : placeholder();
        }
        return placeholder();
    }

    int open_named(const Json& one, int flags) {
        std::string path = proc_path_here(one.at("path"), one.value("thread", 0));
        int fd = open_as_owner(path, reopen_flags(flags), one.value("mode", mode_t{0600}));
        if (fd < 0)
            throw Refused{"file " + path + ", open at the checkpoint as " + number(target_) +
                          ", cannot be opened: " + error_text(errno) + ": put it back and restart again"};
        check_owner(fd, one, path);
        struct stat now;
        if (fstat(fd, &now) == 0 && S_ISREG(now.st_mode)) {
            auto size = one.at("size").get<int64_t>();
            if (now.st_size < size)
                warnings_.push_back("file " + path + " (" + number(target_) + ") has " +
                                    std::to_string(now.st_size) + " bytes, at the checkpoint it had " +
                                    std::to_string(size) + ": the program may read other data than before");
        }
        return fd;
    }

    // Where everybody may put files, another one of that name may be a trap.
    void check_owner(int fd, const Json& one, const std::string& path) {
        struct stat now;
        if (fstat(fd, &now) != 0 || now.st_uid == geteuid() || now.st_uid == one.at("uid").get<uid_t>() ||
            !shared::others_may_make(path))
            return;
        throw Refused{path + " (" + number(target_) + ") belongs to user " + std::to_string(now.st_uid) +
                      " now, at the checkpoint to " + std::to_string(one.at("uid").get<uid_t>()) +
                      ": remove it, put the program's back and restart again"};
    }

    int open_other(const Json& one, int flags) {
        std::string path = proc_path_here(one.at("path"), one.value("thread", 0));
        bool directory = one.at("kind") == "directory";
        int fd = open(path.c_str(), reopen_flags(flags));
        struct stat now;
        if (fd >= 0 && directory && (fstat(fd, &now) != 0 || !S_ISDIR(now.st_mode))) {
            close(fd);
            fd = -1;
            errno = ENOTDIR;
        }
        if (fd >= 0) return fd;
        warnings_.push_back(path + " (" + number(target_) + ") cannot be opened here: " + error_text(errno) +
                            (directory ? "" : ": it is /dev/null now"));
        return directory ? placeholder() : open("/dev/null", reopen_flags(flags));
    }

    int make_directory() {
        char name[] = "/tmp/fermata-dir-XXXXXX";
        if (mkdtemp(name) == nullptr) return -1;
        int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rmdir(name);
        return fd;
    }

    // The inode is made once; each description opens it with its own flags.
    int open_content(const Json& one, bool memory, int flags) {
        std::string id = one.at("content");
        auto known = contents_.find(id);
        if (known == contents_.end()) {
            const Json& content = state_.at("contents").at(id);
            int seals = content.value("seals", 0);
            std::string path = one.at("path");
            // What is mapped as shared memory, or other ranks have, is there already.
            int fd = -1;
            if (content.contains("object"))
                fd = shared::descriptor_of(content.at("object").get<std::string>());
            if (fd >= 0) {
                fd = static_cast<int>(raw::call(SYS_dup, fd));
            } else if (memory) {
                fd = memfd_create(path.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
            } else {
                size_t slash = path.rfind('/');
                std::string directory =
                    slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
                for (const std::string& place : {directory, std::string("/tmp")}) {
                    fd = open(place.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
                    if (fd >= 0) break;
                }
                if (fd < 0) fd = memfd_create("removed", MFD_CLOEXEC);
            }
            if (fd < 0)
                throw Refused{"no place for the removed file " + path + " (" + number(target_) +
                              "): make its directory or /tmp writable and restart again"};
            write_extents(fd, content, "the removed file " + path + " (" + number(target_) + ")");
            // Once for all ranks.
            if (!content.value("settles", true)) return open_again(id, fd, flags);
            fchmod(fd, content.at("mode").get<mode_t>());
            if (content.contains("modified")) {
                const Json& time = content.at("modified");
                timespec times[2] = {{0, UTIME_OMIT}, {time.at(0).get<time_t>(), time.at(1).get<long>()}};
                futimens(fd, times);
            }
            if (memory && seals > 0 && fcntl(fd, 1033 /* F_ADD_SEALS */, seals) != 0)
                warnings_.push_back("the seals of " + path + " (" + number(target_) +
                                    ") cannot be set again: " + error_text(errno));
            return open_again(id, fd, flags);
        }
        return open_again(known->second, flags);
    }
    int open_again(const std::string& id, int fd, int flags) {
        return open_again(contents_.emplace(id, up(fd)).first->second, flags);
    }
    static int open_again(int known, int flags) {
        std::string self = "/proc/self/fd/" + std::to_string(known);
        int fd = open(self.c_str(), reopen_flags(flags) & ~O_TMPFILE);
        if (fd < 0) fd = static_cast<int>(raw::call(SYS_dup, known));
        return fd;
    }

    std::pair<int, int>& pipe_ends(const std::string& id) {
        auto known = pipes_.find(id);
        if (known != pipes_.end()) return known->second;
        const Json& saved = state_.at("pipes").at(id);
        int ends[2] = {-1, -1};
        if (saved.contains("object")) {
            auto [from, to] = shared::pipe_of(saved.at("object").get<std::string>());
            if (from >= 0) {
                ends[0] = static_cast<int>(raw::call(SYS_dup, from));
                ends[1] = static_cast<int>(raw::call(SYS_dup, to));
            }
        }
        if (ends[0] < 0 && pipe2(ends, O_CLOEXEC) != 0)
            throw Refused{"no pipe could be made: " + error_text(errno)};
        int capacity = saved.at("capacity");
        if (capacity > 0) fcntl(ends[1], F_SETPIPE_SZ, capacity);
        if (saved.contains("content")) fill(ends[1], saved.at("content"));
        return pipes_[id] = {up(ends[0]), up(ends[1])};
    }
    void fill(int fd, const Json& content) {
        const auto& bytes = content.get_binary();
        if (!bytes.empty() && write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            throw Refused{
                number(target_) + ": not all of the " + std::to_string(bytes.size()) +
                " bytes that waited in the pipe could be put back (fs.pipe-user-pages-soft?): restart again "
                "with a higher limit"};
    }
    int open_pipe(const std::string& id, int flags) {
        auto [read_end, write_end] = pipe_ends(id);
        int from = is_readable(flags) ? read_end : write_end;
        // A description of its own, so that O_NONBLOCK is.
        return open(("/proc/self/fd/" + std::to_string(from)).c_str(), reopen_flags(flags));
    }
    int open_fifo(const Json& one, int flags) {
        std::string path = one.at("path");
        // Read and write: opening one side alone would wait for the other.
        int both = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (both < 0)
            throw Refused{"named pipe " + path + " (" + number(target_) + ") cannot be opened: " +
                          error_text(errno) + ": put it back (mkfifo) and restart again"};
        check_owner(both, one, path);
        const Json& saved = state_.at("pipes").at(one.at("pipe").get<std::string>());
        if (is_readable(flags) && saved.contains("content") && filled_.insert(path).second)
            fill(both, saved.at("content"));
        int fd = open(path.c_str(), reopen_flags(flags));
        fifos_.push_back(up(both));
        return fd;
    }

    void finish(const Json& one, int fd) {
        std::string kind = one.at("kind");
        int flags = one.at("flags");
        bool has_offset =
            kind == "file" || kind == "directory" || kind == "removed" || kind == "memfd" || kind == "device";
        if (has_offset && one.contains("position") && (flags & O_PATH) == 0)
            lseek(fd, one.at("position").get<off_t>(), SEEK_SET);
        if (kind == "epoll" || kind == "socket" || kind == "fifo") {
            int wanted = flags & (O_NONBLOCK | O_APPEND | O_ASYNC);
            fcntl(fd, F_SETFL, wanted);
        }
        if (one.contains("owner_signal") && kind != "inherited") {
            int thread = one.value("owner_thread", 0);
            f_owner_ex owner = {F_OWNER_PID, raw::getpid()};
            if (thread != 0) owner = {F_OWNER_TID, threads::new_tid(thread)};
            fcntl(fd, F_SETOWN_EX, &owner);
            fcntl(fd, F_SETSIG, one.at("owner_signal").get<int>());
        }
    }

    int origin_of(int fd) const {
        for (const Json& one : state_.at("descriptors"))
            if (one.at(0).get<int>() == fd) return one.at(1);
        return -1;
    }

    const Json& state_;
    Lines& warnings_;
    int base_;
    int target_ = -1;
    std::map<std::string, int> contents_;
    std::map<std::string, std::pair<int, int>> pipes_;
    std::vector<int> fifos_;
    std::set<std::string> filled_;
    std::vector<const Json*> sockets_;
    std::vector<int> socket_ends_;
    size_t next_socket_ = 0;
};

}  // namespace

void restore_descriptors(const Json& state, const Limits& limits, Lines& warnings) {
    Rebuild(state, limits, warnings).run();
}

}  // namespace fermata::split::process
