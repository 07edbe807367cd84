// OneOutput makes one stream of what a rank and its copy write: each byte goes on its way once, whoever wrote
// it first. What both have written is compared: copies that write different things have parted, and neither
// may be taken for the rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "noded/spool.h"

namespace fermata::noded {

class OneOutput {
  public:
    // The rank stands: its copy has written all that it has, and writes what it writes from now on.
    void copy_is_made();
    // ... and nobody compares any more.
    void copy_is_gone();
    // The rank wrote this; the rest of it that is new.
    std::string_view wrote(std::string_view bytes);
    // The copy is the rank from now on; `copys`: what it has written since it was made. What of it is new.
    std::string copy_goes_on(const std::string& copys);
    // The same of a copy whose rank was on another node: `written`: so many bytes has it written since the
    // copy was made that are on their way, and nobody here knows which.
    std::string copy_goes_on_after(uint64_t written, const std::string& copys);
    bool parted() const { return parted_; }
    // Counts what the rank has written since it began, or since its process was made as a copy on this node.
    uint64_t written() const { return written_; }

  private:
    std::string_view without_unseen(std::string_view bytes);
    bool copied_ = false;
    bool parted_ = false;
    uint64_t written_ = 0, at_copy_ = 0;  // at_copy_: when the copy was made
    uint64_t unseen_ = 0;                 // bytes as in expected_, behind those
    Spool said_;                          // by the rank since the copy was made
    Spool expected_;                      // said by a former one of both, and not again yet
};

}  // namespace fermata::noded
