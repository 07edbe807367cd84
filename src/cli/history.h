// This header reads the journal of a checkpoint directory for commands that count with it, and writes their
// pages and pictures.
#pragma once

#include <string>
#include <vector>

#include "journal/history.h"

namespace fermata::cli {

inline constexpr const char* kCheckpointDirectory = "fermata-ckpt";

// The job of this name or number in the journal there; "": the one with the newest event. Throws Error when
// there is none.
journal::History history_in(const std::string& directory, const std::string& job);

// Seconds from the end of a checkpoint to the beginning of the next one in the same life.
std::vector<double> intervals_of(const journal::History& job);
double median(std::vector<double> all);

// Puts this text under the name, whole or not at all.
void write_page(const std::string& path, const std::string& text);

}  // namespace fermata::cli
