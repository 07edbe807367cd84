// A process that its rank has left, and that stays as the rank's copy: what it has open becomes its own, so
// that nothing it does is seen, until it has the rank's place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lower/services.h"
#include "tree/agent_link.h"

namespace fermata::lower {

// Why this process cannot stay, as a line; "" = it can.
std::string why_not_stay();
// Its own files from now on, and a connection of its own to the node daemon.
std::unique_ptr<tree::AgentLink> stay_behind(const tree::AgentConfig& config);
// Why no process on another node can be this one's copy; "" = it can.
std::string why_no_copy_elsewhere();
// Memory for the stream between both, which the node daemon maps, too: a descriptor, until the next one is
// made. Throws fermata::Error.
int make_stream_memory();
// In a process that has come from the rank's image on another node, once its descriptors are back: as
// stay_behind() has it.
void stay_apart();
// Follows a rank now.
bool is_copy();
// A shadow of a file that the copy's program opens, or the file itself, once the copy has the rank's place;
// -1: there is none. Or takes private files (private_files.h): 0, or -1 and the job ends with a line.
int copys_file(tree::AgentLink& link, const FileWish& wish);
// Takes the rank's place: what it writes from now on is the rank's.
void take_place(tree::AgentLink& link);

}  // namespace fermata::lower
