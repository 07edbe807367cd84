// Writer decides how the content of an image becomes blocks and index (image.h); the pump writes them.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <thread>

#include "base/invariant.h"
#include "image/codec.h"
#include "image/file_sink.h"
#include "image/format.h"
#include "image/hash.h"
#include "image/image.h"
#include "image/pages.h"
#include "image/pump.h"

namespace fermata::image {
namespace {

// Past the page cache the storage wants several requests at a time, however few processors there are. Into
// the page cache it is processors that copy: more threads than those only hinder one another.
unsigned default_threads(bool direct, unsigned processors) {
    if (processors == 0) processors = std::thread::hardware_concurrency();
    return std::clamp(processors, direct ? 3u : 1u, 4u);
}

}  // namespace

std::string image_name(Rank rank) { return fmt::format("rank-{:06}.img", rank.number()); }

std::string text_name(const Checksum& name) { return fmt::format("text-{}.img", name.hex()); }

bool is_text_name(const std::string& name) { return name.starts_with("text-") && name.ends_with(".img"); }

Checksum checksum_of(const void* data, size_t size) { return Hash::of(data, size); }

std::string hex_of(const uint8_t* bytes, size_t size) {
    return fmt::format("{:02x}", fmt::join(bytes, bytes + size, ""));
}

std::string Checksum::hex() const { return hex_of(bytes.data(), bytes.size()); }

std::optional<Checksum> Checksum::of_hex(const std::string& text) {
    Checksum sum;
    if (text.size() != 2 * sum.bytes.size()) return std::nullopt;
    for (size_t i = 0; i < sum.bytes.size(); ++i) {
        const char *begin = text.data() + 2 * i, *end = begin + 2;
        auto [at, error] = std::from_chars(begin, end, sum.bytes[i], 16);
        if (error != std::errc{} || at != end) return std::nullopt;
    }
    if (sum.hex() != text) return std::nullopt;  // in capitals
    return sum;
}

Writer::Writer(std::unique_ptr<Sink> sink, const files::Folder& folder, const Identity& identity,
               const WriteOptions& options)
    : folder_(folder),
      identity_(identity),
      options_(options),
      sink_(std::move(sink)),
      pump_(std::make_unique<Pump>()) {
    always(sink_ != nullptr, "an image that is written nowhere");
    always(Rank::among(identity_.rank.number(), identity_.ranks).has_value(),
           "an image of a rank that its job does not have");
    always(options.largest_block > 0 && options.largest_block <= kLargestBlock,
           "blocks of a size that no reader takes");
    pump_->sink = sink_.get();
    pump_->codec = options.codec;
    pump_->level = options.level;
    pump_->measure = options.measure;
    pump_->largest_block = options.largest_block;
    header_ = std::make_unique<Header>();
    Header& header = *header_;
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kFormatVersion;
    header.page = kPage;
    header.job = identity_.job;
    header.generation = identity_.generation;
    header.rank = identity_.rank.number();
    header.ranks = identity_.ranks;
    if (options.key) {
        header.cipher = Cipher::xchacha20_poly1305;
        header.salt = random_salt();
        header.key_id = options.key->id();
        pump_->key = FileKey::of_image(*options.key, &header, offsetof(Header, index_offset));
    }
}

Writer::Writer(const Place& place, const Identity& identity, const WriteOptions& options)
    : Writer(FileSink::create(place), place.folder, identity, options) {}

Writer Writer::in_shared(const Place& file, const Identity& identity, const WriteOptions& options) {
    Writer writer(FileSink::part_of(file), file.folder, identity, options);
    writer.group_ = lowest_of_group(file.name);
    return writer;
}

Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

void Writer::blob(const std::string& name, const void* data, size_t size) {
    auto* p = static_cast<const std::byte*>(data);
    blobs_.push_back({name, std::vector<std::byte>(p, p + size)});
}

void Writer::run(uint64_t address, const void* data, uint64_t length) { add(address, data, length, false); }

void Writer::run_on_ground(uint64_t address, const void* data, uint64_t length) {
    add(address, data, length, true);
}

void Writer::add(uint64_t address, const void* data, uint64_t length, bool ground) {
    if (address % kPage || length % kPage)
        fail("image {}: run of {} bytes at {:#x} is not made of whole pages", sink_->name(), length, address);
    always(length <= UINT64_MAX - address, "memory of an image beyond the last address");
    always(front_.empty(), "memory for an image that is being written");
    auto* p = static_cast<const char*>(data);
    while (length > 0) {
        uint64_t n = std::min(length, kLargestBlock);
        pump_->pieces.push_back({address, p, static_cast<uint32_t>(n), ground});
        p += n;
        address += n;
        length -= n;
    }
}

void Writer::keep(const Content& base, const std::vector<Range>& unchanged) {
    Content& kept = pump_->kept;
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> block_of(base.blocks.size(), kNone), source_of(base.references.size(), kNone);
    auto block = [&](uint32_t old) {
        if (block_of[old] != kNone) return block_of[old];
        Block copy = base.blocks[old];
        always(copy.source > 0 && copy.source <= base.references.size(),
               "a block of an earlier image that lies in no file");
        uint32_t& source = source_of.at(copy.source - 1);
        if (source == kNone) {
            kept.references.push_back(base.references[copy.source - 1]);
            source = static_cast<uint32_t>(kept.references.size());
        }
        copy.source = source;
        kept.blocks.push_back(copy);
        return block_of[old] = static_cast<uint32_t>(kept.blocks.size() - 1);
    };
    auto at = base.extents.begin();
    uint64_t last = 0;
    for (Range range : unchanged) {
        always(range.begin() >= last, "unchanged memory that is not in the order of addresses");
        last = range.end();
        while (at != base.extents.end() && memory_of(*at).end() <= range.begin()) ++at;
        for (auto e = at; e != base.extents.end() && e->address < range.end(); ++e) {
            const Range part = range.common(memory_of(*e));
            always(e->block < base.blocks.size() && memory_of(*e).contains(part),
                   "unchanged memory that the earlier image does not have");
            kept.extents.push_back({part.begin(), static_cast<uint32_t>(part.size()), block(e->block),
                                    static_cast<uint32_t>(e->skip + (part.begin() - e->address)), 0});
        }
    }
}

void Writer::share(const std::vector<Range>& ranges) {
    Content& kept = pump_->kept;
    Packer name;
    std::optional<TextName> secret_name;
    if (options_.key) secret_name.emplace(*options_.key);
    Reference text{identity_.generation, ReferenceKind::text, {}, 0, {}};
    size_t first = kept.blocks.size();
    auto number = static_cast<uint32_t>(kept.references.size() + 1);
    for (Range range : ranges) {
        always(range.begin() % kPage == 0 && range.size() % kPage == 0,
               "common text that is not made of whole pages");
        for (uint64_t at = range.begin(); at < range.end(); at += kLargestBlock) {
            auto length = static_cast<uint32_t>(std::min(kLargestBlock, range.end() - at));
            auto* content = reinterpret_cast<const void*>(at);
            Checksum checksum = checksum_of(content, length);
            kept.extents.push_back({at, length, static_cast<uint32_t>(kept.blocks.size()), 0, 0});
            kept.blocks.push_back({text.bytes, length, length, number, Codec::none, checksum, {}});
            name.value(length);
            name.value(checksum);
            if (secret_name) {
                secret_name->add(&length, sizeof length);
                secret_name->add(content, length);
            }
            text.bytes += length;
        }
    }
    if (text.bytes == 0) return;
    text.checksum = secret_name ? secret_name->name() : checksum_of(name.out.data(), name.out.size());
    kept.references.push_back(text);
    std::string path = folder_.path_of(text_name(text.checksum));
    Fd file = folder_.try_create(text_name(text.checksum)).value_or(Fd());
    // The file is there: if the rank that writes it fails, so does the generation. The tags are this image's
    // own.
    if (!file && !options_.key) return;
    FileKey key;
    std::vector<char> sealed;
    if (options_.key) {
        key = FileKey::of_text(*options_.key, text.checksum);
        sealed.resize(kLargestBlock);
    }
    for (size_t i = first; i < kept.blocks.size(); ++i) {
        Block& block = kept.blocks[i];
        const Extent& extent = kept.extents[kept.extents.size() - kept.blocks.size() + i];
        auto* content = reinterpret_cast<const void*>(extent.address);
        if (key) {
            block.tag = key.seal(content, sealed.data(), block);
            content = sealed.data();
        }
        if (file) write_all(file.get(), content, block.length, path);
    }
    if (file) texts_.emplace_back(std::move(path), std::move(file));
}

int Writer::descriptor() const { return sink_->descriptor(); }

Content Writer::content() const {
    const PumpResult& r = *pump_->result;
    always(r.complete, "the content of an image that was not written to its end");
    always(r.blocks <= pump_->max_blocks && r.extents <= pump_->max_extents,
           "more blocks or extents than were counted");
    Content all{pump_->kept.references,
                {pump_->blocks, pump_->blocks + r.blocks},
                {pump_->extents, pump_->extents + r.extents}};
    Reference own{identity_.generation,
                  sink_->is_part() ? ReferenceKind::part : ReferenceKind::image,
                  {},
                  r.file_size,
                  r.header};
    if (group_) own.of_group(*group_);
    all.references.push_back(own);
    for (Block& block : all.blocks)
        if (block.source == 0) block.source = static_cast<uint32_t>(all.references.size());
    for (const Extent& extent : all.extents)
        always(extent.block < all.blocks.size() &&
                   extent.length <= all.blocks[extent.block].length - extent.skip,
               "memory of an image outside of its block");
    std::sort(all.extents.begin(), all.extents.end(),
              [](const Extent& a, const Extent& b) { return a.address < b.address; });
    return all;
}

void Writer::later() {
    always(pump_->first_late == UINT32_MAX, "memory that is left for later twice");
    pump_->first_late = static_cast<uint32_t>(pump_->pieces.size());
}

void Writer::prepare() {
    always(front_.empty() && !pump_->result, "an image that is prepared twice");
    for (const Block& block : pump_->kept.blocks)
        always(block.source > 0 && block.source <= pump_->kept.references.size(),
               "a kept block that lies in no file");
    for (const Extent& extent : pump_->kept.extents)
        always(extent.block < pump_->kept.blocks.size(), "kept memory without a block");
    Packer index;
    index.value(static_cast<uint64_t>(blobs_.size()));
    for (const Blob& blob : blobs_) {
        index.sized(blob.name.data(), blob.name.size());
        index.sized(blob.bytes.data(), blob.bytes.size());
    }
    index.value(static_cast<uint64_t>(pump_->kept.references.size()));
    for (const Reference& reference : pump_->kept.references) index.value(reference);
    front_ = std::move(index.out);
    uint64_t expected = 0;
    for (const Piece& piece : pump_->pieces) expected += piece.length;
    const bool large = sink_->begin(expected, options_.direct);
    pump_->threads = options_.threads ? options_.threads : default_threads(large, options_.processors);
    pump_->allocate();
    pump_->result->sink.large = large;
    if (!sink_->is_part()) sink_->place(0, room());
    if (pump_->key)
        sealed_index_ = std::make_unique<Pages>(largest_index(), "to encrypt the index of an image");
}

uint64_t Writer::largest_index() const {
    return front_.size() + 16 + pump_->max_blocks * sizeof(Block) + pump_->max_extents * sizeof(Extent);
}

uint64_t Writer::room() const {
    always(pump_->result != nullptr, "the room of an image that is not prepared");
    uint64_t content = 0;
    for (const Piece& piece : pump_->pieces) content += piece.length;
    // Each block may be padded to a page, and each thread's last ones.
    return kPage + content + uint64_t{pump_->max_blocks} * kPage + (largest_index() / kPage + 1) * kPage;
}

void Writer::place(uint64_t begin) {
    always(sink_->is_part(), "a place for an image that has a file of its own");
    always(begin % kPage == 0, "an image that does not begin at a page");
    sink_->place(begin, room());
}

void Writer::write_first() noexcept {
    auto all = static_cast<uint32_t>(pump_->pieces.size());
    pump_->run(std::min(pump_->first_late, all));
}

void Writer::write_rest() noexcept {
    if (!pump_->failed()) pump_->run(static_cast<uint32_t>(pump_->pieces.size()));
    uint64_t all = 0;
    for (const Piece& piece : pump_->pieces) all += piece.length;
    // Nothing may get lost between the threads: a missing page would come back as zeros.
    if (pump_->result->content + pump_->result->zeros != all)
        pump_->fail(EIO, "account for every page of", 0);
    if (!pump_->failed()) seal();
}

// Index, header, fsync; by whoever wrote the rest.
void Writer::seal() noexcept {
    PumpResult& r = *pump_->result;
    auto put = [this](const void* data, uint64_t size, uint64_t at) {
        return pump_->put(Sink::kNobody, data, size, at);
    };
    sink_->expect_small();
    struct {
        const void* data;
        uint64_t size;
    } parts[] = {{front_.data(), front_.size()},
                 {nullptr, 8},
                 {pump_->blocks, r.blocks * sizeof(Block)},
                 {nullptr, 8},
                 {pump_->extents, r.extents * sizeof(Extent)}};
    uint64_t counts[] = {r.blocks, r.extents};
    parts[1].data = &counts[0];
    parts[3].data = &counts[1];

    Header& header = *header_;
    header.index_offset = r.at;
    for (const auto& part : parts) header.index_size += part.size;
    header.file_size = header.index_offset + header.index_size;
    uint64_t at = header.index_offset;
    if (pump_->key) {
        char* end = sealed_index_->data();
        for (const auto& part : parts) end = std::copy_n(static_cast<const char*>(part.data), part.size, end);
        header.index_tag = pump_->key.seal_index(sealed_index_->data(), header.index_size, &header,
                                                 offsetof(Header, index_tag));
        header.index_checksum = Hash::of(sealed_index_->data(), header.index_size);
        if (!put(sealed_index_->data(), header.index_size, at)) return;
    } else {
        Hash hash;
        for (const auto& part : parts) {
            hash.add(part.data, part.size);
            if (!put(part.data, part.size, at)) return;
            at += part.size;
        }
        header.index_checksum = hash.sum();
    }
    header.checksum = Hash::of(&header, offsetof(Header, checksum));
    // The header last: until then the file has none.
    char page[kPage] = {};
    std::memcpy(page, &header, sizeof header);
    if (!put(page, sizeof page, 0)) return;
    sink_->end(header.file_size);
    if (int error = options_.sync ? sink_->sync() : 0) return pump_->fail(error, "bring to storage", 0);
    r.file_size = header.file_size;
    r.header = header.checksum;
    r.complete = true;
}

Summary Writer::conclude() {
    always(pump_->result != nullptr, "an image that ends before it is prepared");
    PumpResult& r = *pump_->result;
    if (int code = r.error.load())
        throw Error(fmt::format("cannot {} {} at offset {}: {}", r.error_what, sink_->name(),
                                r.error_at.load(), std::strerror(code)));
    if (!r.complete) fail("{} was not written to its end", sink_->name());
    for (auto& [path, file] : texts_) {
        if (options_.sync) sync_file(file.get(), path);
        file.reset();
    }
    always(r.at >= kPage && r.file_size >= r.at, "an image that is shorter than its data");
    sink_->close();
    return {r.file_size, r.header, r.content.load(), r.at.load() - kPage};
}

Summary Writer::finish() {
    prepare();
    write_first();
    write_rest();
    return conclude();
}

}  // namespace fermata::image
