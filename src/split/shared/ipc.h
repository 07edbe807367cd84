// Parts that System V objects of all kinds (segments.h, system_v.h) have in common.
#pragma once

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <nlohmann/json.hpp>

namespace fermata::split::shared {

#ifndef SHM_DEST
inline constexpr int SHM_DEST = 01000;  // removed, and there until the last one detaches it
#endif

// False when there is none of that number.
bool status_of(int id, shmid_ds& status) noexcept;
bool status_of(int id, semid_ds& status) noexcept;
bool status_of(int id, msqid_ds& status) noexcept;

// Number, key, permissions, and the running kernel that they are of.
nlohmann::json describe_ipc(int id, const ipc_perm& permissions);
// This user's, with the key of the image?
bool is_ours(const ipc_perm& there, const nlohmann::json& saved);

// Asks the kernel for this number for the next object of a kind ("shm", "sem", "msg"): root only. Says
// whether it took it.
bool ask_for_number(const char* kind, int id) noexcept;

}  // namespace fermata::split::shared
