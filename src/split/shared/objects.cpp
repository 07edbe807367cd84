#include "split/shared/objects.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "base/fd.h"
#include "base/proc_text.h"
#include "split/address/window.h"
#include "split/fds/descriptors.h"
#include "split/fds/inherited.h"
#include "split/pages/flags.h"
#include "split/partition/partition.h"
#include "split/shared/system_v.h"

namespace fermata::split::shared {
namespace {

constexpr long kQueues = 0x19800202;  // MQUEUE_MAGIC

std::string link_of(const std::string& path) {
    char text[4096];
    ssize_t size = ::readlink(path.c_str(), text, sizeof text);
    return {text, size > 0 ? static_cast<size_t>(size) : 0};
}

uint64_t hash_of(const std::string& text) { return std::hash<std::string>{}(text); }

void add_mapping(const Mapping& m, std::vector<Use>& uses) {
    if (!m.shared || m.name.starts_with("anon_inode:")) return;
    Use use;
    use.flags = kMapped | (m.flags.find(" mw") != std::string::npos ? kWritable : 0u);
    use.part = {m.offset, m.offset + m.range.size()};
    use.size = use.part.end();
    struct stat file;
    std::string path = path_of(m, file);
    bool named = !path.empty();
    if (named) {
        if (!put_back(path, file)) return;  // its content is the file's
        use.size = static_cast<uint64_t>(file.st_size);
        // A view of what others may write is not put back, but who has it belongs to them.
        if (!(use.flags & kWritable)) use.part = {};
    }
    use.key = key_of(m, named ? &file : nullptr);
    if (use.key.kind == Kind::segment) {
        shmid_ds info;
        if (::shmctl(static_cast<int>(m.inode), IPC_STAT, &info) == 0) use.size = info.shm_segsz;
    }
    uses.push_back(use);
}

void add_descriptor(int fd, std::vector<Use>& uses) {
    struct stat file;
    if (::fstat(fd, &file) != 0 || launcher_channel(fd)) return;
    for (int i = 0; i < 3; ++i)
        if (int given = inherited_descriptor(i); given >= 0 && (fd == given || same_description(fd, given)))
            return;
    Use use;
    use.flags = kDescriptor;
    int flags = ::fcntl(fd, F_GETFL);
    std::string link = link_of("/proc/self/fd/" + std::to_string(fd));
    struct stat there;
    bool named =
        ::stat(link.c_str(), &there) == 0 && there.st_dev == file.st_dev && there.st_ino == file.st_ino;
    if (S_ISFIFO(file.st_mode)) {
        use.key = key_of(named ? Kind::fifo : Kind::pipe, file);
        if ((flags & O_ACCMODE) != O_WRONLY) use.flags |= kReads;
    } else if (S_ISREG(file.st_mode) && is_queue(fd)) {
        use.key = key_of(Kind::queue, file);
        if ((flags & O_ACCMODE) != O_WRONLY) use.flags |= kReads;
    } else if (link == "anon_inode:[eventfd]") {
        std::string number = field(read_proc("/proc/self/fdinfo/" + std::to_string(fd)), "eventfd-id");
        if (number.empty()) return;  // before Linux 5.2
        use.key = {Kind::event, this_kernel(), 0, std::strtoull(number.c_str(), nullptr, 10)};
    } else if (S_ISREG(file.st_mode) && named && link.starts_with("/dev/shm/") && on_tmpfs(link)) {
        use.key = key_of(Kind::memory, file);  // saved by its name
        use.size = static_cast<uint64_t>(file.st_size);
    } else if (S_ISREG(file.st_mode) && !named) {
        use.key = key_of(Kind::memory, file);
        if (Fd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC)))
            use.part = {0, static_cast<uint64_t>(file.st_size)};
        use.size = static_cast<uint64_t>(file.st_size);
    } else {
        return;
    }
    uses.push_back(use);
}

}  // namespace

std::string to_text(const Key& key) {
    return fmt::format("{}:{:x}:{:x}:{}", static_cast<uint32_t>(key.kind), key.place, key.device, key.inode);
}

uint64_t this_kernel() {
    static const uint64_t kernel = hash_of(read_proc("/proc/sys/kernel/random/boot_id"));
    return kernel;
}

