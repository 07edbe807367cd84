#include "image/shared.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "image/format.h"

namespace fermata::image {
namespace {

constexpr char kTableMagic[8] = {'F', 'E', 'R', 'M', 'J', 'O', 'B', '1'};
constexpr uint32_t kTableVersion = 1;

// Then u64 begin for every rank, and the checksum of all that.
struct TableHeader {
    char magic[8];
    uint32_t version;
    uint32_t ranks;
    uint64_t job;
    uint32_t generation;
    uint32_t reserved;
    uint64_t bytes;
};
static_assert(std::is_trivially_copyable_v<TableHeader> && sizeof(TableHeader) == 40);

uint64_t table_size(uint64_t ranks) {
    return sizeof(TableHeader) + ranks * sizeof(uint64_t) + sizeof(Checksum);
}

}  // namespace

SharedFile::SharedFile(const files::Folder& folder)
    : path_(folder.path_of(kSharedName)), fd_(folder.create(kSharedName)) {}

std::vector<uint64_t> SharedFile::lay_out(const std::vector<uint64_t>& lengths) {
    std::vector<uint64_t> begins;
    begins.reserve(lengths.size());
    uint64_t at = aligned(table_size(lengths.size()));
    for (uint64_t length : lengths) {
        begins.push_back(at);
        at = aligned(at + length);
    }
    return begins;
}

void SharedFile::finish(uint64_t job, uint32_t generation, const std::vector<uint64_t>& begins,
                        uint64_t end) {
    TableHeader header{};
    std::memcpy(header.magic, kTableMagic, sizeof kTableMagic);
    header.version = kTableVersion;
    header.ranks = static_cast<uint32_t>(begins.size());
    header.job = job;
    header.generation = generation;
    header.bytes = end;
    Packer table;
    table.value(header);
    table.bytes(begins.data(), begins.size() * sizeof(uint64_t));
    table.value(checksum_of(table.out.data(), table.out.size()));
    // Its length first: writes past the end of a file wait for each other.
    if (::ftruncate(fd_.get(), static_cast<off_t>(end)) != 0)
        fail_errno("cannot make {} {} bytes long", path_, end);
    write_all(fd_.get(), table.out.data(), table.out.size(), path_);
}

void SharedFile::sync() { sync_file(fd_.get(), path_); }

SharedFile::Table SharedFile::read(const Place& file) {
    const std::string path = file.path();
    Fd fd = file.folder.read(file.name);
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) fail_errno("cannot stat {}", path);
    auto size = static_cast<uint64_t>(st.st_size);
    TableHeader header;
    if (size < sizeof header) fail("{} is truncated: {} bytes, not even a table", path, size);
    pread_all(fd.get(), &header, sizeof header, 0, path);
    if (std::memcmp(header.magic, kTableMagic, sizeof kTableMagic) != 0)
        fail("{} is not a file of images", path);
    if (table_size(header.ranks) > size) fail("{} is truncated: {} bytes end in its table", path, size);
    std::vector<std::byte> bytes(table_size(header.ranks));
    pread_all(fd.get(), bytes.data(), bytes.size(), 0, path);
    Checksum checksum;
    std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
    if (checksum != checksum_of(bytes.data(), bytes.size() - sizeof checksum))
        fail("{} is damaged: checksum of its table at offset 0", path);
    if (header.version != kTableVersion)
        fail("{} has table format {}; this Fermata reads {}", path, header.version, kTableVersion);
    if (size != header.bytes)
        fail("{} is truncated or grown: {} bytes instead of {}", path, size, header.bytes);
    Table table{header.job, header.generation, header.bytes, std::vector<uint64_t>(header.ranks)};
    if (header.ranks > 0)
        std::memcpy(table.begins.data(), bytes.data() + sizeof header, header.ranks * sizeof(uint64_t));
    uint64_t last = 0;
    for (uint64_t begin : table.begins) {
        if (begin % kPage || begin < last + kPage || begin >= size)
            fail("{} is damaged: an impossible part at {}", path, begin);
        last = begin;
    }
    return table;
}

Place::Place(const std::string& path, std::optional<uint64_t> from) : begin(from) {
    auto [directory, file] = files::split_path(path);
    folder = files::Folder::at(directory);
    name = file;
}

Place place_of(const files::Folder& folder, Rank rank) {
    if (!folder.has(kSharedName)) return {folder, image_name(rank)};
    Place shared(folder, kSharedName);
    SharedFile::Table table = SharedFile::read(shared);
    if (rank.index() >= table.begins.size())
        fail("{} is of {} ranks: none has number {}", shared.path(), table.begins.size(), rank.number());
    shared.begin = table.begins[rank.index()];
    return shared;
}

}  // namespace fermata::image
