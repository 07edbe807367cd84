// Files for the part of a message log that its rank has no memory for. Each is written once, from front to
// back, then mapped and closed: so children, copies and images of the process have it as they have its
// memory, without a descriptor, and in an image it is content.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/log_use.h"

namespace fermata::front::logged {

class SpillFiles {
  public:
    // Makes an empty file that has no name any more. A descriptor that the program does not see; below 0: an
    // error of the kernel's.
    using Make = int (*)() noexcept;

    static uint64_t digest_of(const uint8_t* bytes, size_t size) noexcept;
    // Puts the bytes behind those before: 0 and their place, or an error of the kernel's (below 0).
    long append(Make make, const uint8_t* bytes, size_t size, uint64_t* place) noexcept;
    // These bytes are needed no more.
    void forget(const replay::Spilled& what) noexcept;
    // False: they are not there, or others are.
    bool read(const replay::Spilled& what, replay::Bytes* bytes) noexcept;

    // Maps and closes the file that is open; false: there is no room for that.
    bool close() noexcept;
    // After a restart: what were files is memory now, and becomes files again. 0, or an error, with which the
    // rest stays memory.
    long leave_memory(Make make) noexcept;
    size_t files() const noexcept { return files_.size(); }
    bool is_open() const noexcept { return !files_.empty() && files_.back().descriptor >= 0; }

  private:
    struct File {
        uint64_t number;
        uint64_t size = 0, needed = 0;
        int descriptor = -1;  // until it is mapped
        uint8_t* at = nullptr;
    };
    File* find(uint64_t place) noexcept;
    void drop(File* file) noexcept;

    replay::Vec<File> files_;  // ascending numbers; only the last one is open
    uint64_t made_ = 0;
};

}  // namespace fermata::front::logged
