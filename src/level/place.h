// Where the memory of a node is a file system, and the directories of jobs in there:
//
//     /dev/shm/fermata-memory-UID/JOB/NODE/gen-000001     each 0700
//
// NODE is the node's name: tests give several nodes to one machine. FERMATA_MEMORY_DIR instead of /dev/shm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/generation.h"
#include "files/folder.h"

namespace fermata::level {

std::string memory_base();
// Of all jobs of this user.
std::string user_directory();
// Of one job on one node.
std::string job_directory(uint64_t job, const std::string& node);
// Makes it. Throws Error when others could reach what is in there.
files::Folder make_job_directory(uint64_t job, const std::string& node);

// The directories of a job in the memory of this machine; by node. None that are not this user's.
struct NodeFolder {
    std::string name;  // of the node
    files::Folder folder;
};
std::vector<NodeFolder> nodes_in_memory(uint64_t job);
bool is_in_memory(uint64_t job, const std::string& node);

// The directories in which this machine has something of a generation; by node.
std::vector<files::Folder> find_in_memory(uint64_t job, Generation generation);

// Bytes that may still be put into memory, with a reserve for everybody else; by the machine, the control
// group of this process and the file system.
uint64_t room_in_memory(const files::Folder& folder);
// What a process holds that is not in files: the most that its image can be of.
uint64_t memory_of_process(int pid);

}  // namespace fermata::level
