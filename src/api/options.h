// Options are the words of fermata_open(): "keep=3,interval=10m,layout=shared,compress=zstd".
#pragma once

#include <string>

#include "image/save_options.h"

namespace fermata::api {

struct Options {
    // Where copies in memory go: nowhere, this node's memory, and that of another node too.
    enum class Memory { none, node, buddy };
    Memory memory = Memory::none;
    unsigned flush =
        10;             // with memory: every so many saves one goes to the directory; 0 = the last one alone
    unsigned keep = 2;  // generations; 0 = all
    double interval = 0, walltime = 0;  // seconds; 0 = none
    bool signals = false;               // SIGUSR1 and SIGTERM are heard
    std::string key_file;               // encrypts; "" = no
    image::WriteOptions write;
    // Several images lie in one file.
    bool together() const { return write.layout.together(); }
};

// Throws Fault (FERMATA_ARGUMENT) that names the word.
Options parse_options(const std::string& words);

}  // namespace fermata::api
