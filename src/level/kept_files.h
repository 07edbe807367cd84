// The copies of the program's files in the directory of a generation, as its images name them
// (docs/formats/files.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/folder.h"
#include "image/image.h"

namespace fermata::level {

// A copy of one of the program's files, in the folder of such beside the image that names it.
struct KeptFile {
    std::string name;
    uint64_t bytes = 0;
    std::string checksum;  // hex; "" = only its length is known
    std::string original;  // the program's file
};
bool is_right(const files::Folder& generation, const KeptFile& file);

// Lists the files that this image names; none: it is not of a process. Nothing of them is read.
std::vector<KeptFile> named_kept_files(const image::Reader& reader);
// Lists them, and throws Error unless each is there, in every byte what the image says of it.
std::vector<KeptFile> kept_files_of(const image::Reader& reader, const files::Folder& generation);

}  // namespace fermata::level
