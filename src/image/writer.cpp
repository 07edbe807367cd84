#include <fcntl.h>
#include <xxhash.h>

#include "image/format.h"
#include "image/image.h"

namespace fermata::image {

std::string image_name(uint32_t rank) { return fmt::format("rank-{:06}.img", rank); }

Checksum checksum_of(const void* data, size_t size) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    Checksum out;
    std::memcpy(out.bytes.data(), canonical.digest, out.bytes.size());
    return out;
}

std::string Checksum::hex() const {
    std::string text;
    for (uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

Writer::Writer(std::string path, const Identity& identity)
    : path_(std::move(path)), identity_(identity), fd_(open_file(path_, O_RDWR | O_CREAT | O_EXCL, 0600)) {
    static const char zeros[kPage] = {};
    write_all(fd_.get(), zeros, sizeof zeros, path_);
}

void Writer::put(const void* data, size_t size) {
    write_all(fd_.get(), data, size, path_);
    at_ += size;
    // Let the storage work while we go on: the final fsync then finds little left to do.
    constexpr uint64_t kFlush = 32 << 20;
    if (at_ - flushed_ >= kFlush) {
        ::sync_file_range(fd_.get(), static_cast<off64_t>(flushed_), static_cast<off64_t>(at_ - flushed_),
                          SYNC_FILE_RANGE_WRITE);
        flushed_ = at_;
    }
}

void Writer::blob(const std::string& name, const void* data, size_t size) {
    auto* p = static_cast<const std::byte*>(data);
    blobs_.push_back({name, std::vector<std::byte>(p, p + size)});
}

void Writer::begin_region(const void* header, size_t size) {
    auto* p = static_cast<const std::byte*>(header);
    regions_.push_back({std::vector<std::byte>(p, p + size), {}});
}

void Writer::run(uint64_t address, const void* data, uint64_t length) {
    if (address % kPage || length % kPage || regions_.empty())
        fail("image {}: run of {} bytes at {:#x} is not made of whole pages of a region", path_, length,
             address);
    auto* p = static_cast<const char*>(data);
    while (length > 0) {
        uint64_t n = length < kChunk ? length : kChunk;
        regions_.back().chunks.push_back({address, n, at_, checksum_of(p, n)});
        put(p, n);
        p += n;
        address += n;
        length -= n;
    }
}

Summary Writer::finish(bool sync) {
    Packer index;
    index.value(static_cast<uint64_t>(blobs_.size()));
    for (const Blob& blob : blobs_) {
        index.sized(blob.name.data(), blob.name.size());
        index.sized(blob.bytes.data(), blob.bytes.size());
    }
    index.value(static_cast<uint64_t>(regions_.size()));
    for (const Region& region : regions_) {
        index.sized(region.header.data(), region.header.size());
        index.value(static_cast<uint64_t>(region.chunks.size()));
        for (const Chunk& chunk : region.chunks) index.value(chunk);
    }
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kFormatVersion;
    header.page = kPage;
    header.job = identity_.job;
    header.generation = identity_.generation;
    header.rank = identity_.rank;
    header.ranks = identity_.ranks;
    header.index_offset = at_;
    header.index_size = index.out.size();
    header.index_checksum = checksum_of(index.out.data(), index.out.size());
    put(index.out.data(), index.out.size());
    header.file_size = at_;
    header.checksum = checksum_of(&header, offsetof(Header, checksum));
    if (::pwrite(fd_.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
        fail_errno("cannot write the header of {}", path_);
    if (sync) sync_file(fd_.get(), path_);
    int fd = fd_.release();
    if (::close(fd) != 0) fail_errno("cannot close {}", path_);
    return {at_, header.checksum};
}

}  // namespace fermata::image
