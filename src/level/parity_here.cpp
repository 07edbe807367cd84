#include "level/parity_here.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "erasure/names.h"
#include "erasure/parity_file.h"
#include "image/names.h"
#include "level/place.h"

namespace fermata::level {
namespace {

using erasure::Contents;
using erasure::Group;
using erasure::Member;

constexpr uint64_t kMostContents = uint64_t{1} << 30;

std::optional<Member> member_on(const Group& group, const std::string& node) {
    for (uint32_t i = 0; i < group.layout().members(); ++i)
        if (group.contents(Member{i}).host == node) return Member{i};
    return {};
}

std::optional<size_t> file_of(const Contents& contents, const std::string& name) {
    for (size_t i = 0; i < contents.files.size(); ++i)
        if (contents.files[i].name == name) return i;
    return {};
}

void check_pieces(const erasure::ParityHead& head, const files::Folder& folder) {
    const std::string path = folder.path_of(erasure::kParityFile);
    const Fd file = folder.read(erasure::kParityFile);
    const auto piece = std::make_unique<uint8_t[]>(erasure::kPiece);
    for (uint32_t row = 0; row < head.group().layout().losses(); ++row)
        for (uint64_t i = 0; i < head.group().pieces_of_chunk(); ++i) {
            pread_all(file.get(), piece.get(), erasure::kPiece, head.offset_of(row, i), path);
            if (image::checksum_of(piece.get(), erasure::kPiece) != head.checksum(row, i))
                fail("{} is damaged: checksum of the piece at offset {}", path, head.offset_of(row, i));
        }
}

void check_contents(const files::Folder& folder, const Contents& wanted) {
    const std::string path = folder.path_of(erasure::kContentsFile);
    const std::string text = folder.text(erasure::kContentsFile, kMostContents);
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    if (Contents::parse({begin, begin + text.size()}, path) != wanted) fail("{} is of another group", path);
}

}  // namespace

ParityHere::ParityHere(const std::vector<Shelf>& shelves, uint64_t job, Generation generation)
    : shelves_(shelves), job_(job), generation_(generation) {
    for (const Shelf& shelf : shelves_)
        if (shelf.in_memory() && shelf.folder.has(erasure::kParityFile)) look_at(shelf);
}

// A head that can be read is believed although pieces behind it are damaged: it has a checksum of its own.
void ParityHere::look_at(const Shelf& shelf) {
    try {
        const erasure::ParityHead head = erasure::read_parity_head(shelf.folder);
        const Group& group = head.group();
        if (group.job() != job_ || group.generation() != generation_ ||
            group.contents(head.member()).host != shelf.place->node)
            fail("{} is of another generation or node", shelf.folder.path_of(erasure::kParityFile));
        add(group);
        check_pieces(head, shelf.folder);
        check_contents(shelf.folder, group.contents(head.member()));
    } catch (const Error& error) {
        if (shelf.folder.has(erasure::kParityFile)) damage_.push_back({&shelf, error.what()});
    }
}

void ParityHere::add(const Group& group) {
    always(group.job() == job_ && group.generation() == generation_, "a group of another generation");
    if (std::none_of(groups_.begin(), groups_.end(),
                     [&](const Group& known) { return known.name() == group.name(); }))
        groups_.push_back(group);
}

erasure::Folders ParityHere::folders_of(const Group& group) const {
    std::vector<std::optional<files::Folder>> folders(group.layout().members());
    for (const Shelf& shelf : shelves_)
        if (auto member = shelf.in_memory() ? member_on(group, shelf.place->node) : std::nullopt)
            folders[number(*member)] = shelf.folder;
    return erasure::Folders(std::move(folders));
}

std::vector<std::string> ParityHere::rebuild(const Shelf& shelf, Rank rank,
                                             const erasure::Rebuild::Check& check) const {
    std::string why = "no parity is here";
    for (const Group& group : groups_)
        for (uint32_t i = 0; i < group.layout().members(); ++i) {
            const Contents& contents = group.contents(Member{i});
            const auto image = file_of(contents, image::image_name(rank));
            if (!image) continue;
            try {
                if (const uint64_t room = room_in_memory(shelf.folder); room < contents.bytes())
                    fail("{} of memory for {}", human_size(room), human_size(contents.bytes()));
                erasure::Folders source = folders_of(group);
                erasure::Rebuild rebuilding(group, source);
                std::vector<std::string> made;
                for (size_t k = 0; k < contents.files.size(); ++k) {
                    const erasure::File& file = contents.files[k];
                    if (image::is_image_name(file.name)) continue;
                    if (contents.host == shelf.place->node ? erasure::is_intact(group, Member{i}, k, source)
                                                           : erasure::is_there(shelf.folder, file))
                        continue;
                    rebuilding.file(Member{i}, k, shelf.folder);
                    made.push_back(file.name);
                }
                rebuilding.file(Member{i}, *image, shelf.folder, check);
                made.push_back(contents.files[*image].name);
                return made;
            } catch (const Error& error) {
                why = error.what();
            }
        }
    fail("{}", why);
}

void ParityHere::encode(const Shelf& shelf) const {
    for (const Group& group : groups_)
        if (auto member = member_on(group, shelf.place->node)) {
            const std::vector<std::byte> bytes = group.contents(*member).to_bytes();
            if (const uint64_t room = room_in_memory(shelf.folder); room < group.parity_bytes())
                fail("{} of memory for {}", human_size(room), human_size(group.parity_bytes()));
            erasure::Folders source = folders_of(group);
            erasure::write_parity(group, *member, source, shelf.folder);
            shelf.folder.replace_unsynced(erasure::kContentsFile,
                                          {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            return;
        }
    fail("no other parity of its group is here");
}

}  // namespace fermata::level
