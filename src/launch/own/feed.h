// Feed reads Fermata's standard input for rank 0, never further ahead of it than a window.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/terminal_input.h"

namespace fermata::launch::own {

class Feed {
  public:
    // `terminal`: read through it; `nothing`: rank 0 opens its input itself.
    Feed(std::optional<TerminalInput> terminal, bool nothing);

    // Rank 0 is there: what is read may go.
    void begin() { begun_ = true; }
    void taken(uint64_t bytes, bool closed);

    void add_to(std::vector<pollfd>& fds) const;
    struct Piece {
        std::string text;
        bool end = false;
    };
    // Returns what goes to rank 0 now, if anything.
    std::optional<Piece> serve(const std::vector<pollfd>& fds, size_t first);

  private:
    std::optional<TerminalInput> terminal_;
    int descriptor_;  // -1 = its end has been seen
    bool begun_ = false;
    bool end_told_ = false;
    uint64_t ahead_ = 0;  // bytes that rank 0 has not taken
};

}  // namespace fermata::launch::own
