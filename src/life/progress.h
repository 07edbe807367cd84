// Progress of a checkpoint on the terminal of `fermata run`: one line that is written over and taken away
// again.
#pragma once

#include <string>

#include "journal/event.h"

namespace fermata::life {

// With --verbose, and where somebody sees it.
bool progress_wanted(bool verbose);

class Progress {
  public:
    void show(const journal::Event& event);
    // The line for an event; "" takes the line away.
    static std::string line_of(const journal::Event& event);

  private:
    bool there_ = false;
};

}  // namespace fermata::life
