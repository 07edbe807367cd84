// Standard input that is a file: rank 0 opens it itself.
//
// Launchers hand standard input through pipes and buffers that no image can hold: after a restart a program
// that reads its input bit by bit (`lmp < in.script`) would find the end of it, and end early, with success.
// As an open file it is saved with its offset like any other.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace fermata::tree {

struct InputFile {
    std::string path;  // absolute
    uint64_t inode = 0;
    off_t offset = 0;  // bytes, where reading begins

    // The file behind descriptor `fd`, if it is one that others can open by name.
    static std::optional<InputFile> behind(int fd);

    // One word for an environment variable, and back (nullopt: not such a word).
    std::string encoded() const;
    static std::optional<InputFile> decoded(const std::string& word);

    // Makes it this process's standard input. Throws Error when it is not the same file here.
    void become_standard_input() const;
};

}  // namespace fermata::tree
