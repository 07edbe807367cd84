// Contents is what one member of a group has of a generation: which files, one after the other as its data,
// and a checksum of each piece of that (docs/formats/parity.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/generation.h"
#include "files/folder.h"
#include "image/checksum.h"

namespace fermata::erasure {

// The unit that is compared, encoded and rebuilt; chunks are whole numbers of pieces.
inline constexpr uint64_t kPiece = 1 << 20;
// The prefix of names of the program's files in data: they lie in a directory of their own.
inline constexpr const char* kKeptPrefix = "files/";

struct File {
    std::string name;  // in the directory of the generation
    uint64_t bytes = 0;
    bool operator==(const File&) const = default;
};

// Part of a member's data, as part of one of its files.
struct Span {
    size_t file = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    bool operator==(const Span&) const = default;
};

struct Contents {
    uint64_t job = 0;
    Generation generation;
    std::string host;
    std::vector<File> files;  // names ascend
    std::vector<image::Checksum> pieces;

    uint64_t bytes() const;
    // Where a file begins in the data.
    uint64_t begin_of(size_t file) const;
    // Size of `piece`; the last one is short.
    uint64_t bytes_of_piece(uint64_t piece) const;
    // Finds the parts of files in this part of the data, which has to be inside of it.
    std::vector<Span> spans(uint64_t begin, uint64_t bytes) const;

    std::vector<std::byte> to_bytes() const;
    // Throws Error with `path`: damaged, another version, or names of files that are none of Fermata's.
    static Contents parse(const std::vector<std::byte>& bytes, const std::string& path);
    bool operator==(const Contents&) const = default;
};

// Reads what this node has of a generation, and is `wanted` by its name. Throws Error.
using Wanted = std::function<bool(const std::string& name)>;
Contents contents_of(const files::Folder& generation_folder, uint64_t job, Generation generation,
                     const std::string& host, const Wanted& wanted = {});
// Something of this name and length is in the directory of the generation.
bool is_there(const files::Folder& generation_folder, const File& file);

// Is this one that contents may name: an image, text, or one of the program's files?
bool is_covered_name(const std::string& name);
// Where it lies, below the directory of the generation, and its name there; for files of parity, too.
files::Folder folder_of(const files::Folder& generation_folder, const std::string& name);
std::string name_in_folder(const std::string& name);

}  // namespace fermata::erasure
