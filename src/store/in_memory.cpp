// Generations whose images are in the memory of nodes: the directory here holds their manifest, and later,
// when they are copied, their images as well.
#include <algorithm>

#include "base/error.h"
#include "files/kept.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::store {

void Store::commit_in_memory(const GenerationInfo& pending, const Manifest& manifest) {
    if (!pending.folder.is(folder_, Generation(pending.number).name()))
        fail("{} cannot be found any more: was it removed or exchanged by hand? {} is given up",
             pending.directory, Generation(pending.number).name());
    pending.folder.replace_unsynced(kManifest, to_text(manifest, key_.get()));
}

void Store::commit_copied(uint32_t number) {
    GenerationInfo info = choose(number, false);
    if (info.job != job_ || !info.manifest->in_memory_of_nodes())
        fail("{} is not one that was kept in memory", info.directory);
    Manifest manifest = *info.manifest;
    manifest.level = LevelName::files;
    manifest.nodes.clear();
    if (auto kept = info.folder.find(files::kKeptFolder)) kept->sync();
    commit(info, manifest);
}

void Store::forget_copied(uint32_t number) const noexcept {
    try {
        auto folder = folder_.find(Generation(number).name());
        if (!folder || read_marker(*folder) != Marker{job_, number}) return;
        if (auto manifest = folder->has(kManifest)
                                ? parse_manifest(folder->text(kManifest, kMostManifest), folder->path())
                                : Manifest();
            manifest.in_memory_of_nodes())
            remove_images(*folder);
    } catch (const Error&) {
        // They go with the generation.
    }
}

void Store::keep_in_memory(const std::vector<Generation>& kept) {
    for (const Brief& one : survey())
        if (one.job == job_ && one.complete && one.in_memory &&
            std::count(kept.begin(), kept.end(), Generation(one.number)) == 0)
            remove_generation(folder_, Generation(one.number).name(), one.folder);
}

}  // namespace fermata::store
