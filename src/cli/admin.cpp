#include "cli/admin.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "files/folder.h"
#include "tree/run_dir.h"

namespace fermata::cli {
namespace {

// "" where there is no such file.
std::string text_of(const std::string& path) {
    try {
        return read_file(path);
    } catch (const Error&) {
        return {};
    }
}

std::optional<uint64_t> number_in(const std::string& path) {
    const std::string text = text_of(path);
    uint64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} ? std::optional(number) : std::nullopt;
}

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : human_size(limit); }

Finding locked_memory() {
    constexpr rlim_t kEnough = rlim_t{1} << 30;
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    const bool adapters = ::access("/sys/class/infiniband", F_OK) == 0;
    const bool good = !adapters || limit.rlim_cur >= kEnough;
    return {
        "locked memory", good, false,
        limit_text(limit.rlim_cur) + (good ? adapters ? "" : " (no RDMA adapter here, which would need more)"
                                           : ": MPI registers memory with the RDMA adapters, and fails or is "
                                             "slow: `* - memlock unlimited` in "
                                             "limits.conf, and LimitMEMLOCK=infinity for slurmd")};
}

Finding most_files() {
    constexpr rlim_t kEnough = 4096;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const bool good = limit.rlim_max >= kEnough;
    return {
        "most files", good, false,
        fmt::format(
            "{}{}", limit.rlim_max,
            good ? ": enough for `fermata run` (one per node and generation) and node daemons (some per rank)"
                 : ": `fermata run` needs one per node and generation, node daemons some per rank: `* hard "
                   "nofile "
                   "65536` in limits.conf, LimitNOFILE for slurmd")};
}

Finding tracing() {
    const auto scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    if (!scope) return {"ptrace", true, false, "not restricted by Yama"};
    const bool good = *scope <= 1;
    return {"ptrace", good, false,
            fmt::format("kernel.yama.ptrace_scope={}{}", *scope,
                        *scope == 0 ? ""
                        : good ? ": checkpoints work; MPI libraries that copy from rank to rank in one step "
                                 "(CMA) take two, as "
                                 "without Fermata, unless it is 0"
                               : ": programs whose threads block all signals cannot be checkpointed by "
                                 "ordinary users, and MPI "
                                 "copies twice between ranks: sysctl kernel.yama.ptrace_scope=1, or 0")};
}

Finding overcommit() {
    const auto mode = number_in("/proc/sys/vm/overcommit_memory");
    const bool good = !mode || *mode != 2;
    return {"overcommit", good, false,
            good ? fmt::format("vm.overcommit_memory={}", mode.value_or(0))
                 : "vm.overcommit_memory=2: a child that writes a checkpoint (forked, --message-log) counts "
                   "as all of its rank's "
                   "memory, and may be refused: 0 or 1"};
}

Finding mappings() {
    constexpr uint64_t kStandard = 65530;
    const auto most = number_in("/proc/sys/vm/max_map_count");
    const bool good = !most || *most >= kStandard;
    return {
        "mappings", good, false,
        good ? fmt::format("vm.max_map_count={}", most.value_or(kStandard))
             : fmt::format(
                   "vm.max_map_count={}: a rank has those of its program and some hundred more: at least {}",
                   *most, kStandard)};
}

// Looks at the control groups above this process, of version 2 or 1, which no other user can change.
Finding memory_of_group() {
    std::istringstream groups(text_of("/proc/self/cgroup"));
    std::optional<uint64_t> least;
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string kinds = line.substr(first + 1, second - first - 1);
        const bool second_version = kinds.empty();
        if (!second_version && ("," + kinds + ",").find(",memory,") == std::string::npos) continue;
        const std::string base = second_version ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        for (std::string group = line.substr(second + 1); !group.empty();) {
            const auto limit =
                number_in(base + group + (second_version ? "/memory.max" : "/memory.limit_in_bytes"));
            if (limit && *limit < (uint64_t{1} << 62)) least = std::min(least.value_or(*limit), *limit);
            group.resize(group == "/" ? 0 : group.rfind('/'));
        }
    }
    return {"memory limit", true, false,
            least ? fmt::format("{} for this process's control group: generations in memory (--levels), "
                                "message logs and pages that "
                                "a program changes while a child writes count, too",
                                human_size(*least))
                  : "none by control groups"};
}

