// This header parses the words of `--save-options`, once, in the command. Root and ranks get the canonical
// text of the parsed options, so that they cannot read the same words differently.
#pragma once

#include <cstdint>
#include <string>

#include "image/image.h"

namespace fermata::image {

// How changes since the last image are found.
enum class Incremental {
    no,      // every image is a full one
    pages,   // the kernel says which pages were written to
    split,   // the same, and huge pages may be split for it
    hashes,  // memory is compared with the checksums of the last image
};

struct SaveOptions {
    bool forked = false;        // a child writes while the program goes on
    bool trust_memory = false;  // forked, without asking whether memory suffices
    bool refuse_busy = false;   // a request during a checkpoint is refused instead of waiting
    Incremental incremental = Incremental::no;
    unsigned chain = 8;  // generations an image may need, itself included
    WriteOptions write;  // what the words say of it: codec, level, measure, direct, threads, layout
    uint32_t base =
        0;  // never the user's: the newest committed generation, which an image may refer to; 0 = none

    // Blanks and commas separate words; the last of contradicting words counts. Throws Error (exit code 2)
    // that names the word that is wrong and lists the right ones.
    static SaveOptions parse(const std::string& words);
    // Reads the text that to_text() has written. Throws Error.
    static SaveOptions from_text(const std::string& text);
    // Only what differs from the defaults, in the order of the list.
    std::string to_text() const;
};

// For people: "forked, trust-memory, …".
std::string save_option_words();

}  // namespace fermata::image
