#include "image/shared.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "image/format.h"

namespace fermata::image {
namespace {

constexpr char kTableMagic[8] = {'F', 'E', 'R', 'M', 'J', 'O', 'B', '1'};
// Version 1 is of all ranks: begins[rank]. Version 2 says whose the parts are.
constexpr uint32_t kAllRanks = 1, kSomeRanks = 2;

// Then u64 begin for every part, in version 2 u32 rank for every part, and the checksum of all that.
struct TableHeader {
    char magic[8];
    uint32_t version;
    uint32_t parts;
    uint64_t job;
    uint32_t generation;
    uint32_t reserved;
    uint64_t bytes;
};
static_assert(std::is_trivially_copyable_v<TableHeader> && sizeof(TableHeader) == 40);

uint64_t table_size(uint64_t parts, uint32_t version) {
    const uint64_t each = sizeof(uint64_t) + (version == kAllRanks ? 0 : sizeof(uint32_t));
    return sizeof(TableHeader) + parts * each + sizeof(Checksum);
}

// Ascending; throws when they cannot be.
std::vector<Rank> ranks_of(const TableHeader& header, const std::byte* bytes, const std::string& path) {
    std::vector<Rank> ranks;
    ranks.reserve(header.parts);
    for (uint32_t i = 0; i < header.parts; ++i) {
        uint32_t number = i;
        if (header.version == kSomeRanks)
            std::memcpy(&number, bytes + sizeof header + header.parts * sizeof(uint64_t) + i * sizeof number,
                        sizeof number);
        auto rank = Rank::of(number);
        if (!rank || (!ranks.empty() && *rank <= ranks.back()))
            fail("{} is damaged: an impossible rank {} in its table", path, number);
        ranks.push_back(*rank);
    }
    return ranks;
}

}  // namespace

std::optional<uint64_t> SharedFile::Table::begin_of(Rank rank) const {
    auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end() || *found != rank) return {};
    return begins[static_cast<size_t>(found - ranks.begin())];
}

SharedFile::SharedFile(const files::Folder& folder, const std::string& name)
    : SharedFile(folder, name, Made()) {
    (void)folder_.create(name_);
}

std::vector<uint64_t> SharedFile::lay_out(const std::vector<uint64_t>& lengths) {
    always(lengths.size() <= Rank::kMost, "a file for more ranks than a job can have");
    std::vector<uint64_t> begins;
    begins.reserve(lengths.size());
    uint64_t at = aligned(table_size(lengths.size(), kSomeRanks));
    for (uint64_t length : lengths) {
        begins.push_back(at);
        at = aligned(at + length);
    }
    return begins;
}

void SharedFile::finish(uint64_t job, uint32_t generation, const std::vector<uint64_t>& begins, uint64_t end,
                        const std::vector<Rank>& ranks) const {
    always(begins.size() <= Rank::kMost && (ranks.empty() || ranks.size() == begins.size()),
           "a file of images without a part for each rank");
    for (size_t i = 1; i < ranks.size(); ++i)
        always(ranks[i - 1] < ranks[i], "ranks of a file that do not ascend");
    uint64_t last = 0;
    for (uint64_t begin : begins) {  // as read() wants it
        always(begin % kPage == 0 && begin >= last + kPage && begin < end,
               "a part of a file that no reader takes");
        last = begin;
    }
    TableHeader header{};
    std::memcpy(header.magic, kTableMagic, sizeof kTableMagic);
    header.version = ranks.empty() ? kAllRanks : kSomeRanks;
    header.parts = static_cast<uint32_t>(begins.size());
    header.job = job;
    header.generation = generation;
    header.bytes = end;
    Packer table;
    table.value(header);
    table.bytes(begins.data(), begins.size() * sizeof(uint64_t));
    for (Rank rank : ranks) table.value(rank.number());
    table.value(checksum_of(table.out.data(), table.out.size()));
    always(table.out.size() == table_size(begins.size(), header.version),
           "a table of another length than readers take");
    Fd file = folder_.write(name_);
    // Its length first: writes past the end of a file wait for each other.
    if (::ftruncate(file.get(), static_cast<off_t>(end)) != 0)
        fail_errno("cannot make {} {} bytes long", path(), end);
    write_all(file.get(), table.out.data(), table.out.size(), path());
}

void SharedFile::sync() const { sync_file(folder_.write(name_).get(), path()); }

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
    if (header.version != kAllRanks && header.version != kSomeRanks)
        fail("{} has table format {}; this Fermata reads {} and {}", path, header.version, kAllRanks,
             kSomeRanks);
    // Before there is memory for it.
    if (header.parts > Rank::kMost) fail("{} is damaged: an impossible number of parts", path);
    const uint64_t table_bytes = table_size(header.parts, header.version);
    if (table_bytes > size) fail("{} is truncated: {} bytes end in its table", path, size);
    std::vector<std::byte> bytes(table_bytes);
    pread_all(fd.get(), bytes.data(), bytes.size(), 0, path);
    Checksum checksum;
    std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
    if (checksum != checksum_of(bytes.data(), bytes.size() - sizeof checksum))
        fail("{} is damaged: checksum of its table at offset 0", path);
    if (size != header.bytes)
        fail("{} is truncated or grown: {} bytes instead of {}", path, size, header.bytes);
    Table table{header.job, header.generation, header.bytes, ranks_of(header, bytes.data(), path),
                std::vector<uint64_t>(header.parts)};
    if (header.parts > 0)
        std::memcpy(table.begins.data(), bytes.data() + sizeof header, header.parts * sizeof(uint64_t));
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

namespace {

Place part_of(Place file, Rank rank) {
    const SharedFile::Table table = SharedFile::read(file);
    file.begin = table.begin_of(rank);
    if (!file.begin)
        fail("{} is of {} ranks: none has number {}", file.path(), table.ranks.size(), rank.number());
    return file;
}

}  // namespace

Place place_of(const files::Folder& folder, Rank rank) {
    if (!folder.has(kSharedName)) return {folder, image_name(rank)};
    Place shared(folder, kSharedName);
    return part_of(std::move(shared), rank);
}

Place place_in_group(const files::Folder& folder, Rank lowest, Rank rank) {
    return part_of(Place(folder, group_name(lowest)), rank);
}

}  // namespace fermata::image
