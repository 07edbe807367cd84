#include "split/shared/segments.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "split/address/raw.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_segments.h"
#include "split/shared/ipc.h"
#include "split/shared/objects.h"

namespace fermata::split::shared {
namespace {

using nlohmann::json;

// The same one, or the one that an earlier restart of this job has made.
bool same_segment(const shmid_ds& there, const json& saved) {
    bool this_boot = saved.at("kernel").get<uint64_t>() == this_kernel();
    return is_ours(there.shm_perm, saved) && there.shm_segsz == saved.at("size").get<uint64_t>() &&
           !(there.shm_perm.mode & SHM_DEST) && (this_boot || there.shm_nattch == 0);
}

}  // namespace

json describe_segment(int id, std::vector<std::string>& warnings) {
    shmid_ds info{};
    if (!status_of(id, info))
        fail("System V segment {} is attached, but the kernel says nothing of it: {}", id,
             std::strerror(errno));
    bool removed = (info.shm_perm.mode & SHM_DEST) != 0;
    if (!removed && ::geteuid() != 0)
        warnings.push_back(fmt::format(
            "System V segment {} keeps its number at a restart only while it exists on this node, "
            "or as root: shmat and shmctl by that number fail otherwise (its memory comes back)",
            id));
    json one = describe_ipc(id, info.shm_perm);
    if (removed) one["ipc_key"] = IPC_PRIVATE;
    one["size"] = info.shm_segsz;
    one["removed"] = removed;
    return one;
}

Segment make_segment(const json& saved, std::vector<std::string>& warnings) {
    int id = saved.at("id").get<int>();
    auto key = saved.at("ipc_key").get<key_t>();
    auto size = saved.at("size").get<size_t>();
    bool removed = saved.at("removed").get<bool>();
    int mode = saved.at("mode").get<int>();
    shmid_ds there{};
    if (!removed && status_of(id, there) && same_segment(there, saved)) return attach_segment(id);
    if (!removed && key != IPC_PRIVATE) {
        int other = ::shmget(key, 0, 0);
        if (other >= 0)
            fail(
                "System V segment {} (key {:#x}) is on this node, but it is another one than the program's "
                "{}: remove it (ipcrm -m {}) and restart again",
                other, static_cast<unsigned>(key), id, other);
    }
    // A number in use makes the kernel refuse.
    bool asked = ask_for_number("shm", id);
    int made = ::shmget(key, size, IPC_CREAT | IPC_EXCL | (mode | 0600));
    if (made < 0 && asked) {
        ask_for_number("shm", -1);
        made = ::shmget(key, size, IPC_CREAT | IPC_EXCL | (mode | 0600));
    }
    if (made < 0)
        fail("cannot make System V segment {} of {} KiB again: {}", id, size >> 10, std::strerror(errno));
    Segment segment{-1, nullptr};
    try {
        segment = attach_segment(made);
    } catch (...) {
        ::shmctl(made, IPC_RMID, nullptr);
        throw;
    }
    // Linux lets others attach to it by its number as long as somebody is attached.
    if (removed || made != id) ::shmctl(made, IPC_RMID, nullptr);
    if (!removed && made != id)
        warnings.push_back(
            fmt::format("System V segment {} has another number now, and goes with the job: its memory is "
                        "back, but shmat and shmctl by that number fail (only root can ask for a number)",
                        id));
    return segment;
}

Segment attach_segment(int id) {
    long at = lower_shmat(id, nullptr, 0);
    if (failed(at))
        fail("cannot attach System V segment {}, which another rank has made again: {}", id,
             std::strerror(static_cast<int>(-at)));
    give_segment_to_program(id);
    return {id, reinterpret_cast<void*>(at)};
}

void detach_segment(const Segment& segment) noexcept {
    if (segment.at) lower_shmdt(segment.at);
}

}  // namespace fermata::split::shared
