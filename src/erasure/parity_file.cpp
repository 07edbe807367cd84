#include "erasure/parity_file.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/page.h"
#include "image/format.h"

namespace fermata::erasure {
namespace {

constexpr char kMagic[8] = {'F', 'E', 'R', 'M', 'R', 'S', 'P', '1'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostHead = uint64_t{1} << 30;

struct Preamble {
    char magic[8];
    uint32_t version;
    uint32_t member;
    uint64_t head;  // bytes of the head
};
static_assert(std::is_trivially_copyable_v<Preamble> && sizeof(Preamble) == ParityHead::kPreamble);

Preamble preamble_of(const std::vector<std::byte>& bytes, const std::string& path) {
    Preamble preamble{};
    if (bytes.size() >= sizeof preamble) std::memcpy(&preamble, bytes.data(), sizeof preamble);
    if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) fail("{} is not a file of parity", path);
    if (preamble.version != kVersion)
        fail("{} has format {}; this Fermata reads {}", path, preamble.version, kVersion);
    return preamble;
}

uint64_t begin_of_data(uint64_t head) { return (head + kPage - 1) / kPage * kPage; }

}  // namespace

ParityHead::ParityHead(Group group, Member member, std::vector<image::Checksum> pieces)
    : group_(std::move(group)), member_(member), pieces_(std::move(pieces)) {
    always(number(member_) < group_.layout().members() &&
               pieces_.size() == group_.layout().losses() * group_.pieces_of_chunk(),
           "parity of another group");
    data_ = begin_of_data(to_bytes().size());
}

uint64_t ParityHead::size(const std::vector<std::byte>& preamble, const std::string& path) {
    const uint64_t size = preamble_of(preamble, path).head;
    if (size < kPreamble + sizeof(image::Checksum) || size > kMostHead)
        fail("{} is damaged: impossible length of its head", path);
    return size;
}

std::vector<std::byte> ParityHead::to_bytes() const {
    const std::vector<std::byte> of_group = group_.to_bytes();
    const uint64_t checksums = pieces_.size() * sizeof(image::Checksum);
    Preamble preamble{{}, kVersion, number(member_), 0};
    std::memcpy(preamble.magic, kMagic, sizeof kMagic);
    preamble.head = kPreamble + 2 * sizeof(uint64_t) + of_group.size() + checksums + sizeof(image::Checksum);
    image::Packer out;
    out.value(preamble);
    out.sized(of_group.data(), of_group.size());
    out.sized(pieces_.data(), checksums);
    out.value(image::checksum_of(out.out.data(), out.out.size()));
    always(out.out.size() == preamble.head && preamble.head <= kMostHead,
           "a head of parity of another length than it says");
    return std::move(out.out);
}

ParityHead ParityHead::parse(const std::vector<std::byte>& bytes, const std::string& path) {
    if (size(bytes, path) != bytes.size()) fail("{} is truncated: it ends in its head", path);
    image::Checksum checksum;
    const size_t end = bytes.size() - sizeof checksum;
    std::memcpy(&checksum, bytes.data() + end, sizeof checksum);
    if (checksum != image::checksum_of(bytes.data(), end)) fail("{} is damaged: checksum of its head", path);
    const uint32_t member = preamble_of(bytes, path).member;
    const std::vector<std::byte> body(bytes.begin() + kPreamble, bytes.begin() + static_cast<ptrdiff_t>(end));
    image::Unpacker in(body, path);
    const auto size_of_group = in.value<uint64_t>();
    const std::byte* const of_group = in.take(size_of_group);
    Group group = Group::parse({of_group, of_group + size_of_group}, path);
    if (member >= group.layout().members()) fail("{} is damaged: an impossible member", path);
    const auto size_of_pieces = in.value<uint64_t>();
    if (size_of_pieces != group.layout().losses() * group.pieces_of_chunk() * sizeof checksum)
        fail("{} is damaged: checksums of another number of pieces", path);
    const std::byte* const of_pieces = in.take(size_of_pieces);
    std::vector<image::Checksum> pieces(size_of_pieces / sizeof checksum);
    if (size_of_pieces > 0) std::memcpy(pieces.data(), of_pieces, size_of_pieces);
    if (!in.at_end()) fail("{} is damaged: it goes on after its end", path);
    return {std::move(group), Member{member}, std::move(pieces)};
}

uint64_t ParityHead::offset_of(uint32_t row, uint64_t piece) const {
    always(row < group_.layout().losses() && piece < group_.pieces_of_chunk(), "a piece that no member has");
    return data_ + row * group_.chunk() + piece * kPiece;
}

ParityHead read_parity_head(const files::Folder& folder) {
    const std::string path = folder.path_of(kParityFile);
    const Fd fd = folder.read(kParityFile);
    const uint64_t all = folder.size_of(kParityFile).value_or(0);
    if (all < ParityHead::kPreamble) fail("{} is truncated: {} bytes, not even a head", path, all);
    std::vector<std::byte> bytes(ParityHead::kPreamble);
    pread_all(fd.get(), bytes.data(), bytes.size(), 0, path);
    const uint64_t size = ParityHead::size(bytes, path);
    if (size > all) fail("{} is truncated: {} bytes end in its head", path, all);
    bytes.resize(size);
    pread_all(fd.get(), bytes.data(), bytes.size(), 0, path);
    ParityHead head = ParityHead::parse(bytes, path);
    if (head.file_bytes() != all)
        fail("{} is truncated or grown: {} bytes instead of {}", path, all, head.file_bytes());
    return head;
}

}  // namespace fermata::erasure
