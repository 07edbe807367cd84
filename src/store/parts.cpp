#include "store/parts.h"

#include <unordered_map>

#include "base/invariant.h"
#include "image/shared.h"

namespace fermata::store {
namespace {

// The number that ranks of one file have in common.
uint32_t group_of(const image::Layout& layout, Rank rank, const std::vector<uint32_t>& node_of) {
    if (layout.kind() == image::Layout::Kind::node) return node_of[rank.index()];
    if (layout.kind() == image::Layout::Kind::group) return rank.number() / layout.ranks();
    return 0;
}

}  // namespace

Parts::Parts(const image::Layout& layout, const std::vector<uint32_t>& node_of) : layout_(layout) {
    if (!together()) return;
    std::unordered_map<uint32_t, uint32_t> numbers;  // of files, by group
    file_of_.reserve(node_of.size());
    always(node_of.size() <= Rank::kMost, "images of more ranks than a job can have");
    for (uint32_t r = 0; r < node_of.size(); ++r) {
        const Rank rank(r);
        auto [at, fresh] =
            numbers.try_emplace(group_of(layout, rank, node_of), static_cast<uint32_t>(files_.size()));
        if (fresh) files_.push_back({layout.file_of(rank, rank), {}, 0});
        files_[at->second].ranks.push_back(rank);
        file_of_.push_back(at->second);
    }
}

std::string Parts::file_of(Rank rank) const {
    return together() ? files_.at(file_of_.at(rank.index())).name : image::image_name(rank);
}

void Parts::create(const files::Folder& generation) const {
    for (const File& file : files_) image::SharedFile(generation, file.name);
}

void Parts::lay_out(const std::vector<uint64_t>& rooms) {
    if (!together()) return;
    always(rooms.size() == file_of_.size(), "room for images of another number of ranks");
    begins_.resize(rooms.size());
    for (File& file : files_) {
        std::vector<uint64_t> lengths;
        for (Rank rank : file.ranks) lengths.push_back(rooms.at(rank.index()));
        const std::vector<uint64_t> begins = image::SharedFile::lay_out(lengths);
        for (size_t i = 0; i < begins.size(); ++i) begins_[file.ranks[i].index()] = begins[i];
        always(begins.size() == file.ranks.size() && !begins.empty(), "a file of images without a rank");
        file.bytes = begins.back() + lengths.back();
    }
}

void Parts::finish(const files::Folder& generation, uint64_t job, uint32_t number) const {
    for (const File& file : files_) {
        std::vector<uint64_t> begins;
        for (Rank rank : file.ranks) begins.push_back(begin_of(rank));
        always(file.bytes > 0, "a file of images that is not laid out");
        image::SharedFile::made(generation, file.name)
            .finish(job, number, begins, file.bytes, layout_.in_groups() ? file.ranks : std::vector<Rank>());
    }
}

void Parts::note_in(Manifest& manifest) const {
    manifest.layout = layout_;
    if (!together()) return;
    always(manifest.images.size() == file_of_.size(), "a manifest of another number of ranks");
    for (const File& file : files_) manifest.files.push_back({file.name, file.bytes});
    for (ImageEntry& image : manifest.images) {
        image.file = file_of(image.rank);
        image.offset = begin_of(image.rank);
    }
}

}  // namespace fermata::store
