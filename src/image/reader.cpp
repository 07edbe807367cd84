#include <fcntl.h>
#include <sys/stat.h>

#include <memory>

#include "image/format.h"
#include "image/image.h"

namespace fermata::image {

Reader::Reader(std::string path) : path_(std::move(path)), fd_(open_file(path_, O_RDONLY)) {
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) fail_errno("cannot stat {}", path_);
    auto size = static_cast<uint64_t>(st.st_size);
    if (size < kPage) fail("{} is truncated: {} bytes, not even a header", path_, size);
    Header header;
    pread_all(fd_.get(), &header, sizeof header, 0, path_);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) fail("{} is not a Fermata image", path_);
    if (header.checksum != checksum_of(&header, offsetof(Header, checksum)))
        fail("{} is damaged: header checksum at offset 0", path_);
    if (header.version != kFormatVersion)
        fail("{} has image format {}; this Fermata reads {}", path_, header.version, kFormatVersion);
    if (header.page != kPage)
        fail("{} was made with pages of {} bytes; here they are {}", path_, header.page, kPage);
    if (size != header.file_size)
        fail("{} is truncated or grown: {} bytes instead of {}", path_, size, header.file_size);
    if (header.index_offset < kPage || header.index_offset > size ||
        header.index_size > size - header.index_offset)
        fail("{} is damaged: its index would lie outside the file", path_);
    std::vector<std::byte> index(header.index_size);
    pread_all(fd_.get(), index.data(), index.size(), header.index_offset, path_);
    if (header.index_checksum != checksum_of(index.data(), index.size()))
        fail("{} is damaged: index checksum at offset {}", path_, header.index_offset);
    identity_ = {header.job, header.generation, header.rank, header.ranks};
    summary_ = {size, header.checksum};

    Unpacker in(index, path_);
    uint64_t blobs = in.count(16);
    for (uint64_t i = 0; i < blobs; ++i) {
        Blob blob;
        uint64_t name = in.value<uint64_t>();
        blob.name.assign(reinterpret_cast<const char*>(in.take(name)), name);
        uint64_t bytes = in.value<uint64_t>();
        auto* p = in.take(bytes);
        blob.bytes.assign(p, p + bytes);
        blobs_.push_back(std::move(blob));
    }
    uint64_t regions = in.count(16);
    for (uint64_t i = 0; i < regions; ++i) {
        Region region;
        uint64_t bytes = in.value<uint64_t>();
        auto* p = in.take(bytes);
        region.header.assign(p, p + bytes);
        uint64_t chunks = in.count(sizeof(Chunk));
        for (uint64_t k = 0; k < chunks; ++k) {
            auto chunk = in.value<Chunk>();
            if (chunk.length == 0 || chunk.length > kChunk || chunk.length % kPage || chunk.address % kPage ||
                chunk.offset % kPage || chunk.offset < kPage || chunk.offset > header.index_offset ||
                chunk.length > header.index_offset - chunk.offset)
                fail("{} is damaged: a chunk lies outside the data", path_);
            region.chunks.push_back(chunk);
        }
        regions_.push_back(std::move(region));
    }
    if (!in.at_end()) fail("{} is damaged: bytes after its index", path_);
}

const std::vector<std::byte>& Reader::blob(const std::string& name) const {
    for (const Blob& blob : blobs_)
        if (blob.name == name) return blob.bytes;
    fail("{} has no part named '{}'", path_, name);
}

void Reader::read(const Chunk& chunk, void* destination) const {
    pread_all(fd_.get(), destination, chunk.length, chunk.offset, path_);
    if (checksum_of(destination, chunk.length) != chunk.checksum)
        fail("{} is damaged: checksum of the {} bytes at offset {}", path_, chunk.length, chunk.offset);
}

void Reader::verify() const {
    std::unique_ptr<char[]> buffer(new char[kChunk]);
    for (const Region& region : regions_)
        for (const Chunk& chunk : region.chunks) read(chunk, buffer.get());
}

}  // namespace fermata::image
