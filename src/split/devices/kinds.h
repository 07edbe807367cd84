// Kinds of devices whose memory a program may use: adapters, accelerators. A kind says what becomes of an
// open device and of a mapping of it at a checkpoint, and how its memory is saved, where that can be. Every
// kind that there is refuses.
//
// A kind that saves brings what its device holds into ordinary memory of the program (capture), so that the
// image has it, and back (restore): in the process that goes on after a checkpoint, and in the one that a
// restart has made. All threads of the program stand meanwhile.
#pragma once

#include <cstdint>
#include <string>

namespace fermata::split::devices {

struct Kind {
    const char* name;
    bool (*owns)(const std::string& path);  // a file below /dev
    // Return "" or why a checkpoint is refused, in words that follow "the program has …" or "descriptor N is
    // …".
    std::string (*refuse_open)(const std::string& path);
    std::string (*refuse_mapped)(const std::string& path, uint64_t address);
    // Null where nothing is saved. Throw fermata::Error.
    void (*capture)();
    void (*restore)();
};

// Returns the kind that owns this file; the last one owns all.
const Kind& kind_of(const std::string& path);

// Brings memory of all devices into the program's, and back. Throw fermata::Error.
void capture_all();
void restore_all();

}  // namespace fermata::split::devices
