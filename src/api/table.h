// Table says what one rank's image of a program's own state holds: the blob `application`
// (docs/formats/application.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/state.h"

namespace fermata::api {

inline constexpr const char* kBlob = "application";

// Where a part lies in the image.
struct SavedPart {
    Grid grid;
    uint64_t address = 0;  // a multiple of the page size
    uint64_t bytes = 0;
};

struct SavedEntry : Shape {
    std::vector<SavedPart> parts;  // none: another rank has saved it (global)
};

struct Table {
    int64_t step = 0;
    std::map<std::string, SavedEntry> entries;

    std::vector<std::byte> encoded() const;
    // Bytes of somebody else's: throws Error (ExitCode::damaged) with `where` for anything that encoded()
    // would not write.
    static Table decoded(const void* bytes, size_t size, const std::string& where);
};

// "array double[64][96]", for people.
std::string text_of(const Shape& shape);

// Sums up, as one number, everything in which all ranks of a job must agree.
uint64_t fingerprint(const State& state);

// Why what was saved cannot be restored into what is protected; "" = it can, as far as names, types and
// shapes tell. `same_ranks`: as many ranks as saved it.
std::string why_no_match(const State& state, const Table& saved, bool same_ranks);

}  // namespace fermata::api
