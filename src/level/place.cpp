#include "level/place.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/fd.h"
#include "store/remove.h"

namespace fermata::level {
namespace {

// Left for everybody else on the node: a twentieth, and not less than this.
constexpr uint64_t kLeastReserve = 128u << 20;
constexpr uint64_t kReserveParts = 20;

std::string text_of(const std::string& path) {
    try {
        return read_file(path);
    } catch (const Error&) {
        return {};
    }
}

// "MemAvailable:   123 kB" and the like; "" as name: the first number.
std::optional<uint64_t> number_after(const std::string& text, const std::string& name) {
    size_t at = text.find(name);
    if (at == std::string::npos) return {};
    at = text.find_first_not_of(" \t", at + name.size());
    if (at == std::string::npos) return {};
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc{}) return {};
    return value;
}

// Of all control groups above this process that have a limit.
uint64_t room_in_groups() {
    uint64_t room = UINT64_MAX;
    const std::string own = text_of("/proc/self/cgroup");
    const size_t at = own.find("0::/");
    if (at == std::string::npos) return room;
    std::string group = own.substr(at + 3, own.find('\n', at) - at - 3);
    while (!group.empty()) {
        const std::string directory = "/sys/fs/cgroup" + group;
        auto limit = number_after(text_of(directory + "/memory.max"), "");
        auto used = number_after(text_of(directory + "/memory.current"), "");
        if (limit && used) room = std::min(room, *limit > *used ? *limit - *used : 0);
        group.resize(group == "/" ? 0 : group.rfind('/'));
    }
    return room;
}

}  // namespace

std::string memory_base() {
    const char* given = std::getenv("FERMATA_MEMORY_DIR");
    return given && *given ? given : "/dev/shm";
}

std::string user_directory() { return fmt::format("{}/fermata-memory-{}", memory_base(), ::geteuid()); }

std::string job_directory(uint64_t job, const std::string& node) {
    return fmt::format("{}/{:016x}/{}", user_directory(), job, node);
}

files::Folder make_job_directory(uint64_t job, const std::string& node) {
    const std::string path = job_directory(job, node);
    files::make_path(path);
    // Nobody else may have made the first of them, in a directory that everybody writes to.
    files::Folder user = files::Folder::at(memory_base()).below(files::split_path(user_directory()).second);
    files::Folder folder = user.below(fmt::format("{:016x}", job)).below(node);
    for (const files::Folder& one : {user, folder})
        if (one.owner() != ::geteuid() || (one.mode() & 077) != 0)
            fail("{} is not this user's alone: remove it, or set FERMATA_MEMORY_DIR", one.path());
    return folder;
}

bool is_in_memory(uint64_t job, const std::string& node) {
    return files::Folder::find_at(job_directory(job, node)).has_value();
}

std::vector<NodeFolder> nodes_in_memory(uint64_t job) {
    std::vector<NodeFolder> found;
    try {
        auto all = files::Folder::find_at(user_directory());
        auto of_job = all ? all->find(fmt::format("{:016x}", job)) : std::nullopt;
        if (!of_job || all->owner() != ::geteuid() || of_job->owner() != ::geteuid()) return {};
        for (const std::string& node : of_job->names())
            if (auto here = of_job->find(node); here && here->owner() == ::geteuid())
                found.push_back({node, std::move(*here)});
    } catch (const Error&) {
        // As if it were not there.
    }
    return found;
}

std::vector<files::Folder> find_in_memory(uint64_t job, Generation generation) {
    std::vector<files::Folder> found;
    for (const NodeFolder& node : nodes_in_memory(job)) try {
            auto folder = node.folder.find(generation.name());
            if (folder && folder->owner() == ::geteuid() &&
                store::read_marker(*folder) == store::Marker{job, generation.number()})
                found.push_back(std::move(*folder));
        } catch (const Error&) {
            // As if it were not there.
        }
    return found;
}

uint64_t room_in_memory(const files::Folder& folder) {
    const std::string machine = text_of("/proc/meminfo");
    const uint64_t all = number_after(machine, "MemTotal:").value_or(0) << 10;
    uint64_t room = number_after(machine, "MemAvailable:").value_or(0) << 10;
    room = std::min(room, room_in_groups());
    struct statvfs system {};
    if (::fstatvfs(folder.descriptor(), &system) != 0)
        fail_errno("cannot stat the file system of {}", folder.path());
    room = std::min(room, static_cast<uint64_t>(system.f_bavail) * system.f_frsize);
    const uint64_t reserve = std::max(all / kReserveParts, kLeastReserve);
    return room > reserve ? room - reserve : 0;
}

uint64_t memory_of_process(int pid) {
    const std::string status = text_of(fmt::format("/proc/{}/status", pid));
    uint64_t sum = 0;
    for (const char* part : {"RssAnon:", "RssShmem:", "VmSwap:"})
        sum += number_after(status, part).value_or(0) << 10;
    return sum;
}

}  // namespace fermata::level
