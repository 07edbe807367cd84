// The head of a file of parity, with all it says of its group.
#include <cstring>

#include "base/error.h"
#include "erasure/parity_file.h"
#include "fuzz.h"
#include "image/image.h"

namespace fermata::fuzz {
namespace {

constexpr size_t kChecksum = 16, kHeadAt = 16, kGroupAt = erasure::ParityHead::kPreamble,
                 kMembersAt = kGroupAt + 16;
const std::string kPath = "/dev/shm/gen-000007/parity.rs";

std::vector<std::byte> bytes_of(Input input) {
    auto* begin = reinterpret_cast<const std::byte*>(input.data());
    return {begin, begin + input.size()};
}

Verdict run(Input input) {
    try {
        const erasure::ParityHead head = erasure::ParityHead::parse(bytes_of(input), kPath);
        require(head.to_bytes() == bytes_of(input), "another head was written than was read");
        const erasure::Group& group = head.group();
        const erasure::Layout& layout = group.layout();
        require(number(head.member()) < layout.members() && layout.losses() < layout.members(),
                "an impossible member or group was accepted");
        for (const erasure::Contents& contents : group.members()) {
            require(contents.job == group.job() && contents.generation == group.generation(),
                    "members of different generations were accepted");
            require(contents.bytes() <= group.chunk() * layout.data(), "data that no chunk has");
            for (const erasure::File& file : contents.files)
                require(file.name.find("..") == std::string::npos && file.name[0] != '/',
                        "a file outside the generation: " + file.name);
        }
        return Verdict::accepted;
    } catch (const Error& error) {
        require(std::string(error.what()).find(kPath) != std::string::npos,
                std::string("a refusal without the file's name: ") + error.what());
        return Verdict::refused;
    }
}

Bytes meaning(Input input) {
    const std::vector<std::byte> bytes = erasure::ParityHead::parse(bytes_of(input), kPath).to_bytes();
    Bytes all(bytes.size());
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
}

void put_checksum(Bytes& bytes, size_t begin, size_t end) {
    const image::Checksum sum = image::checksum_of(bytes.data() + begin, end - begin);
    std::memcpy(bytes.data() + end, sum.bytes.data(), kChecksum);
}

// Of each member's contents, as far as the lengths lead, and of all.
void seal(Bytes& bytes) {
    if (bytes.size() < kMembersAt + kChecksum) return;
    uint64_t size = bytes.size();
    std::memcpy(bytes.data() + kHeadAt, &size, sizeof size);
    uint32_t members = 0;
    std::memcpy(&members, bytes.data() + kMembersAt - 4, sizeof members);
    for (size_t at = kMembersAt; members-- > 0 && at + 8 <= bytes.size();) {
        std::memcpy(&size, bytes.data() + at, sizeof size);
        at += 8;
        if (size > bytes.size() - at || size < kChecksum) break;
        put_checksum(bytes, at, at + size - kChecksum);
        at += size;
    }
    put_checksum(bytes, 0, bytes.size() - kChecksum);
}

erasure::Contents contents(const std::string& host, uint32_t rank, uint64_t bytes) {
    erasure::Contents one{
        0x1234567890abcdef, Generation(7), host, {{image::image_name(Rank(rank)), bytes}}, {}};
    one.pieces.resize((bytes + erasure::kPiece - 1) / erasure::kPiece);
    return one;
}

Bytes head_of(std::vector<erasure::Contents> members, uint32_t losses, uint32_t member) {
    const erasure::Group group = erasure::Group::of(std::move(members), losses);
    const size_t pieces = losses * group.pieces_of_chunk();
    const auto head =
        erasure::ParityHead(group, erasure::Member{member}, std::vector<image::Checksum>(pieces));
    const std::vector<std::byte> bytes = head.to_bytes();
    Bytes all(bytes.size());
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
}

std::vector<Bytes> seeds() {
    erasure::Contents more = contents("c", 2, 3 << 20);
    more.files.insert(more.files.begin(), {erasure::kKeptPrefix + std::string(32, 'a'), 5});
    more.pieces.resize(4);
    return {head_of({contents("a", 0, 4096), contents("b", 1, 100)}, 1, 1),
            head_of({contents("a", 0, 4096), contents("b", 1, 5 << 20), more}, 2, 0)};
}

}  // namespace

const Target parity_head{"parity_head", run, seal, seeds, meaning};

}  // namespace fermata::fuzz
