// This header writes and reads one rank's image (docs/formats/image.md).
//
// A file is a header page, data, and an index at the end. The content is made of blocks and extents. A block
// is what is stored as one, perhaps compressed, with an xxh3-128 of its content; an extent says which part of
// which block is the memory at which address. A block may lie in the image of an earlier generation. The
// header has a checksum of the index and one of itself, and nothing is used before its checksum has been
// compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/page.h"
#include "base/range.h"
#include "base/rank.h"
#include "files/folder.h"
#include "image/checksum.h"
#include "image/cipher.h"
#include "image/key.h"
#include "image/layout.h"

namespace fermata::image {

inline constexpr uint32_t kFormatVersion = 4;
// Large enough for the storage's speed, small enough to name a fault and to bound every buffer.
inline constexpr uint64_t kLargestBlock = 4 << 20;

// Name of one rank's image file, inside the directory of its generation.
std::string image_name(Rank rank);

// Where an image is: a file of its own, or part of one that holds several (shared.h).
struct Place {
    files::Folder folder;           // of its generation
    std::string name;               // of the file in there
    std::optional<uint64_t> begin;  // of the part

    Place(files::Folder where, std::string file, std::optional<uint64_t> from = {})
        : folder(std::move(where)), name(std::move(file)), begin(from) {}
    // Finds it by the path of the file. Whoever has a folder uses that.
    Place(const std::string& path, std::optional<uint64_t> from = {});
    Place(const char* path) : Place(std::string(path)) {}
    std::string path() const { return folder.path_of(name); }
};

// The rank, generation and job of an image; a reader refuses another.
struct Identity {
    uint64_t job = 0;  // random, chosen when the job first started; the same over restarts
    uint32_t generation = 0;
    Rank rank{0};
    uint32_t ranks = 1;
    bool operator==(const Identity&) const = default;
};

// How the bytes of a block are stored. `shuffle`: byte k of every double comes before byte k+1 of any.
enum class Codec : uint32_t { none = 0, lz4 = 1, zstd = 2, shuffle_lz4 = 3, shuffle_zstd = 4 };

struct Block {
    uint64_t offset;  // in its file; a multiple of the page size where the codec is none
    uint32_t stored;  // bytes in the file
    uint32_t length;  // bytes of content: whole pages, at most kLargestBlock
    uint32_t source;  // 0 = this file, k = references()[k - 1]
    Codec codec;
    Checksum checksum;  // of the content
    Tag tag;            // of the stored bytes, when they are encrypted
};

// Memory at `address` is `length` bytes of a block, from `skip` on. Memory without an extent was zero.
struct Extent {
    uint64_t address;
    uint32_t length;
    uint32_t block;
    uint32_t skip;
    uint32_t reserved;
};

inline Range memory_of(const Extent& extent) { return Range::sized(extent.address, extent.length); }

// Another file that holds blocks of this image, in the same directory of generations.
enum class ReferenceKind : uint8_t {
    image = 0,  // the same rank's of an earlier generation
    text = 1,   // what several ranks have in common: the content of the blocks one after the other
    part = 2,   // as `image`, in the file of all ranks
    group = 3,  // as `image`, in the file of some ranks
};
struct Reference {
    uint32_t generation;
    ReferenceKind kind;
    std::array<uint8_t, 3> lowest;  // of a group: the number of its lowest rank, which names its file
    uint64_t bytes;
    Checksum checksum;  // of an image: of its header; of text: its name, see text_name()

    void of_group(Rank rank) {
        static_assert(Rank::kMost <= 1 << 24);
        kind = ReferenceKind::group;
        for (size_t i = 0; i < lowest.size(); ++i)
            lowest[i] = static_cast<uint8_t>(rank.number() >> (8 * i) & 0xff);
    }
    // Gives none when no job has that rank.
    std::optional<Rank> lowest_of_group() const {
        return Rank::of(int64_t{lowest[0]} | int64_t{lowest[1]} << 8 | int64_t{lowest[2]} << 16);
    }
};

// Name of a text file whose blocks have this checksum, inside the directory of its generation.
std::string text_name(const Checksum& name);
bool is_text_name(const std::string& name);

struct Blob {
    std::string name;
    std::vector<std::byte> bytes;
};

struct Summary {
    uint64_t bytes = 0;    // of its file or part
    Checksum checksum;     // of the header: stands for the whole file
    uint64_t content = 0;  // bytes of memory that the image restores, without zero pages
    uint64_t written = 0;  // of them, bytes written into this file
};

// How to write; from the words of `--save-options` by way of save_options.h.
struct WriteOptions {
    enum class Direct { automatic, yes, no };
    bool measure = false;  // choose between Codec::none and `codec` by measuring what is faster
    Codec codec = Codec::none;
    int level = 1;
    Direct direct = Direct::automatic;       // past the page cache
    unsigned threads = 0;                    // 0: as the storage and `processors` suggest
    unsigned processors = 0;                 // for this process alone; 0: all of the machine
    uint64_t largest_block = kLargestBlock;  // smaller: where blocks are compared as a whole
    Layout layout;                           // for whoever makes the Writer
    bool sync = true;                        // false only for tests and memory file systems
    KeyPointer key;                          // encrypts
};

// Blocks and extents of an image that was written: the next increment refers to them.
struct Content {
    std::vector<Reference> references;  // where the blocks are; never 0 as in an image
    std::vector<Block> blocks;          // `source` - 1 indexes `references`
    std::vector<Extent> extents;        // address order
};

struct Header;
class Pages;
class Source;
class Stream;
class Sink;
struct Pump;

// Writes an image. run() only notes memory; finish() (or the steps below) reads it where it is, by several
// threads with bounded buffers. The file is an image only once finish() has ended well, and the caller
// commits the generation after that.
class Writer {
  public:
    // Creates the file (0600); throws if it exists.
    Writer(const Place& place, const Identity& identity, const WriteOptions& options = {});
    // Writes anywhere; `folder` gets the text that ranks have in common.
    Writer(std::unique_ptr<Sink> sink, const files::Folder& folder, const Identity& identity,
           const WriteOptions& options);
    // Writes into a part of an existing file of several; place() says later where the part begins.
    static Writer in_shared(const Place& file, const Identity& identity, const WriteOptions& options = {});
    ~Writer();
    Writer(Writer&&) noexcept;