// How file systems are called, and whether more than one machine sees the same files.
struct Kind {
    uint32_t magic;
    const char* name;
    bool shared;
};
constexpr Kind kKinds[] = {{EXT4_SUPER_MAGIC, "ext4", false},
                           {XFS_SUPER_MAGIC, "XFS", false},
                           {BTRFS_SUPER_MAGIC, "Btrfs", false},
                           {F2FS_SUPER_MAGIC, "F2FS", false},
                           {TMPFS_MAGIC, "tmpfs, which is memory", false},
                           {OVERLAYFS_SUPER_MAGIC, "overlayfs", false},
                           {0x2fc12fc1, "ZFS", false},
                           {NFS_SUPER_MAGIC, "NFS", true},
                           {0x0bd00bd0, "Lustre", true},
                           {0x47504653, "GPFS", true},
                           {0x19830326, "BeeGFS", true},
                           {CEPH_SUPER_MAGIC, "CephFS", true},
                           {SMB2_SUPER_MAGIC, "SMB", true},
                           {0x7461636f, "OCFS2", true},
                           {0x01161970, "GFS2", true},
                           {V9FS_MAGIC, "9p", true}};

const Kind* kind_of(const std::string& path, struct statfs& system) {
    if (::statfs(path.c_str(), &system) != 0) return nullptr;
    for (const Kind& kind : kKinds)
        if (static_cast<uint32_t>(system.f_type) == kind.magic) return &kind;
    return nullptr;
}

// The options that the file system around `path` is mounted with.
std::string mounted_with(const std::string& path) {
    std::istringstream mounts(text_of("/proc/self/mounts"));
    std::string longest, options;
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream in(line);
        std::string device, place, type, words;
        in >> device >> place >> type >> words;
        const bool around = path == place || path.starts_with(place == "/" ? place : place + "/");
        if (around && place.size() >= longest.size()) longest = place, options = words;
    }
    return "," + options + ",";
}

std::string existing(const std::string& path) {
    std::string at = files::absolute_path(path);
    while (at != "/" && ::access(at.c_str(), F_OK) != 0) at = files::split_path(at).first;
    return at;
}

Finding checkpoints(const std::string& at) {
    struct statfs system {};
    const Kind* kind = kind_of(at, system);
    const uint64_t all = static_cast<uint64_t>(system.f_blocks) * static_cast<uint64_t>(system.f_bsize);
    const uint64_t free = static_cast<uint64_t>(system.f_bavail) * static_cast<uint64_t>(system.f_bsize);
    const bool memory = kind && kind->magic == TMPFS_MAGIC, room = free > all / 10;
    std::string text = fmt::format("{}: {}, {} of {} free", at, kind ? kind->name : "an unknown file system",
                                   human_size(free), human_size(all));
    if (memory)
        text += ": gone when the machine is: a file system on disks, by --ckpt-dir";
    else if (!room)
        text +=
            ": nearly full: a job needs its memory's size for each generation that it keeps, and one more";
    else if (!kind || !kind->shared)
        text +=
            ": if no other machine sees it, for jobs on this one alone (others: a directory that all nodes "
            "see)";
    return {"checkpoints", !memory && room, false, text};
}

