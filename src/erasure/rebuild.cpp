#include "erasure/rebuild.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"
#include "files/kept.h"
#include "files/move.h"
#include "image/checksum.h"

namespace fermata::erasure {

Rebuild::Rebuild(const Group& group, Source& source)
    : group_(group),
      source_(source),
      code_(group.layout()),
      room_(std::make_unique<uint8_t[]>(group.layout().data() * kPiece)) {}

void Rebuild::note(Member member, const std::string& what) {
    losses_.insert(fmt::format("{} of {}", what, group_.contents(member).host));
}

// Reads the head of a member's parity; none: that parity cannot be used.
const std::optional<ParityHead>& Rebuild::head_of(Member member) {
    auto known = heads_.find(member);
    if (known != heads_.end()) return known->second;
    std::optional<ParityHead>& head = heads_[member];
    const std::string path = fmt::format("{} of {}", kParityFile, group_.contents(member).host);
    try {
        std::vector<std::byte> bytes(ParityHead::kPreamble);
        source_.read(member, kParityFile, 0, bytes.data(), bytes.size());
        bytes.resize(ParityHead::size(bytes, path));
        source_.read(member, kParityFile, 0, bytes.data(), bytes.size());
        ParityHead found = ParityHead::parse(bytes, path);
        if (found.group().name() != group_.name() || found.member() != member)
            fail("{} is of another group", path);
        head = std::move(found);
    } catch (const Error& error) {
        losses_.insert(error.what());
    }
    return head;
}

bool Rebuild::fetch_data(Member member, uint64_t piece, uint8_t* to) {
    const Contents& contents = group_.contents(member);
    const std::vector<Span> spans = contents.spans(piece * kPiece, contents.bytes_of_piece(piece));
    for (const Span& span : spans)
        if (unreadable_.count({member, contents.files[span.file].name})) return false;
    try {
        if (read_data_piece(group_, member, piece, source_, to)) return true;
        always(!spans.empty(), "damage in a piece without bytes");
        note(member, fmt::format("{} (damaged)", contents.files[spans.front().file].name));
    } catch (const Error&) {
        for (const Span& span : spans) unreadable_.insert({member, contents.files[span.file].name});
        note(member, contents.files[spans.front().file].name);
    }
    return false;
}

bool Rebuild::fetch_parity(Member member, uint32_t row, uint64_t piece, uint8_t* to) {
    const auto& head = head_of(member);
    if (!head || unreadable_.count({member, kParityFile})) return false;
    try {
        source_.read(member, kParityFile, head->offset_of(row, piece), to, kPiece);
        if (image::checksum_of(to, kPiece) == head->checksum(row, piece)) return true;
        note(member, fmt::format("{} (damaged)", kParityFile));
    } catch (const Error&) {
        unreadable_.insert({member, kParityFile});
        note(member, kParityFile);
    }
    return false;
}

// One of the chunks of a stripe; false: it is lost.
bool Rebuild::fetch(Stripe stripe, Position position, uint64_t piece, uint8_t* to) {
    const Layout& layout = group_.layout();
    const Member member = layout.member_at(stripe, position);
    const uint32_t chunk = layout.chunk(stripe, member);
    return layout.is_data(position) ? fetch_data(member, chunk * group_.pieces_of_chunk() + piece, to)
                                    : fetch_parity(member, chunk, piece, to);
}

const Combination& Rebuild::combination(const std::vector<Position>& present, Position wanted) {
    const std::pair<std::vector<Position>, Position> key{present, wanted};
    auto known = combinations_.find(key);
    if (known == combinations_.end())
        known = combinations_.emplace(key, code_.rebuilding(present, {&wanted, 1})).first;
    return known->second;
}

void Rebuild::piece(Member member, uint64_t piece, uint8_t* to) {
    always(number(member) < group_.layout().members(), "a piece of a member that the group does not have");
    always(piece * kPiece < group_.contents(member).bytes(), "a piece behind the end of what a member had");
    if (fetch_data(member, piece, to)) return;
    const Layout& layout = group_.layout();
    const Stripe stripe =
        layout.stripe_of_data(member, static_cast<uint32_t>(piece / group_.pieces_of_chunk()));
    const Position wanted = layout.position(stripe, member);
    std::vector<Position> present;
    std::vector<const uint8_t*> from;
    for (uint32_t i = 0; i < layout.members() && present.size() < layout.data(); ++i) {
        uint8_t* const room = room_.get() + present.size() * kPiece;
        if (Position{i} == wanted || !fetch(stripe, Position{i}, piece % group_.pieces_of_chunk(), room))
            continue;
        present.push_back(Position{i});
        from.push_back(room);
    }
    const Contents& contents = group_.contents(member);
    if (present.size() < layout.data())
        fail("what {} had of {} cannot be rebuilt: of {} nodes that bear {} losses, more are lost ({})",
             contents.host, group_.generation().name(), layout.members(), layout.losses(),
             fmt::join(losses_, ", "));
    always(present.size() == from.size(), "chunks without their positions");
    uint8_t* const out[] = {to};
    combination(present, wanted).apply(from, out, kPiece);
    if (image::checksum_of(to, contents.bytes_of_piece(piece)) != contents.pieces.at(piece))
        fail("what {} had of {} was not rebuilt as it was: piece {}", contents.host,
             group_.generation().name(), piece);
}

void Rebuild::file(Member member, size_t file, const files::Folder& to, const Check& check,
                   const Between& between) {
    const Contents& contents = group_.contents(member);
    const File& wanted = contents.files.at(file);
    const std::string name = name_in_folder(wanted.name), unfinished = kRebuiltFile;
    to.remove_file(unfinished);
    try {
        const Fd fd = to.create(unfinished);
        const auto buffer = std::make_unique<uint8_t[]>(kPiece);
        const uint64_t begin = contents.begin_of(file), end = begin + wanted.bytes;
        for (uint64_t at = begin; at < end;) {
            const uint64_t in_piece = at % kPiece, length = std::min(kPiece - in_piece, end - at);
            piece(member, at / kPiece, buffer.get());
            write_all(fd.get(), buffer.get() + in_piece, length, to.path_of(unfinished));
            if (between) between(length);
            at += length;
        }
        if (check) check(to, unfinished);
        if (name != wanted.name) to.make(files::kKeptFolder);  // or it is there
        if (!files::move(to, unfinished, folder_of(to, wanted.name), name))
            fail_errno("cannot rename {}", to.path_of(unfinished));
    } catch (...) {
        to.remove_file(unfinished);
        throw;
    }
}

}  // namespace fermata::erasure
