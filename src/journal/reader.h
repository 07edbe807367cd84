// This header reads journals: whatever is cut off, or is none of ours, is passed over and counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/folder.h"
#include "journal/event.h"

namespace fermata::journal {

struct Contents {
    std::vector<Event> events;  // oldest first
    size_t not_ours = 0;        // lines
};
// Never throws for what is in the text. A last line without its end is still being written: not counted.
Contents parse(const std::string& text);
// Both files of a checkpoint directory, as far as they can be read. Throws Error when one is a link, a pipe
// or of an owner who is not believed.
Contents read(const files::Folder& directory);

// Reads on in a journal that somebody writes, also when it is rotated meanwhile.
class Follower {
  public:
    explicit Follower(std::string directory) : directory_(std::move(directory)) {}
    // Reads the events since the last call; at the first call only the newest `most`.
    std::vector<Event> more(size_t most);

  private:
    bool attach();
    const std::string directory_;
    Fd file_;
    uint64_t at_ = 0;
    std::string begun_;  // a line without its end yet
    bool first_ = true;
};

}  // namespace fermata::journal
