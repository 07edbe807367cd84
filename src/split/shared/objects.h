// Objects that ranks of one node may share by other means than MPI: memory (System V, POSIX, files), pipes,
// queues.
//
// At a checkpoint every rank lists its uses of such objects (find_uses), the lists go round, and the roster
// (roster.h) tells who else has an object and which part of its content lower ranks save already. The image
// describes the objects (describe.h); at a restart their ranks meet and one of them makes each again
// (registry.h).
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"
#include "split/address/maps.h"

namespace fermata::split::shared {

enum class Kind : uint32_t {
    memory = 1,      // tmpfs, memfd, shared anonymous memory, removed files: by inode
    segment = 2,     // System V shared memory: by identifier
    pipe = 3,        // without a name
    fifo = 4,        // with a name
    queue = 5,       // POSIX message queue
    semaphores = 6,  // System V
    messages = 7,    // System V
    event = 8,       // eventfd: by the kernel's number of it
};

// One object of one running kernel.
struct Key {
    Kind kind = Kind::memory;
    uint64_t place = 0;  // kernel, and name space where it matters
    uint64_t device = 0;
    uint64_t inode = 0;
    auto operator<=>(const Key&) const = default;
};
std::string to_text(const Key& key);

// One rank's use of an object; sent as it is between ranks of one build.
struct Use {
    Key key;
    uint32_t flags = 0;
    uint32_t unused = 0;
    Range part;         // bytes that this rank can save, from the object's beginning
    uint64_t size = 0;  // of the object, as far as this rank knows
};
enum UseFlags : uint32_t {
    kMapped = 1,
    kWritable = 2,    // a mapping that may be written to
    kDescriptor = 4,  // open
    kReads = 8,       // an end of a pipe from which can be read
};

uint64_t this_kernel();  // another after a reboot
uint64_t this_ipc();     // the name space of System V objects, too

// The key of a shared mapping of the upper half; `file`: what stat() says of its name, null when that is not
// it.
Key key_of(const Mapping& mapping, const struct stat* file);
Key key_of(Kind kind, const struct stat& file);
// For the memory table.
uint64_t number_of(const Key& key);

// The name that the mapped file has now, and its status; empty when it has none. (A file of sem_open lost the
// name that it had when it was opened: it was made under another one.)
std::string path_of(const Mapping& mapping, struct stat& file);
bool is_segment(const Mapping& mapping);
bool on_tmpfs(const std::string& path);
// May a named file that is mapped for writing be put back as it was? Not when it is large, or on a file
// system that other nodes write to: they may see other pages than this one.
bool put_back(const std::string& path, const struct stat& file);
// May others put a file there (/tmp, /dev/shm)? Then its owner has to be asked for.
bool others_may_make(const std::string& path);
bool is_queue(int descriptor);

// All of the upper half; `limit`: its descriptors are below. The program stands. Throws fermata::Error.
std::vector<Use> find_uses(int limit);

}  // namespace fermata::split::shared
