#include "level/copies.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/invariant.h"
#include "level/place.h"
#include "store/remove.h"

namespace fermata::level {
namespace {

constexpr useconds_t kRemoval = 100'000;  // a job that runs removes what it does not keep

// Finds directories of this user only: nobody else's memory is believed or mended.
std::vector<Shelf> shelves_on_nodes(uint64_t job, Generation generation) {
    std::vector<Shelf> all;
    for (const NodeFolder& node : nodes_here(job)) try {
            auto folder = node.folder.find(generation.name());
            if (!folder || folder->owner() != ::geteuid()) continue;
            const auto marker = store::read_marker(*folder);
            // A right marker of something else is not damaged.
            if (marker && *marker != store::Marker{job, generation.number()}) continue;
            all.push_back({*folder, node.place, true});
        } catch (const Error&) {
            // As if it were not there.
        }
    return all;
}

// Generations in files that early builds made have none.
bool is_marked(const Shelf& shelf, const store::Marker& marker) {
    if (shelf.in_files() && !shelf.folder.has(store::kMarker)) return true;
    return store::read_marker(shelf.folder) == marker;
}

bool is_there_still(const Shelf& shelf) {
    auto folder = files::Folder::find_at(shelf.folder.path());
    return folder && folder->has(store::kMarker);
}

}  // namespace

Copies::Copies(const store::GenerationInfo& info, const image::Key* key, Judge judge)
    : info_(info), key_(key), judge_(std::move(judge)) {
    always(info_.manifest.has_value() && judge_, "copies of a generation without a manifest, or a judge");
    const store::Manifest& manifest = *info_.manifest;
    if (!manifest.on_nodes()) shelves_.push_back({info_.folder, {}, true});
    // Another user's manifest is no reason to look at, or to write to, what this user's nodes keep of a job.
    const uid_t owner = info_.folder.owner();
    if (manifest.step || (owner != ::geteuid() && owner != 0)) return;
    for (Shelf& shelf : shelves_on_nodes(manifest.job, Generation(info_.number)))
        shelves_.push_back(std::move(shelf));
}

// On a node each image is a file.
std::string Copies::name_on(const Shelf& shelf, const store::ImageEntry& entry) {
    return shelf.in_files() ? entry.file : image::image_name(entry.rank);
}

image::Place Copies::place_on(const Shelf& shelf, const store::ImageEntry& entry) const {
    return shelf.in_files() ? info_.place(entry) : image::Place(shelf.folder, name_on(shelf, entry));
}

std::vector<KeptFile> Copies::check(const image::Place& place, const store::ImageEntry& entry) const {
    image::Reader reader(place, key_);
    if (!info_.is_of(entry, reader)) fail("{} is not the image that the manifest names", place.path());
    const std::vector<uint32_t>& needs = info_.manifest->needs;
    for (const image::Reference& reference : reader.references())
        if (reference.generation != info_.number &&
            std::count(needs.begin(), needs.end(), reference.generation) == 0)
            fail("{} refers to generation {}, of which the manifest says nothing", place.path(),
                 reference.generation);
    reader.verify();
    return judge_(reader, place.folder);
}

Copies::Found Copies::look_at(const Shelf& shelf, const store::ImageEntry& entry) const {
    const std::string name = name_on(shelf, entry);
    std::string why;
    try {
        if (shelf.folder.has(name)) {
            check(place_on(shelf, entry), entry);
            return {State::intact, ""};
        }
        const store::Manifest& manifest = *info_.manifest;
        const bool due = shelf.in_files() || (manifest.on_nodes() &&
                                              shelf.place == NodePlace{manifest.nodes.at(entry.rank.index()),
                                                                       store::medium_of(manifest.level)});
        if (!due) return {State::absent, ""};
        why = shelf.folder.path_of(name) + " is missing";
    } catch (const image::KeyError&) {
        throw;
    } catch (const Error& error) {
        why = error.what();
        if (shelf.in_files()) why += info_.note_of(entry);
    }
    if (!shelf.in_files()) {
        if (!is_there_still(shelf)) return {State::absent, ""};
        if (why.ends_with(" is missing")) ::usleep(kRemoval);
        if (!is_there_still(shelf)) return {State::absent, ""};
    }
    return {State::damaged, why};
}

void Copies::look(std::function<bool(Rank)> wanted) {
    wanted_ = std::move(wanted);
    look();
}

void Copies::look() {
    found_.clear();
    always(info_.manifest->nodes.empty() || info_.manifest->nodes.size() == info_.manifest->images.size(),
           "images that nodes keep, and not a node for each");
    for (const store::ImageEntry& entry : info_.manifest->images)
        for (size_t i = 0; i < shelves_.size(); ++i)
            found_[{i, entry.rank.number()}] =
                !wanted_ || wanted_(entry.rank) ? look_at(shelves_[i], entry) : Found();
    for (Shelf& shelf : shelves_) shelf.marked = is_marked(shelf, {info_.manifest->job, info_.number});
}

Copies::State Copies::state(size_t shelf, Rank rank) const { return found(shelf, rank).state; }

const std::string& Copies::why(size_t shelf, Rank rank) const { return found(shelf, rank).why; }

const Shelf* Copies::intact(Rank rank) const {
    for (size_t i = 0; i < shelves_.size(); ++i)
        if (state(i, rank) == State::intact) return &shelves_[i];
    return nullptr;
}

std::vector<std::string> Copies::damage() const {
    std::vector<std::string> lines;
    std::set<std::string_view> said;
    for (const Shelf& shelf : shelves_)
        if (!shelf.marked) lines.push_back(shelf.folder.path_of(store::kMarker) + " is damaged");
    for (auto& [where, found] : found_)
        if (found.state == State::damaged && said.insert(found.why).second) lines.push_back(found.why);
    return lines;
}

}  // namespace fermata::level
