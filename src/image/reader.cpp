// Reader opens an image, compares its checksums and gives back memory, blobs and text (image.h).
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "base/invariant.h"
#include "image/codec.h"
#include "image/file_source.h"
#include "image/format.h"
#include "image/hash.h"
#include "image/image.h"
#include "image/pages.h"
#include "image/shared.h"
#include "image/source.h"

namespace fermata::image {
namespace {

// Read and compared in steps that stay in the cache.
constexpr uint64_t kStep = 256 << 10;
// Bytes that a thread reads in a row, at most: in turns, block by block, some runs took a third longer
// (probably the kernel read ahead for two threads in one place).
constexpr uint64_t kRow = 64 << 20;
// With 2 GiB a rank, two ranks on two processors, four threads each took a tenth less than two
// (docs/internals/images.md).
constexpr unsigned kMostThreads = 4;

// Pages for what is about to be read there, all at once: one by one, as the copying meets them, they cost
// more than the comparing. Where that is not possible (Linux before 5.14) they come one by one.
void make_pages(char* at, uint64_t size) { ::madvise(at, size, MADV_POPULATE_WRITE); }

struct Opened {
    std::unique_ptr<Source> source;
    Header header;
};

// Its header has been compared.
Opened open_image(std::unique_ptr<Source> source) {
    Opened opened{std::move(source), {}};
    const Source& from = *opened.source;
    const std::string& path = from.name();
    const std::string where = from.part() ? fmt::format(" at offset {}", from.begin()) : "";
    uint64_t size = from.size();
    if (size < kPage)
        fail("{} is truncated: {} bytes, not even a header{}", path, from.begin() + size, where);
    Header& header = opened.header;
    from.read(&header, sizeof header, 0);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
        fail("{} is not a Fermata image{}", path, where);
    if (header.checksum != checksum_of(&header, offsetof(Header, checksum)))
        fail("{} is damaged: header checksum at offset {}", path, from.begin());
    if (header.version != kFormatVersion)
        fail("{} has image format {}; this Fermata reads {}", path, header.version, kFormatVersion);
    if (header.page != kPage)
        fail("{} was made with pages of {} bytes; here they are {}", path, header.page, kPage);
    if (from.part() ? size < header.file_size : size != header.file_size)
        fail("{} is truncated or grown: {} bytes instead of {}{}", path, size, header.file_size,
             from.part() ? fmt::format(" from offset {}", from.begin()) : "");
    size = header.file_size;
    if (header.index_offset < kPage || header.index_offset > size || header.index_offset % kPage ||
        header.index_size != size - header.index_offset)
        fail("{} is damaged: its index would lie outside the file", path);
    return opened;
}

// Bytes that a sparse file may claim beyond what it holds. Ours have no holes; copies may have some.
constexpr uint64_t kMostHoles = 64 << 20;

// Compared before there is memory for it: a damaged file, or a small one that claims to be large, costs none.
std::vector<std::byte> read_index(const Opened& opened) {
    const Source& from = *opened.source;
    const uint64_t at = opened.header.index_offset, size = opened.header.index_size;
    if (from.holes(at, size) > std::max(kMostHoles, size / 2))
        fail("{}: its index of {} bytes is mostly holes; a copy without them (cp --sparse=never) would do",
             from.name(), size);
    auto damaged = [&] {
        fail("{} is damaged: index checksum at offset {}", from.name(), from.begin() + at);
    };
    std::vector<std::byte> piece(std::min<uint64_t>(size, 1 << 20));
    Hash hash;
    for (uint64_t done = 0, n; done < size; done += n) {
        n = std::min<uint64_t>(piece.size(), size - done);
        from.read(piece.data(), n, at + done);
        hash.add(piece.data(), n);
    }
    if (opened.header.index_checksum != hash.sum()) damaged();
    if (size <= piece.size()) return piece;
    std::vector<std::byte> index(size);
    from.read(index.data(), size, at);
    // The file may have been exchanged meanwhile.
    if (opened.header.index_checksum != Hash::of(index.data(), size)) damaged();
    return index;
}

FileKey key_of(const std::string& path, const Header& header, const Key* key) {
    if (header.cipher > Cipher::xchacha20_poly1305)
        fail("{} is encrypted in a way that this Fermata does not know", path);
    bool encrypted = header.cipher != Cipher::none;
    check_key(path, encrypted ? std::optional(header.key_id) : std::nullopt, key);
    return key ? FileKey::of_image(*key, &header, offsetof(Header, index_offset)) : FileKey{};
}

}  // namespace

// Buffers of one thread, of whole pages: what is read past the page cache begins and ends at pages.
class Reader::Scratch {
  public:
    char* stored() { return get(stored_); }
    char* shuffled() { return get(shuffled_); }
    char* content() { return get(content_); }

