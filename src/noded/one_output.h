// OneOutput makes one stream of what a rank and its copy write: each byte goes on its way once, whoever wrote
// it first. What both have written is compared: copies that write different things have parted, and neither
// may be taken for the rank.
#pragma once

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
    bool parted() const { return parted_; }

  private:
    bool copied_ = false;
    bool parted_ = false;
    Spool said_;      // by the rank since the copy was made
    Spool expected_;  // said by a former one of both, and not again yet
};

}  // namespace fermata::noded
