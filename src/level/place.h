// Where a node keeps generations, in a file system of memory and on its disk, and the directories of jobs in
// there:
//
//     /dev/shm/fermata-memory-UID/JOB/NODE/gen-000001     each 0700
//     /var/tmp/fermata-local-UID/JOB/NODE/gen-000001
//
// NODE is the node's name: tests give several nodes to one machine. FERMATA_MEMORY_DIR instead of /dev/shm,
// FERMATA_LOCAL_DIR (--local-dir) instead of /var/tmp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/generation.h"
#include "base/medium.h"
#include "files/folder.h"

namespace fermata::level {

// The file systems themselves.
std::string base_directory(Medium medium);
// A directory of this user's in there, each part below the one before; what is missing is made. Everybody may
// put names into such a file system: no link is followed. Throws Error when one of them is not this user's
// alone.
files::Folder own_directory(Medium medium, std::initializer_list<std::string> parts);
// The directory of all jobs of this user.
std::string user_directory(Medium medium);
// Finds it; none when there is none, or somebody else has taken its name.
std::optional<files::Folder> find_user_directory(Medium medium);
// The directory of one job on one node.
std::string job_directory(const NodePlace& place, uint64_t job);
// Makes it, as own_directory() does.
files::Folder make_job_directory(const NodePlace& place, uint64_t job);

// The directories of a job on this machine, memory first; by node. Those that are not this user's are left
// out.
struct NodeFolder {
    NodePlace place;
    files::Folder folder;
};
std::vector<NodeFolder> nodes_here(uint64_t job);
bool is_here(const NodePlace& place, uint64_t job);

// Lists those directories of a generation in there.
std::vector<NodeFolder> find_here(uint64_t job, Generation generation);

// Bytes that may still be put there, with a reserve for everybody else; of memory by the machine, the control
// group of this process and the file system, of a disk by the file system.
uint64_t room_in(Medium medium, const files::Folder& folder);
uint64_t room_in_memory(const files::Folder& folder);
// Memory of a process that is not in files: the most that its image can be of.
uint64_t memory_of_process(int pid);

}  // namespace fermata::level
