#include "level/spares.h"

#include "erasure/names.h"
#include "files/move.h"
#include "image/memory_file.h"
#include "image/names.h"
#include "image/spare.h"
#include "level/memory.h"
#include "level/place.h"

namespace fermata::level {
namespace {

bool is_used_again(const std::string& name) { return rank_of_image(name) || name == erasure::kParityFile; }

}  // namespace

void set_aside_images(const files::Folder& folder, const files::Folder& generation) {
    if (!image::MemoryFile::is_one(folder.descriptor())) return;  // FERMATA_MEMORY_DIR on a disk
    const auto spares = folder.own(image::kSpareFolder);
    if (!spares) return;
    for (const std::string& name : generation.names()) {
        if (!is_used_again(name)) continue;
        const auto size = generation.size_of(name), there = spares->size_of(name);
        if (size && (!there || *there <= *size)) files::move(generation, name, *spares, name);
    }
}

uint64_t bytes_of_spares(const files::Folder& folder) {
    const auto spares = folder.find(image::kSpareFolder);
    uint64_t bytes = 0;
    if (spares)
        for (const std::string& name : spares->names()) bytes += spares->size_of(name).value_or(0);
    return bytes;
}

void drop_spares(const files::Folder& folder) {
    const auto spares = folder.find(image::kSpareFolder);
    if (!spares) return;
    for (const std::string& name : spares->names())
        if (is_used_again(name)) spares->remove_file(name);
    folder.remove_empty(image::kSpareFolder);
}

void drop_dear_spares(const files::Folder& folder) {
    const uint64_t bytes = bytes_of_spares(folder);
    if (bytes > 0 && room_in_memory(folder) < bytes) drop_spares(folder);
}

}  // namespace fermata::level
