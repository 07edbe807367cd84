// Outlet writes what ranks say to Fermata's own standard output or error, and never waits for who reads it.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::launch::own {

class Outlet {
  public:
    explicit Outlet(int descriptor);

    void add(uint32_t node, std::string text);
    // One entry.
    void add_to(std::vector<pollfd>& fds) const;
    void serve(short revents);

    struct Written {
        uint32_t node = 0;
        uint64_t bytes = 0;
    };
    // Since it was asked the last time.
    std::vector<Written> written() { return std::exchange(written_, {}); }
    bool empty() const { return waiting_.empty(); }
    void drop();

  private:
    enum class Way { file, socket, stream, pieces };
    struct Piece {
        uint32_t node = 0;
        std::string text;
        size_t done = 0;
    };
    bool write_some();
    void note(uint32_t node, uint64_t bytes);

    Fd own_;          // opened again, so that a write never waits
    int descriptor_;  // where is written to
    Way way_;
    bool broken_ = false;  // nobody reads: what comes is dropped
    std::deque<Piece> waiting_;
    std::vector<Written> written_;
};

}  // namespace fermata::launch::own
