#include "level/kept_files.h"

#include "base/text.h"
#include "files/kept.h"
#include "image/file_checksum.h"
#include "level/process_state.h"

namespace fermata::level {

bool is_right(const files::Folder& generation, const KeptFile& file) {
    auto kept = generation.find(files::kKeptFolder);
    if (!kept || kept->size_of(file.name) != file.bytes) return false;
    if (file.checksum.empty()) return true;
    return image::checksum_of_file(*kept, file.name, file.bytes).hex() == file.checksum;
}

// (The job's own tests have ranks that save no process.)
std::vector<KeptFile> named_kept_files(const image::Reader& reader) {
    if (!has_part(reader, "process")) return {};
    return with_process_state(reader, [&](const nlohmann::json& state) {
        std::vector<KeptFile> all;
        for (const nlohmann::json& entry : kept_of(state)) {
            if (entry.at("how") != "copy" && entry.at("how") != "read") continue;
            KeptFile file{entry.at("name"), entry.at("size").get<uint64_t>(), entry.at("sum"),
                          entry.at("path")};
            if (!files::is_kept_name(file.name))
                fail("{} says of {} that {} is its copy: that is not the name of one", reader.file_of({}),
                     visible(file.original), visible(file.name));
            all.push_back(std::move(file));
        }
        return all;
    });
}

std::vector<KeptFile> kept_files_of(const image::Reader& reader, const files::Folder& generation) {
    std::vector<KeptFile> all = named_kept_files(reader);
    const auto kept = generation.find(files::kKeptFolder);
    for (const KeptFile& file : all) {
        const std::string what = fmt::format("{}/{}/{}, which {} was at the checkpoint,", generation.path(),
                                             files::kKeptFolder, file.name, visible(file.original));
        const auto found = kept ? kept->size_of(file.name) : std::nullopt;
        if (!found) fail("{} is missing", what);
        if (*found != file.bytes) fail("{} has {} bytes instead of {}", what, *found, file.bytes);
        if (!is_right(generation, file)) fail("{} is damaged", what);
    }
    return all;
}

}  // namespace fermata::level