  private:
    static char* get(std::unique_ptr<Pages>& buffer) {
        if (!buffer) buffer = std::make_unique<Pages>(kLargestBlock, "to read an image");
        return buffer->data();
    }
    std::unique_ptr<Pages> stored_, shuffled_, content_;
};

Reader::~Reader() = default;

Reader::Reader(const Place& place, const Key* key) : folder_(place.folder), path_(place.path()) {
    Opened opened = open_image(std::make_unique<FileSource>(place));
    const Header& header = opened.header;
    keys_.push_back(key_of(path_, header, key));
    std::vector<std::byte> index = read_index(opened);
    if (keys_[0] && !keys_[0].open_index(index.data(), index.size(), header.index_tag, &header,
                                         offsetof(Header, index_tag)))
        fail("{} is damaged: its header or index is not what was encrypted, at offset {}", path_,
             opened.source->begin() + header.index_offset);
    auto rank = Rank::among(header.rank, header.ranks);
    if (!rank) fail("{} is damaged: it is of rank {} of {}", path_, header.rank, header.ranks);
    identity_ = {header.job, header.generation, *rank, header.ranks};
    summary_ = {header.file_size, header.checksum, 0, header.index_offset - kPage};
    sources_.push_back(std::move(opened.source));

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
    references_ = in.values<Reference>();
    blocks_ = in.values<Block>();
    extents_ = in.values<Extent>();
    if (!in.at_end()) fail("{} is damaged: bytes after its index", path_);
    for (const Reference& reference : references_) open_reference(reference, key);
    always(sources_.size() == references_.size() + 1 && keys_.size() == sources_.size(),
           "an image whose files and keys are not as many as it refers to");
    check_blocks();
    check_extents();
}

// Finds the same rank's earlier image.
Place Reader::place_of_image(const files::Folder& other, const Reference& reference) const {
    const auto lowest = reference.lowest_of_group();
    switch (reference.kind) {
        case ReferenceKind::image:
            return {other, image_name(identity_.rank)};
        case ReferenceKind::part:
            if (!other.has(kSharedName))
                fail("{} refers to {}, which is not there", path_, other.path_of(kSharedName));
            return place_of(other, identity_.rank);
        case ReferenceKind::group:
            if (!lowest) break;
            if (!other.has(group_name(*lowest)))
                fail("{} refers to {}, which is not there", path_, other.path_of(group_name(*lowest)));
            return place_in_group(other, *lowest, identity_.rank);
        case ReferenceKind::text:
            break;
    }
    fail("{} is damaged: an unknown kind of reference", path_);
}

// Beside the generation that this image is of, wherever that lies now.
void Reader::open_reference(const Reference& reference, const Key* key) {
    files::Folder other;
    try {
        other = reference.generation == identity_.generation && reference.kind == ReferenceKind::text
                    ? folder_
                    : folder_.beside(fmt::format("gen-{:06}", reference.generation));
    } catch (const Error& why) {
        fail("{} refers to generation {}: {}", path_, reference.generation, why.what());
    }
    if (reference.kind == ReferenceKind::text) {
        Place place(other, text_name(reference.checksum));
        try {
            sources_.push_back(std::make_unique<FileSource>(place));
        } catch (const Error& why) {
            fail("{} refers to {}, which cannot be opened: {}", path_, place.path(), why.what());
        }
        if (sources_.back()->size() != reference.bytes)
            fail("{}, which {} refers to, is truncated or grown: {} bytes instead of {}", place.path(), path_,
                 sources_.back()->size(), reference.bytes);
        keys_.push_back(key ? FileKey::of_text(*key, reference.checksum) : FileKey{});
        return;
    }
    const Place place = place_of_image(other, reference);
    Opened opened = open_image(std::make_unique<FileSource>(place));
    if (opened.header.checksum != reference.checksum || opened.header.file_size != reference.bytes)
        fail("{} refers to another {} than the one that is there", path_, place.path());
    keys_.push_back(key_of(place.path(), opened.header, key));
    sources_.push_back(std::move(opened.source));
}

void Reader::check_blocks() const {
    for (const Block& block : blocks_) {
        uint64_t end = block.source == 0                    ? kPage + summary_.written
                       : block.source <= references_.size() ? references_[block.source - 1].bytes
                                                            : 0;
        bool plain = block.codec == Codec::none;
        bool headless = block.source && block.source <= references_.size() &&
                        references_[block.source - 1].kind == ReferenceKind::text;
        if (block.length == 0 || block.length > kLargestBlock || block.length % kPage || block.stored == 0 ||
            block.stored > block.length ||
            (plain && (block.stored != block.length || block.offset % kPage)) ||
            block.codec > Codec::shuffle_zstd || block.offset < (headless ? 0 : kPage) ||
            block.offset > end || block.stored > end - block.offset)
            fail("{} is damaged: a block lies outside the data", path_);
    }
}

void Reader::check_extents() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return a.address < b.address; });
    uint64_t last = 0;
    for (const Extent& extent : extents_) {
        if (extent.block >= blocks_.size() || extent.length == 0 || extent.length % kPage ||
            extent.address % kPage || extent.address < last || extent.address > UINT64_MAX - extent.length ||
            extent.skip % kPage || extent.skip > blocks_[extent.block].length ||
            extent.length > blocks_[extent.block].length - extent.skip)
            fail("{} is damaged: an impossible extent at {:#x}", path_, extent.address);
        last = extent.address + extent.length;
        summary_.content += extent.length;
    }
}

