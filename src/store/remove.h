// This header removes directories of generations: only those that Fermata made, as their marker says, and
// that hold nothing but what Fermata writes. Anything else in one (a person's notes, a link) keeps the whole
// directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "files/folder.h"

namespace fermata::store {

// Before the name of a file of a generation that is on its way here from another node (src/transfer).
inline constexpr const char* kOnItsWay = ".coming-";

// The marker of a generation's directory (docs/formats/manifest.md).
struct Marker {
    uint64_t job = 0;
    uint32_t generation = 0;
    bool operator==(const Marker&) const = default;
};
void write_marker(const files::Folder& generation, const Marker& marker);
// In place of what is there.
void mend_marker(const files::Folder& generation, const Marker& marker);
// Gives none when there is no marker, or it is not one. Never throws for what is in the file.
std::optional<Marker> read_marker(const files::Folder& generation);

// Images, and what else belongs to them; manifest and marker stay.
void remove_images(const files::Folder& generation);

// Removes the directory `name` in `parent` if it is `folder`, belongs to this user and holds nothing but what
// Fermata writes. The manifest goes first: what is left of a half-removed generation is not one. False, with
// everything as it was, when it may not or cannot be begun.
bool remove_generation(const files::Folder& parent, const std::string& name,
                       const files::Folder& folder) noexcept;

}  // namespace fermata::store
