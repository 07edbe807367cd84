// This header reads the journal of a checkpoint directory for commands that count with it, and writes their
// pages and pictures.
#pragma once

#include <string>

#include "journal/history.h"

namespace fermata::cli {

inline constexpr const char* kCheckpointDirectory = "fermata-ckpt";

// The job of this name or number in the journal there; "": the one with the newest event. Throws Error when
// there is none.
journal::History history_in(const std::string& directory, const std::string& job);

// Puts this text under the name, whole or not at all.
void write_page(const std::string& path, const std::string& text);

}  // namespace fermata::cli