const std::vector<std::byte>& Reader::blob(const std::string& name) const {
    for (const Blob& blob : blobs_)
        if (blob.name == name) return blob.bytes;
    fail("{} has no part named '{}'", path_, name);
}

const std::string& Reader::file_of(const Block& block) const { return sources_.at(block.source)->name(); }

uint64_t Reader::offset_of(const Block& block) const {
    return sources_.at(block.source)->begin() + block.offset;
}

void Reader::check(const Block& block, const void* content) const {
    if (checksum_of(content, block.length) != block.checksum)
        fail("{} is damaged: checksum of the {} bytes at offset {}", file_of(block), block.stored,
             offset_of(block));
}

void Reader::fetch(const Block& block, void* destination, Scratch& scratch, Stream& file, bool fresh) const {
    always(block.source < sources_.size(), "a block of a file that the image does not refer to");
    always(block.length <= kLargestBlock && block.stored <= block.length,
           "a block that does not fit its buffer");
    const std::string& name = file_of(block);
    const FileKey& key = keys_[block.source];
    const uint64_t offset = offset_of(block);
    auto decrypt = [&](void* data) {
        if (key && !key.open(data, block))
            fail("{} is damaged: the {} bytes at offset {} are not what was encrypted", name, block.stored,
                 offset);
    };
    if (block.codec != Codec::none) {
        // Their odd sizes at odd places are read faster through the page cache, which reads ahead.
        char* stored = scratch.stored();
        sources_[block.source]->read(stored, block.stored, block.offset);
        decrypt(stored);
        if (fresh) make_pages(static_cast<char*>(destination), block.length);
        if (!decode(block.codec, stored, block.stored, destination, block.length, scratch.shuffled()))
            fail("{} is damaged: the {} bytes at offset {} are no {} data", name, block.stored, offset,
                 name_of(block.codec));
        return check(block, destination);
    }
    auto* to = static_cast<char*>(destination);
    Hash hash;
    for (uint64_t at = 0, n; at < block.length; at += n) {
        n = std::min<uint64_t>(kStep, block.length - at);
        if (fresh) make_pages(to + at, n);
        if (!file.direct() || file.read_cached(to + at, n, block.offset + at) != n) {
            if (file.direct()) {  // storage wants large reads
                if (fresh) make_pages(to + at + n, block.length - at - n);
                n = block.length - at;
            }
            file.read(to + at, n, block.offset + at);
        }
        if (!key) hash.add(to + at, n);
    }
    if (key) {
        decrypt(to);
        return check(block, to);
    }
    if (hash.sum() != block.checksum)
        fail("{} is damaged: checksum of the {} bytes at offset {}", name, block.stored, offset);
}

