#include "cli/sight.h"

#include <unistd.h>

#include <cstdio>

#include "base/text.h"
#include "files/owners.h"
#include "level/place.h"

namespace fermata::cli {

store::Store open_store(const StoreOptions& options) {
    return store::Store::for_reading(options.ckpt_dir, image::Key::from_file_or_none(options.key_file));
}

void print_pretty(const nlohmann::json& j) {
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

std::string other_owner(const store::GenerationInfo& info) {
    uid_t owner = info.folder.owner();
    return owner == ::geteuid() ? "" : visible(files::name_of_user(owner));
}

std::string of_other(const store::GenerationInfo& info) {
    std::string owner = other_owner(info);
    return owner.empty() ? "" : ", of " + owner;
}

bool find_image(store::GenerationInfo& info, const store::ImageEntry& entry) {
    if (!info.manifest->in_memory_of_nodes()) return true;
    for (files::Folder& folder : level::find_in_memory(info.manifest->job, Generation(info.number)))
        if (folder.has(entry.file)) {
            info.elsewhere = std::move(folder);
            return true;
        }
    return false;
}

std::string not_seen(store::GenerationInfo& info) {
    size_t missing = 0;
    std::string node;
    for (const store::ImageEntry& entry : info.manifest->images)
        if (!find_image(info, entry) && ++missing == 1) node = info.manifest->nodes.at(entry.rank.index());
    if (missing == 0) return info.manifest->in_memory_of_nodes() ? ", in the memory of this machine" : "";
    return fmt::format(", as far as it is in the memory of this machine: {} of {} images are in that of {}{}",
                       missing, info.manifest->images.size(), visible(node), missing > 1 ? " or others" : "");
}

}  // namespace fermata::cli
