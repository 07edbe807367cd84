// Staging is the copy of a rank's state that is written while the program goes on. Its memory is kept from
// save to save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/state.h"
#include "api/table.h"

namespace fermata::api {

// Anonymous memory in whole pages; grows, and gives back what it is at its end.
class PageBuffer {
  public:
    PageBuffer() = default;
    PageBuffer(const PageBuffer&) = delete;
    PageBuffer& operator=(const PageBuffer&) = delete;
    ~PageBuffer();
    // Makes it at least `bytes` long; content is lost when it has to grow. Throws Fault (FERMATA_STORAGE).
    void reserve(uint64_t bytes);
    char* data() const { return data_; }

  private:
    char* data_ = nullptr;
    uint64_t size_ = 0;
};

class Staging {
  public:
    // Copies everything, or leaves the whole pages where they are (`borrow`: nothing changes before they are
    // written). `global`: this rank saves what all have in common. Throws Fault.
    void take(const State& state, int64_t step, bool global, bool borrow);

    const Table& table() const { return table_; }
    // Memory at the address of a part, in whole pages.
    struct Piece {
        uint64_t address;
        const char* data;
        uint64_t length;
    };
    const std::vector<Piece>& pieces() const { return pieces_; }
    uint64_t bytes() const;

  private:
    Table table_;
    PageBuffer memory_;
    std::vector<Piece> pieces_;
};

}  // namespace fermata::api
