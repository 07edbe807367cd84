// Generations whose images nodes keep, in memory or in local directories: the directory here holds their
// manifest, and later, when they are copied, their images as well.
#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/invariant.h"
#include "files/kept.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::store {

void Store::commit_on_nodes(const GenerationInfo& pending, const Manifest& manifest) {
    always(pending.number == manifest.generation, "a manifest of another generation than its directory");
    always(manifest.on_nodes(), "a manifest of images in files, for a generation that nodes keep");
    if (!pending.folder.is(folder_, Generation(pending.number).name()))
        fail("{} cannot be found any more: was it removed or exchanged by hand? {} is given up",
             pending.directory, Generation(pending.number).name());
    if (manifest.level == LevelName::memory)
        return pending.folder.replace_unsynced(kManifest, to_text(manifest, key_.get()));
    // The directory and its marker are on storage before the manifest gets its name, as in commit().
    sync_file(pending.folder.read(kMarker).get(), pending.folder.path_of(kMarker));
    pending.folder.sync();
    folder_.sync();
    try {
        pending.folder.replace(kManifest, to_text(manifest, key_.get()));
    } catch (const Error& error) {
        // A caller that is told of a failure must not find a generation.
        if (pending.folder.remove_file(kManifest) || errno == ENOENT) throw;
        fail("{}; {} could not be taken back and may be there", error.what(),
             Generation(pending.number).name());
    }
}

void Store::sync_manifest(Generation generation) const {
    always(static_cast<bool>(generation), "the manifest of no generation");
    const files::Folder folder = folder_.below(generation.name());
    for (const char* name : {kMarker, kManifest}) sync_file(folder.read(name).get(), folder.path_of(name));
    folder.sync();
    folder_.sync();
}

void Store::commit_copied(uint32_t number) {
    GenerationInfo info = choose(number, false);
    if (info.job != job_ || !info.manifest->on_nodes()) fail("{} is not one that nodes keep", info.directory);
    Manifest manifest = *info.manifest;
    manifest.level = LevelName::files;
    manifest.nodes.clear();
    always(!manifest.on_nodes(), "a generation that has come to files, and nodes keep it");
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
            manifest.on_nodes())
            remove_images(*folder);
    } catch (const Error&) {
        // They go with the generation.
    }
}

void Store::keep_on_nodes(const std::vector<Generation>& kept) {
    for (const Brief& one : survey())
        if (one.job == job_ && one.complete && one.on_nodes &&
            std::count(kept.begin(), kept.end(), Generation(one.number)) == 0)
            remove_generation(folder_, Generation(one.number).name(), one.folder);
}

}  // namespace fermata::store
