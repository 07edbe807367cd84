// OwnWords carries between the tree and a program that saves its own state (libfermata) what they say to each
// other; in between lies split/own_state.h.
#pragma once

#include <cstdint>
#include <optional>

#include "split/own_state.h"
#include "wire/message.h"

namespace fermata::lower {

class OwnWords {
  public:
    // The program's news since the last time; `words` null: the program has no front yet.
    std::optional<wire::OwnState> news(const split::OwnState* words);
    // Hands a wish of the job's to the program.
    static void ask(split::OwnState* words, const wire::AskProgram& wish);
    // The program stands still and is captured: what it saves from now on is newer than that checkpoint.
    static void captured(split::OwnState* words, uint32_t epoch);

  private:
    uint32_t said_ = 0, saves_ = 0, failures_ = 0;
};

}  // namespace fermata::lower