uint64_t this_ipc() { return this_kernel() ^ hash_of(link_of("/proc/self/ns/ipc")); }

std::string path_of(const Mapping& m, struct stat& file) {
    constexpr std::string_view kDeleted = " (deleted)", kMemory = "/dev/shm/";
    auto is = [&](const std::string& path) {
        return ::stat(path.c_str(), &file) == 0 && file.st_ino == m.inode;
    };
    if (!m.name.starts_with("/") || is_segment(m)) return {};
    if (!m.name.ends_with(kDeleted)) return is(m.name) ? m.name : std::string();
    if (!m.name.starts_with(kMemory)) return {};
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(kMemory, ignored))
        if (is(entry.path().string()) && file.st_dev == makedev(m.device_major, m.device_minor))
            return entry.path().string();
    return {};
}

bool is_segment(const Mapping& mapping) {
    return mapping.shared && mapping.name.starts_with("/SYSV") && mapping.name.ends_with(" (deleted)");
}

Key key_of(const Mapping& mapping, const struct stat* file) {
    if (is_segment(mapping)) return {Kind::segment, this_ipc(), 0, mapping.inode};
    if (file) return key_of(Kind::memory, *file);
    return {Kind::memory, this_kernel(), makedev(mapping.device_major, mapping.device_minor), mapping.inode};
}

Key key_of(Kind kind, const struct stat& file) { return {kind, this_kernel(), file.st_dev, file.st_ino}; }

uint64_t number_of(const Key& key) {
    uint64_t device = (uint64_t{major(key.device)} << 52) ^ (uint64_t{minor(key.device)} << 40);
    return device ^ key.inode ^ (uint64_t{static_cast<uint32_t>(key.kind) - 1} << 61);
}

bool on_tmpfs(const std::string& path) {
    struct statfs s;
    return ::statfs(path.c_str(), &s) == 0 && s.f_type == TMPFS_MAGIC;
}

bool put_back(const std::string& path, const struct stat& file) {
    if (!S_ISREG(file.st_mode)) return false;
    constexpr off_t kLargest = 1 << 30;
    // File systems of linux/magic.h; XFS and ZFS are not in there.
    constexpr unsigned long kXfs = 0x58465342, kZfs = 0x2fc12fc1, kF2fs = 0xf2f52010;
    struct statfs s;
    if (::statfs(path.c_str(), &s) != 0) return false;
    auto type = static_cast<unsigned long>(s.f_type);
    bool local = type == EXT4_SUPER_MAGIC || type == kXfs || type == BTRFS_SUPER_MAGIC ||
                 type == OVERLAYFS_SUPER_MAGIC || type == kF2fs || type == kZfs;
    return type == TMPFS_MAGIC || (local && file.st_size <= kLargest);
}

bool others_may_make(const std::string& path) {
    struct stat directory;
    return ::stat(path.substr(0, std::max<size_t>(1, path.rfind('/'))).c_str(), &directory) != 0 ||
           (directory.st_mode & S_IWOTH) != 0;
}

bool is_queue(int descriptor) {
    struct statfs s;
    return ::fstatfs(descriptor, &s) == 0 && s.f_type == kQueues;
}

std::vector<Use> find_uses(int limit) {
    std::vector<Use> uses;
    std::vector<Range> lower;
    for (const Region& r : region_table().fixed())
        if (r.owner == Owner::lower && upper_range(r.range)) lower.push_back(r.range);
    std::vector<Mapping> maps = read_maps();
    auto ours = [&](const Mapping& m) {
        return m.shared && upper_range(m.range) &&
               std::none_of(lower.begin(), lower.end(), [&](Range r) { return r.contains(m.range); });
    };
    if (std::any_of(maps.begin(), maps.end(), ours)) {
        add_memory_flags(maps);
        for (const Mapping& m : maps)
            if (ours(m)) add_mapping(m, uses);
    }
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
        int fd = std::atoi(entry.path().filename().c_str());
        if (fd < limit) add_descriptor(fd, uses);
    }
    std::set<int> not_ours;
    for (const Mapping& m : maps)
        if (is_segment(m) && !ours(m)) not_ours.insert(static_cast<int>(m.inode));
    for (const Use& use : used_system_v(not_ours)) uses.push_back(use);
    return uses;
}

}  // namespace fermata::split::shared
