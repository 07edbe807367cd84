#include "cli/sight.h"

#include <unistd.h>

#include <cstdio>

#include "base/process_limits.h"
#include "base/text.h"
#include "files/owners.h"
#include "level/place.h"

namespace fermata::cli {

store::Store open_store(const StoreOptions& options) {
    take_own_limits();  // each generation is held open
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
    if (!info.manifest->on_nodes()) return true;
    for (level::NodeFolder& node : level::find_here(info.manifest->job, Generation(info.number)))
        if (node.folder.has(entry.file)) {
            info.elsewhere = std::move(node.folder);
            return true;
        }
    return false;
}

std::vector<std::string> local_copies_of(const store::GenerationInfo& info) {
    std::vector<std::string> nodes;
    if (info.manifest->level == store::LevelName::local) return nodes;
    for (const level::NodeFolder& node : level::find_here(info.manifest->job, Generation(info.number)))
        if (node.place.medium == Medium::local) nodes.push_back(node.place.node);
    return nodes;
}

std::string not_seen(store::GenerationInfo& info) {
    if (!info.manifest->on_nodes()) return {};
    const std::string here = info.manifest->level == store::LevelName::memory
                                 ? "in the memory of this machine"
                                 : "in the local directory of this machine";
    size_t missing = 0;
    std::string node;
    for (const store::ImageEntry& entry : info.manifest->images)
        if (!find_image(info, entry) && ++missing == 1) node = info.manifest->nodes.at(entry.rank.index());
    if (missing == 0) return ", " + here;
    return fmt::format(", as far as it is {}: {} of {} images are in that of {}{}", here, missing,
                       info.manifest->images.size(), visible(node), missing > 1 ? " or others" : "");
}

}  // namespace fermata::cli
