#include "level/image_check.h"

#include "base/error.h"
#include "level/kept_files.h"

namespace fermata::level {

void check_identity(const image::Reader& reader, uint64_t job, Generation generation, Rank rank) {
    const image::Identity& who = reader.identity();
    if (who.job != job || who.generation != generation.number() || who.rank != rank)
        fail("{} is not the image of its name", reader.file_of({}));
}

void check_content(const image::Reader& reader, const files::Folder& folder, unsigned threads) {
    reader.load({}, threads);
    kept_files_of(reader, folder);
}

}  // namespace fermata::level