    void blob(const std::string& name, const void* data, size_t size);
    // Memory: `address` as the reader shall see it, `length` and both multiples of the page size.
    void run(uint64_t address, const void* data, uint64_t length);
    // Does the same for memory that is not zero before it is read: zero pages are stored, too.
    void run_on_ground(uint64_t address, const void* data, uint64_t length);

    // Takes memory from `base` without writing it again. `unchanged`: ranges in address order whose content
    // equals that of `base`, and which no run covers. Memory without an extent in `base` is zero now as it
    // was then.
    void keep(const Content& base, const std::vector<Range>& unchanged);

    // Writes memory that other ranks probably hold as well (`ranges` as above) into a text file beside this
    // image, named by its content; the rank that comes first writes the file. Done at once, not by the pump.
    void share(const std::vector<Range>& ranges);

    // Index, header, fsync.
    Summary finish();
    // After finish() or conclude().
    Content content() const;

    // finish() split into steps, so that a forked child can do the writing. prepare() allocates all that is
    // needed; runs after later() are left for write_rest(). write_first() and write_rest() use no malloc, no
    // lock and no exception, and keep their results in memory shared with the child; conclude() throws what
    // went wrong.
    void later();
    void prepare();
    // In a file of several: the most bytes that the image may need, known after prepare(); then where its
    // part begins.
    uint64_t room() const;
    void place(uint64_t begin);
    void write_first() noexcept;
    void write_rest() noexcept;
    Summary conclude();
    // The descriptor that the writing child must keep open.
    int descriptor() const;

  private:
    void add(uint64_t address, const void* data, uint64_t length, bool ground);
    void seal() noexcept;
    uint64_t largest_index() const;

    files::Folder folder_;
    Identity identity_;
    WriteOptions options_;
    std::unique_ptr<Sink> sink_;
    std::vector<Blob> blobs_;
    std::unique_ptr<Header> header_;
    std::vector<std::byte> front_;  // the index up to the blocks
    std::unique_ptr<Pump> pump_;
    std::unique_ptr<Pages> sealed_index_;
    std::vector<std::pair<std::string, Fd>> texts_;  // written by this rank, not yet synced
    std::optional<Rank> group_;                      // the lowest rank of those whose file this is
};

// Reads an image. The constructor has compared header and index, also the headers of the references; data is
// compared as it is read.
class Reader {
  public:
    // `key`: null for an image without encryption; throws KeyError when it does not fit.
    explicit Reader(const Place& place, const Key* key = nullptr);
    ~Reader();

    const Identity& identity() const { return identity_; }
    const Summary& summary() const { return summary_; }
    const std::vector<Blob>& blobs() const { return blobs_; }
    // Throws when there is none of this name.
    const std::vector<std::byte>& blob(const std::string& name) const;
    const std::vector<Reference>& references() const { return references_; }
    const std::vector<Block>& blocks() const { return blocks_; }
    const std::vector<Extent>& extents() const { return extents_; }  // address order

    // The file of a block and where it is in there, for messages.
    const std::string& file_of(const Block& block) const;
    uint64_t offset_of(const Block& block) const;
    // Reads the content of a block to `destination` and compares its checksum; throws with file and offset.
    void read(const Block& block, void* destination) const;
    // Reads everything, in parallel, to where `place` says (called before anything is read, for each extent);
    // or only the blocks that `wanted` says.
    void load(const std::function<void*(const Extent&)>& place, unsigned threads = 0,
              const std::function<bool(uint32_t block)>& wanted = {}) const;
    // load() reads past the page cache from so many bytes on. Less comes faster with what the kernel reads
    // ahead (docs/internals/images.md).
    void set_uncached_from(uint64_t bytes) { uncached_from_ = bytes; }
    // Descriptors of the image's file and of all its sources.
    std::vector<int> descriptors() const;
    // Compares every byte that a restart would read.
    void verify() const;

  private:
    class Scratch;
    void open_reference(const Reference& reference, const Key* key);
    Place place_of_image(const files::Folder& other, const Reference& reference) const;
    void check_blocks() const;
    void check_extents();
    // `fresh`: nothing is in that memory yet.
    void fetch(const Block& block, void* destination, Scratch& scratch, Stream& file, bool fresh) const;
    void check(const Block& block, const void* content) const;

    files::Folder folder_;
    std::string path_;
    Identity identity_;
    Summary summary_;
    std::vector<std::unique_ptr<Source>> sources_;  // this image's, then what it refers to
    std::vector<FileKey> keys_;
    std::vector<Blob> blobs_;
    std::vector<Reference> references_;
    std::vector<Block> blocks_;
    std::vector<Extent> extents_;
    uint64_t uncached_from_ = 1 << 30;
};

}  // namespace fermata::image