void Reader::read(const Block& block, void* destination) const {
    always(block.source < sources_.size(), "a block that the image does not have");
    Scratch scratch;
    fetch(block, destination, scratch, *sources_[block.source]->stream(false), false);
}

std::vector<int> Reader::descriptors() const {
    std::vector<int> all;
    for (const auto& source : sources_)
        if (int fd = source->descriptor(); fd >= 0) all.push_back(fd);
    return all;
}

void Reader::load(const std::function<void*(const Extent&)>& place, unsigned threads,
                  const std::function<bool(uint32_t block)>& wanted) const {
    struct Target {
        uint32_t block;
        const Extent* extent;
        char* to;
    };
    std::vector<Target> targets;
    targets.reserve(extents_.size());
    for (const Extent& extent : extents_)
        if (!wanted || wanted(extent.block))
            targets.push_back({extent.block, &extent, static_cast<char*>(place ? place(extent) : nullptr)});
    // In the order of the files, each block once.
    std::sort(targets.begin(), targets.end(), [this](const Target& a, const Target& b) {
        const Block &x = blocks_[a.block], &y = blocks_[b.block];
        if (x.source != y.source) return x.source < y.source;
        if (x.offset != y.offset) return x.offset < y.offset;
        return a.block < b.block;
    });
    uint64_t bytes = 0;
    std::vector<size_t> first;  // targets of every block
    for (size_t i = 0; i < targets.size(); ++i)
        if (i == 0 || targets[i].block != targets[i - 1].block) {
            first.push_back(i);
            bytes += blocks_[targets[i].block].stored;
        }
    std::vector<std::unique_ptr<Stream>> streams;
    for (const auto& source : sources_) streams.push_back(source->stream(bytes >= uncached_from_));
    // Past the page cache nobody reads ahead, so storage has to be asked for more at once.
    const bool past = std::any_of(streams.begin(), streams.end(), [](auto& one) { return one->direct(); });
    if (threads == 0)
        threads = std::clamp(std::thread::hardware_concurrency(), past ? kMostThreads : 2u, kMostThreads);
    threads = static_cast<unsigned>(std::min<size_t>(threads, first.size()));
    // Four rows a thread, so that none waits long for the last one.
    uint64_t row = std::min(kRow, bytes / 4 / std::max(threads, 1u));
    std::vector<size_t> rows;  // first block of every row
    uint64_t left = 0;
    for (size_t i = 0; i < first.size(); ++i) {
        if (left == 0) rows.push_back(i), left = row;
        left -= std::min<uint64_t>(left, blocks_[targets[first[i]].block].stored);
    }
    rows.push_back(first.size());
    first.push_back(targets.size());

    auto load_one = [&](size_t i, Scratch& scratch) {
        const Target& one = targets[first[i]];
        const Block& block = blocks_[one.block];
        Stream& file = *streams[block.source];
        always(first[i] < first[i + 1], "a block that is loaded for no memory");
        if (one.to && first[i + 1] - first[i] == 1 && one.extent->length == block.length)
            return fetch(block, one.to, scratch, file, true);
        fetch(block, scratch.content(), scratch, file, false);
        for (size_t k = first[i]; k < first[i + 1]; ++k)
            if (targets[k].to) {
                always(targets[k].block == one.block &&
                           targets[k].extent->skip + uint64_t{targets[k].extent->length} <= block.length,
                       "memory that is filled from beyond its block");
                std::memcpy(targets[k].to, scratch.content() + targets[k].extent->skip,
                            targets[k].extent->length);
            }
    };
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr failure;
    auto work = [&] {
        try {
            Scratch scratch;
            for (size_t r; !failed && (r = next++) + 1 < rows.size();)
                for (size_t i = rows[r]; i < rows[r + 1] && !failed; ++i) load_one(i, scratch);
        } catch (...) {
            std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            failed = true;
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

void Reader::verify() const { load({}); }

}  // namespace fermata::image
