// SecondLife is what a rank's process hands over to the child that goes on in its place with another lower
// half; continue_in_child() is that child's main().
#pragma once

#include <cstdint>
#include <string>

#include "lower/image_parts.h"
#include "split/partition/partition.h"

namespace fermata::lower {

struct SecondLife {
    uint32_t epoch = 0;  // of the renewal
    Anchors anchors{};
    std::string program;        // path
    bool many_threads = false;  // ThreadNeed
    std::string memory;         // the program's table (split/pages/table.h)
    split::LayoutNotes layout;
    std::string process_state, process_notes;  // split/process/child.h
    int speaks_through = -1;                   // socket to the process that waits
    int link = -1;                             // the rank's own to its node daemon, for later
    std::string orders;                        // of the exchange of message logs; empty: there was none

    std::string to_text() const;
    static SecondLife from_text(const std::string& text);  // throws Error
};

// Starts MPI, takes the program over and continues it; says to the process that waits why it cannot.
[[noreturn]] void continue_in_child(const SecondLife& life);

}  // namespace fermata::lower
