// image_contents DIRECTORY RANK [KEY-FILE]: all that a restart would take from an image, decrypted, for tests
// that search it.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "image/image.h"
#include "image/shared.h"

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    using namespace fermata::image;
    namespace files = fermata::files;
    try {
        KeyPointer key = Key::from_file_or_none(argc > 3 ? argv[3] : "");
        Reader reader(
            place_of(files::Folder::at(argv[1]), fermata::Rank(static_cast<uint32_t>(std::atoi(argv[2])))),
            key.get());
        for (const Blob& blob : reader.blobs()) std::fwrite(blob.bytes.data(), 1, blob.bytes.size(), stdout);
        std::vector<char> content(kLargestBlock);
        for (const Block& block : reader.blocks()) {
            reader.read(block, content.data());
            std::fwrite(content.data(), 1, block.length, stdout);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return std::fflush(stdout);
}
