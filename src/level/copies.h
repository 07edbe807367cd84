// Copies looks at every copy of a generation's images that this machine reaches, in the directory of files,
// in the memory of its nodes and in their local directories, and says which of them are intact.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/invariant.h"
#include "base/medium.h"
#include "files/folder.h"
#include "image/image.h"
#include "level/kept_files.h"
#include "store/generation.h"

namespace fermata::level {

// A directory that has images of a generation.
struct Shelf {
    files::Folder folder;
    std::optional<NodePlace> place;  // on which node; none: files
    bool marked = true;              // its marker is right

    bool in_files() const { return !place; }
    bool in_memory() const { return place && place->medium == Medium::memory; }
    std::string text() const { return place ? place->words() : "files"; }
};

// Looks for what a restart would refuse in an image although its bytes are as they were written, and says
// which of the program's files belong to it. Throws Error.
using Judge = std::function<std::vector<KeptFile>(const image::Reader& image, const files::Folder& beside)>;

class Copies {
  public:
    // `info` has a manifest, and outlives this, as do the others. Nothing is looked at yet.
    Copies(const store::GenerationInfo& info, const image::Key* key, Judge judge);

    // Compares every byte of all copies of these ranks' images; said once, it holds. Throws image::KeyError.
    void look(std::function<bool(Rank)> wanted);
    void look();

    enum class State { absent, intact, damaged };
    const std::vector<Shelf>& shelves() const { return shelves_; }
    State state(size_t shelf, Rank rank) const;
    // The reason why a copy counts as damaged.
    const std::string& why(size_t shelf, Rank rank) const;
    // Some intact copy of this rank's image; none: nullptr.
    const Shelf* intact(Rank rank) const;
    // A line on each thing that is damaged, each once.
    std::vector<std::string> damage() const;

    const store::GenerationInfo& info() const { return info_; }
    const image::Key* key() const { return key_; }
    static std::string name_on(const Shelf& shelf, const store::ImageEntry& entry);
    // Throws Error unless the image in this place is the one that the manifest names, intact in every byte
    // with all that belongs to it. `beside`: its generation's directory.
    std::vector<KeptFile> check(const image::Place& place, const store::ImageEntry& entry) const;

  private:
    struct Found {
        State state = State::absent;
        std::string why;
    };
    Found look_at(const Shelf& shelf, const store::ImageEntry& entry) const;
    image::Place place_on(const Shelf& shelf, const store::ImageEntry& entry) const;
    const Found& found(size_t shelf, Rank rank) const {
        always(found_.count({shelf, rank.number()}) > 0, "a copy that was not looked at");
        return found_.at({shelf, rank.number()});
    }

    const store::GenerationInfo& info_;
    const image::Key* const key_;
    const Judge judge_;
    std::vector<Shelf> shelves_;
    std::function<bool(Rank)> wanted_;
    std::map<std::pair<size_t, uint32_t>, Found> found_;
};

}  // namespace fermata::level
