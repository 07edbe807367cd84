// This file answers what a running job asks of its directory again and again: which generations are there,
// whose, complete or not. Manifests of many ranks are long: each is read once, and again only when it is
// another file.
//
// Another user who may write to the directory can put generations of any number and kind beside the job's
// own: they have no say, and are not looked into.
#include <algorithm>

#include "base/invariant.h"
#include "files/owners.h"
#include "store/store.h"

namespace fermata::store {

bool Store::Stamp::operator==(const Stamp& other) const {
    auto same = [](const timespec& a, const timespec& b) {
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return device == other.device && inode == other.inode && size == other.size &&
           same(changed, other.changed) && owner == other.owner;
}

Store::Stamp Store::stamp_of(const files::Folder& folder, const struct stat& manifest) {
    return {manifest.st_dev, manifest.st_ino, manifest.st_size, manifest.st_ctim, folder.owner()};
}

Brief Store::brief_of(const GenerationInfo& info) {
    Brief brief;
    brief.number = info.number;
    brief.folder = info.folder;
    brief.job = info.job;
    brief.damage = info.damage;
    if (!info.manifest) return brief;
    brief.complete = true;
    brief.on_nodes = info.manifest->on_nodes();
    brief.needs = info.manifest->needs;
    return brief;
}

// Only what this process has itself read or written as right.
void Store::remember(const Brief& brief, const std::optional<struct stat>& manifest) const {
    if (!manifest || !brief.complete) return;
    always(brief.number > 0 && brief.folder, "a generation that is remembered without its place");
    Known& known = known_[brief.number] = {stamp_of(brief.folder, *manifest), brief};
    known.brief.folder = {};
}

std::vector<Brief> Store::survey() const {
    std::vector<Brief> all;
    for (const std::string& name : folder_.names()) {
        auto number = Generation::named(name);
        if (!number) continue;
        auto folder = folder_.find(name);
        if (!folder || !files::believed(folder->owner())) continue;  // a link, a file, or gone meanwhile
        auto manifest = folder->look(kManifest);
        auto known = known_.find(number->number());
        if (manifest && known != known_.end() && known->second.stamp == stamp_of(*folder, *manifest)) {
            all.push_back(known->second.brief);
            all.back().folder = *folder;
            continue;
        }
        auto info = read_generation(*folder, number->number(), key_.get());
        if (!info) continue;
        all.push_back(brief_of(*info));
        remember(all.back(), manifest);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
}

}  // namespace fermata::store
