#include "erasure/encode.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/invariant.h"
#include "erasure/code.h"
#include "erasure/parity_file.h"
#include "image/spare.h"

namespace fermata::erasure {
namespace {

// Pieces that are asked for before the one that is read: what another node sends while this one encodes.
constexpr uint64_t kAhead = 4;

// The input of one piece of parity: a piece of each chunk of data in the stripe.
class Inputs {
  public:
    Inputs(const Group& group, Source& source)
        : group_(group), source_(source), room_(std::make_unique<uint8_t[]>(group.layout().data() * kPiece)) {
        for (uint32_t i = 0; i < group.layout().data(); ++i) pieces_.push_back(room_.get() + i * kPiece);
    }
    void expect(Stripe stripe, uint64_t piece) {
        each(stripe, piece, [&](uint32_t, Member member, uint64_t in_data) {
            const Contents& contents = group_.contents(member);
            for (const Span& span : contents.spans(in_data * kPiece, contents.bytes_of_piece(in_data)))
                source_.expect(member, contents.files[span.file].name, span.offset, span.bytes);
        });
    }
    void read(Stripe stripe, uint64_t piece) {
        bytes_ = 0;
        each(stripe, piece, [&](uint32_t place, Member member, uint64_t in_data) {
            if (!read_data_piece(group_, member, in_data, source_, room_.get() + place * kPiece))
                fail("what {} has of {} is damaged, or has changed: piece {}", group_.contents(member).host,
                     group_.generation().name(), in_data);
            bytes_ += group_.contents(member).bytes_of_piece(in_data);
        });
    }
    const std::vector<const uint8_t*>& pieces() const { return pieces_; }
    uint64_t bytes() const { return bytes_; }

  private:
    // `f` of each place in the stripe, whose chunk that is, and the piece in the data of that member.
    template <class F>
    void each(Stripe stripe, uint64_t piece, F&& f) const {
        always(piece < group_.pieces_of_chunk(), "a piece behind the end of its chunk");
        const Layout& layout = group_.layout();
        for (uint32_t i = 0; i < layout.data(); ++i) {
            const Member member = layout.member_at(stripe, Position{i});
            f(i, member, layout.chunk(stripe, member) * group_.pieces_of_chunk() + piece);
        }
    }
    const Group& group_;
    Source& source_;
    std::unique_ptr<uint8_t[]> room_;
    std::vector<const uint8_t*> pieces_;
    uint64_t bytes_ = 0;
};

void write_at(int fd, const void* data, size_t size, uint64_t offset, const std::string& path) {
    auto* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t n = ::pwrite(fd, at, size, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot write {}", path);
        at += n;
        offset += static_cast<uint64_t>(n);
        size -= static_cast<size_t>(n);
    }
}

// All pieces of all rows, one after the other; the next one is read while this one is encoded.
void write_pieces(const Group& group, Member member, Source& source, int fd, const std::string& path,
                  const Between& between) {
    const Layout& layout = group.layout();
    const uint64_t of_chunk = group.pieces_of_chunk(), count = layout.losses() * of_chunk;
    std::vector<Combination> rows;
    for (uint32_t row = 0; row < layout.losses(); ++row) rows.push_back(Code(layout).parity(row, 1));
    std::vector<image::Checksum> checksums(count);
    const ParityHead empty(group, member, checksums);
    const auto parity = std::make_unique<uint8_t[]>(kPiece);
    Inputs one(group, source), other(group, source), *now = &one, *next = &other;
    const auto stripe_of = [&](uint64_t i) {
        return layout.stripe_of_parity(member, static_cast<uint32_t>(i / of_chunk));
    };
    uint64_t expected = 0;
    const auto read = [&](Inputs& to, uint64_t i) {
        for (; expected < std::min(count, i + 1 + kAhead); ++expected)
            to.expect(stripe_of(expected), expected % of_chunk);
        to.read(stripe_of(i), i % of_chunk);
    };
    always(number(member) < layout.members(), "parity of a member that the group does not have");
    always(checksums.size() == count, "checksums of another number of pieces of parity");
    if (count > 0) read(*now, 0);
    for (uint64_t i = 0; i < count; ++i) {
        std::future<void> reading;  // its end is waited for, whatever happens
        if (i + 1 < count) reading = std::async(std::launch::async, [&, i] { read(*next, i + 1); });
        const auto row = static_cast<uint32_t>(i / of_chunk);
        uint8_t* const out[] = {parity.get()};
        rows[row].apply(now->pieces(), out, kPiece);
        checksums[i] = image::checksum_of(parity.get(), kPiece);
        write_at(fd, parity.get(), kPiece, empty.offset_of(row, i % of_chunk), path);
        if (between) between(now->bytes());
        if (reading.valid()) reading.get();
        std::swap(now, next);
    }
    std::vector<std::byte> head = ParityHead(group, member, checksums).to_bytes();
    const uint64_t begin = empty.file_bytes() - group.parity_bytes();
    always(head.size() <= begin, "a head that runs into what it is of");
    head.resize(begin);  // zeros, whatever the file was before
    write_at(fd, head.data(), head.size(), 0, path);
    // Its length, where it has no pieces.
    if (::ftruncate(fd, static_cast<off_t>(empty.file_bytes())) != 0) fail_errno("cannot write {}", path);
}

}  // namespace

bool read_data_piece(const Group& group, Member member, uint64_t piece, Source& source, uint8_t* to) {
    const Contents& contents = group.contents(member);
    const uint64_t bytes = contents.bytes_of_piece(piece);
    uint64_t filled = 0;
    for (const Span& span : contents.spans(piece * kPiece, bytes)) {
        source.read(member, contents.files[span.file].name, span.offset, to + filled, span.bytes);
        filled += span.bytes;
    }
    always(filled == bytes && bytes <= kPiece, "a piece that is not whole");
    std::memset(to + bytes, 0, kPiece - bytes);
    return bytes == 0 || image::checksum_of(to, bytes) == contents.pieces.at(piece);
}

bool is_intact(const Group& group, Member member, size_t file, Source& source) {
    const Contents& contents = group.contents(member);
    const uint64_t begin = contents.begin_of(file), end = begin + contents.files.at(file).bytes;
    const auto room = std::make_unique<uint8_t[]>(kPiece);
    try {
        for (uint64_t at = begin / kPiece * kPiece; at < end; at += kPiece)
            if (!read_data_piece(group, member, at / kPiece, source, room.get())) return false;
    } catch (const Error&) {
        return false;
    }
    return true;
}

void write_parity(const Group& group, Member member, Source& source, const files::Folder& to,
                  const Between& between) {
    const std::string name = kUnfinishedParity;
    to.remove_file(name);  // of an attempt that was given up
    try {
        auto spare = image::take_spare(to, name, kParityFile, group.parity_bytes());
        const Fd fd = spare ? std::move(*spare) : to.create(name);
        write_pieces(group, member, source, fd.get(), to.path_of(name), between);
        if (!to.rename(name, kParityFile)) fail_errno("cannot rename {}", to.path_of(name));
    } catch (...) {
        to.remove_file(name);
        throw;
    }
}

}  // namespace fermata::erasure