// Files of this process alone, which vanish.
class Probes {
  public:
    explicit Probes(const std::string& at) : folder_(files::Folder::at(at)) {
        for (int i = 0; i < 2; ++i) {
            names_[i] = fmt::format(".fermata-doctor-{}-{}", ::getpid(), i);
            files_[i] = folder_.create(names_[i]);
        }
        const std::string block(4096, 'x');
        write_all(files_[0].get(), block.data(), block.size(), folder_.path_of(names_[0]));
    }
    ~Probes() {
        for (int i = 0; i < 2; ++i)
            if (files_[i]) folder_.remove_file(names_[i]);
    }
    bool shares_blocks() const { return ::ioctl(files_[1].get(), FICLONE, files_[0].get()) == 0; }
    bool reserves() const { return ::fallocate(files_[1].get(), 0, 0, 65536) == 0; }
    bool locks() const { return ::flock(files_[0].get(), LOCK_EX | LOCK_NB) == 0; }
    bool has_nameless() const {
        return static_cast<bool>(
            Fd(::openat(folder_.descriptor(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)));
    }

  private:
    files::Folder folder_;
    std::string names_[2];
    Fd files_[2];
};

void look_closer(const std::string& at, std::vector<Finding>& all) {
    try {
        const Probes probes(at);
        const bool locks = probes.locks();
        const std::string options = mounted_with(at);
        std::string alone;
        for (const char* word : {"localflock", "local_lock=all", "local_lock=flock", "nolock"})
            if (options.find(fmt::format(",{},", word)) != std::string::npos) alone = word;
        all.push_back(
            {"its locks", locks && alone.empty(), false,
             !locks
                 ? "flock fails there: nothing keeps two jobs out of one directory (Lustre: mount with flock)"
             : !alone.empty()
                 ? fmt::format(
                       "mounted with {}: locks hold on this machine only, and nothing keeps a job of another "
                       "node out of a directory: mount without it",
                       alone)
                 : "two jobs cannot use one directory"});
        const bool shares = probes.shares_blocks(), reserves = probes.reserves(),
                   nameless = probes.has_nameless();
        all.push_back(
            {"its features", reserves, false,
             fmt::format(
                 "{}; {}; {}",
                 shares ? "files share blocks: copies of a program's files cost nothing"
                        : "no shared blocks: files of a program up to 64 MiB are copied with a checkpoint",
                 reserves ? "space is reserved before an image is written (fallocate)"
                          : "no fallocate: an image finds out while it is written that space is short",
                 nameless ? "files without a name" : "no files without a name (O_TMPFILE)")});
    } catch (const Error& error) {
        all.push_back({"its features", true, false, fmt::format("not looked at: {}", error.what())});
    }
}

Finding run_directories() {
    const std::string place = tree::place_of_run_bases();
    struct statfs system {};
    const Kind* kind = kind_of(existing(place), system);
    const bool good = !kind || !kind->shared;
    return {"run directories", good, false,
            good ? fmt::format("{}, {}", place, kind ? kind->name : "an unknown file system")
                 : fmt::format("{} is {}: sockets and locks of a node's jobs belong on a file system of its "
                               "own: FERMATA_RUN_DIR names "
                               "another place, the same path on all nodes",
                               place, kind->name)};
}

Finding shared_memory() {
    struct statfs system {};
    const Kind* kind = kind_of("/dev/shm", system);
    const uint64_t all = static_cast<uint64_t>(system.f_blocks) * static_cast<uint64_t>(system.f_bsize);
    const uint64_t memory =
        static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const bool good = kind && all >= memory / 4;
    return {
        "shared memory", good, false,
        fmt::format(
            "/dev/shm holds up to {} of {}{}", human_size(all), human_size(memory),
            good ? ""
                 : ": MPI's messages within a node are there, and generations in memory (--levels): mount -o "
                   "remount,size=50% /dev/shm, a container's --shm-size")};
}

Finding temporary_files() {
    const char* given = std::getenv("TMPDIR");
    const std::string place = given && *given ? given : "/tmp";
    struct statfs system {};
    const Kind* kind = kind_of(place, system);
    const bool there = ::access(place.c_str(), W_OK) == 0;
    std::string text = place;
    if (!there)
        text += " cannot be written to: MPI libraries and message logs keep files there";
    else if (kind && kind->magic == TMPFS_MAGIC)
        text += " is memory: message logs that are too large for memory go to /var/tmp instead";
    else
        text += fmt::format(", {}", kind ? kind->name : "an unknown file system");
    return {"TMPDIR", there, false, text};
}

}  // namespace

std::vector<Finding> limits_of_machine() {
    return {locked_memory(), most_files(), tracing(), overcommit(), mappings(), memory_of_group()};
}

std::vector<Finding> file_systems(const std::string& ckpt_dir) {
    const std::string at = existing(ckpt_dir);
    std::vector<Finding> all = {checkpoints(at)};
    look_closer(at, all);
    all.push_back(run_directories());
    all.push_back(shared_memory());
    all.push_back(temporary_files());
    return all;
}

}  // namespace fermata::cli
