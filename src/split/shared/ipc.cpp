#include "split/shared/ipc.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "split/shared/objects.h"

namespace fermata::split::shared {

bool status_of(int id, shmid_ds& status) noexcept { return ::shmctl(id, IPC_STAT, &status) == 0; }
bool status_of(int id, semid_ds& status) noexcept {
    union {
        int value;
        semid_ds* status;
    } argument{};
    argument.status = &status;
    return ::semctl(id, 0, IPC_STAT, argument) == 0;
}
bool status_of(int id, msqid_ds& status) noexcept { return ::msgctl(id, IPC_STAT, &status) == 0; }

nlohmann::json describe_ipc(int id, const ipc_perm& permissions) {
    return {{"id", id},
            {"ipc_key", permissions.__key},
            {"mode", permissions.mode & 0777},
            {"kernel", this_kernel()}};
}

bool is_ours(const ipc_perm& there, const nlohmann::json& saved) {
    return there.cuid == ::geteuid() && there.__key == saved.at("ipc_key").get<key_t>();
}

bool ask_for_number(const char* kind, int id) noexcept {
    char path[64], text[16];
    std::snprintf(path, sizeof path, "/proc/sys/kernel/%s_next_id", kind);
    int size = std::snprintf(text, sizeof text, "%d", id);
    int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool done = ::write(fd, text, static_cast<size_t>(size)) == size;
    ::close(fd);
    return done;
}

}  // namespace fermata::split::shared
