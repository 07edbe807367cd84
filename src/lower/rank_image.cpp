#include "lower/rank_image.h"

#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "lower/services.h"
#include "split/address/partition.h"
#include "split/address/window.h"
#include "split/fds/descriptors.h"
#include "split/memory/memory.h"
#include "split/process/state.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

// Names of the image's blobs.
constexpr const char *kMemory = "memory", *kProcess = "process", *kAnchors = "anchors", *kProgram = "program",
                     *kMaps = "maps";

// Addresses in upper memory from which everything else is found.
struct Anchors {
    uint64_t upper;    // UpperServices*
    uint64_t threads;  // ThreadTable*
    uint32_t bridge_version;
    uint32_t abi_hash;
};

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The image's data is one stream for the split room and checksummed chunks for the image room; both are in
// address order, so a stream offset finds its chunk by walking on from the last one.
class ChunkStream {
  public:
    explicit ChunkStream(const image::Reader& reader)
        : reader_(reader), chunks_(reader.regions().at(0).chunks) {}

    void read(void* address, size_t size, uint64_t offset) {
        auto* to = static_cast<char*>(address);
        if (offset < start_) next_ = 0, start_ = 0;
        while (size > 0) {
            if (next_ >= chunks_.size()) fail("an image ends before its memory table says");
            const image::Chunk& chunk = chunks_[next_];
            if (offset >= start_ + chunk.length) {
                start_ += chunk.length;
                ++next_;
                continue;
            }
            uint64_t skip = offset - start_;
            uint64_t n = std::min<uint64_t>(chunk.length - skip, size);
            if (skip == 0 && n == chunk.length) {
                reader_.read(chunk, to);
            } else {  // the checksum is the whole chunk's
                if (!part_) part_ = std::make_unique<char[]>(image::kChunk);
                reader_.read(chunk, part_.get());
                std::memcpy(to, part_.get() + skip, n);
            }
            to += n;
            offset += n;
            size -= n;
        }
    }

  private:
    const image::Reader& reader_;
    const std::vector<image::Chunk>& chunks_;
    std::unique_ptr<char[]> part_;
    size_t next_ = 0;
    uint64_t start_ = 0;  // stream offset of chunks_[next_]
};

}  // namespace

split::process::Limits process_limits() { return {split::lower_descriptor_base()}; }

SavedImage save_image(const std::string& path, const image::Identity& identity, const std::string& program) {
    SavedImage saved;
    saved.warnings = split::threads::describe_stopped_threads();
    if (std::string misplaced = split::check(); !misplaced.empty()) fail("{}", misplaced);
    split::process::Captured process = split::process::capture(process_limits());
    saved.warnings.insert(saved.warnings.end(), process.warnings.begin(), process.warnings.end());

    split::MemoryTable table = split::collect_memory();
    // For people, and for tests that compare it with the table without using our code.
    std::string maps = read_file("/proc/self/maps");
    saved.writing_since = monotonic_ns();
    image::Writer writer(path, identity);
    try {
        std::string memory = split::encode(table);
        writer.blob(kMemory, memory.data(), memory.size());
        writer.blob(kMaps, maps.data(), maps.size());
        writer.blob(kProcess, process.state.data(), process.state.size());
        writer.blob(kProgram, program.data(), program.size());
        Anchors anchors{reinterpret_cast<uint64_t>(the_upper()),
                        reinterpret_cast<uint64_t>(split::threads::table()), split::kBridgeVersion,
                        the_bridge()->abi_hash};
        writer.blob(kAnchors, &anchors, sizeof anchors);
        writer.begin_region("memory", 6);
        split::make_readable(table);
        try {
            for (const split::MapEntry& map : table.maps)
                for (const split::Range& run : map.runs)
                    writer.run(run.begin, reinterpret_cast<const void*>(run.begin), run.size());
        } catch (...) {
            split::restore_protection(table);
            throw;
        }
        split::restore_protection(table);
        saved.summary = writer.finish();
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
    return saved;
}

std::string program_of_image(const std::string& path) {
    try {
        return text_of(image::Reader(path).blob(kProgram));
    } catch (const std::exception&) {
        return {};
    }
}

LoadedImage load_image(const std::string& path, int rank, int size) {
    image::Reader reader(path);
    LoadedImage loaded;
    loaded.identity = reader.identity();
    if (loaded.identity.rank != static_cast<uint32_t>(rank) ||
        loaded.identity.ranks != static_cast<uint32_t>(size))
        fail("{} is of rank {} of {}, not of rank {} of {}", path, loaded.identity.rank,
             loaded.identity.ranks, rank, size);
    const auto& anchor_bytes = reader.blob(kAnchors);
    Anchors anchors;
    if (anchor_bytes.size() != sizeof anchors || reader.regions().size() != 1)
        fail("{} is damaged: its parts", path);
    std::memcpy(&anchors, anchor_bytes.data(), sizeof anchors);
    if (anchors.bridge_version != split::kBridgeVersion || anchors.abi_hash != the_bridge()->abi_hash)
        fail("{} was made by another build of Fermata; restart it with the one that made it", path);
    loaded.program = text_of(reader.blob(kProgram));
    loaded.process_state = text_of(reader.blob(kProcess));

    const auto& memory = reader.blob(kMemory);
    ChunkStream stream(reader);
    split::load_memory(
        split::decode({reinterpret_cast<const char*>(memory.data()), memory.size()}),
        [&](void* address, size_t bytes, uint64_t offset) { stream.read(address, bytes, offset); });
    if (std::string why =
            split::threads::adopt_table(reinterpret_cast<split::threads::ThreadTable*>(anchors.threads));
        !why.empty())
        fail("{}: {}", path, why);
    loaded.upper = reinterpret_cast<split::UpperServices*>(anchors.upper);
    return loaded;
}

}  // namespace fermata::lower
