// Spool keeps bytes in the order in which they came: the newest in memory, and what is beyond a bound in a
// file without a name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace fermata::noded {

class Spool {
  public:
    explicit Spool(uint64_t in_memory = uint64_t{64} << 20) : in_memory_(in_memory) {}

    void append(std::string_view bytes);
    uint64_t size() const { return filed_ - begin_ + newest_.size(); }
    // Up to `size` bytes from `at` on, of which the oldest is 0. Throws fermata::Error.
    std::string read(uint64_t at, size_t size) const;
    void drop_oldest(uint64_t bytes);
    void clear() { *this = Spool(in_memory_); }
    // Bytes that are not in memory.
    uint64_t in_file() const { return filed_ - begin_; }

  private:
    void file_newest();

    uint64_t in_memory_;
    Fd file_;
    bool no_file_ = false;            // there is no room for one: all stays in memory
    uint64_t begin_ = 0, filed_ = 0;  // of the file
    std::string newest_;              // behind it
};

}  // namespace fermata::noded
