#include "level/place.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/proc_text.h"
#include "store/remove.h"

namespace fermata::level {
namespace {

// Left for everybody else, of the node's memory or of the file system: a twentieth, and not less than this.
constexpr uint64_t kLeastReserve = 128u << 20;
constexpr uint64_t kReserveParts = 20;

uint64_t without_reserve(uint64_t room, uint64_t all) {
    const uint64_t reserve = std::max(all / kReserveParts, kLeastReserve);
    return room > reserve ? room - reserve : 0;
}

struct FileSystem {
    uint64_t all, free;  // bytes
};
FileSystem file_system_of(const files::Folder& folder) {
    struct statvfs system {};
    if (::fstatvfs(folder.descriptor(), &system) != 0)
        fail_errno("cannot stat the file system of {}", folder.path());
    return {static_cast<uint64_t>(system.f_blocks) * system.f_frsize,
            static_cast<uint64_t>(system.f_bavail) * system.f_frsize};
}

const char* variable_of(Medium medium) {
    return medium == Medium::local ? "FERMATA_LOCAL_DIR" : "FERMATA_MEMORY_DIR";
}

std::string user_name(Medium medium) {
    return fmt::format("fermata-{}-{}", medium == Medium::local ? "local" : "memory", ::geteuid());
}
std::string job_name(uint64_t job) { return fmt::format("{:016x}", job); }

// Gives bytes, of a line "MemAvailable:   123 kB"; 0 where there is none.
uint64_t bytes_of(const std::string& text, const std::string& key) {
    return number_at_start(field(text, key)).value_or(0) << 10;
}

}  // namespace

std::string base_directory(Medium medium) {
    const char* given = std::getenv(variable_of(medium));
    if (given && *given) return given;
    return medium == Medium::local ? "/var/tmp" : "/dev/shm";
}

std::string user_directory(Medium medium) { return base_directory(medium) + "/" + user_name(medium); }

std::string job_directory(const NodePlace& place, uint64_t job) {
    return fmt::format("{}/{}/{}", user_directory(place.medium), job_name(job), place.node);
}

files::Folder own_directory(Medium medium, std::initializer_list<std::string> parts) {
    files::make_path(base_directory(medium));
    files::Folder folder = files::Folder::at(base_directory(medium));
    for (const std::string& part : parts) {
        auto own = folder.own(part);
        if (!own)
            fail("{} is not a directory of this user's alone: remove it, or set {}", folder.path_of(part),
                 variable_of(medium));
        folder = std::move(*own);
    }
    return folder;
}

std::optional<files::Folder> find_user_directory(Medium medium) {
    auto base = files::Folder::find_at(base_directory(medium));
    auto user = base ? base->find(user_name(medium)) : std::nullopt;
    if (!user || user->owner() != ::geteuid()) return {};
    return user;
}

files::Folder make_job_directory(const NodePlace& place, uint64_t job) {
    return own_directory(place.medium, {user_name(place.medium), job_name(job), place.node});
}

bool is_here(const NodePlace& place, uint64_t job) {
    auto all = find_user_directory(place.medium);
    auto of_job = all ? all->find(job_name(job)) : std::nullopt;
    return of_job && of_job->find(place.node);
}

std::vector<NodeFolder> nodes_here(uint64_t job) {
    std::vector<NodeFolder> found;
    for (Medium medium : kMediums) try {
            auto all = find_user_directory(medium);
            auto of_job = all ? all->find(job_name(job)) : std::nullopt;
            if (!of_job || of_job->owner() != ::geteuid()) continue;
            for (const std::string& node : of_job->names())
                if (auto here = of_job->find(node); here && here->owner() == ::geteuid())
                    found.push_back({{node, medium}, std::move(*here)});
        } catch (const Error&) {
            // As if it were not there.
        }
    return found;
}

std::vector<NodeFolder> find_here(uint64_t job, Generation generation) {
    std::vector<NodeFolder> found;
    for (const NodeFolder& node : nodes_here(job)) try {
            auto folder = node.folder.find(generation.name());
            if (folder && folder->owner() == ::geteuid() &&
                store::read_marker(*folder) == store::Marker{job, generation.number()})
                found.push_back({node.place, std::move(*folder)});
        } catch (const Error&) {
            // As if it were not there.
        }
    return found;
}

uint64_t room_in_memory(const files::Folder& folder) {
    const std::string machine = read_proc("/proc/meminfo");
    const uint64_t all = bytes_of(machine, "MemTotal");
    const uint64_t room = bytes_of(machine, "MemAvailable");
    // A group may have a small part of a large machine: of that, too, only a part is left for others.
    return std::min(without_reserve(std::min(room, file_system_of(folder).free), all),
                    room_in_groups(kReserveParts));
}

uint64_t room_in(Medium medium, const files::Folder& folder) {
    if (medium == Medium::memory) return room_in_memory(folder);
    const FileSystem system = file_system_of(folder);
    return without_reserve(system.free, system.all);
}

uint64_t memory_of_process(int pid) {
    const std::string status = read_proc(fmt::format("/proc/{}/status", pid));
    uint64_t sum = 0;
    for (const char* part : {"RssAnon", "RssShmem", "VmSwap"}) sum += bytes_of(status, part);
    return sum;
}

}  // namespace fermata::level
