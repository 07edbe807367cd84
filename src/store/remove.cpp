#include "store/remove.h"

#include <unistd.h>

#include <charconv>

#include "base/error.h"
#include "base/invariant.h"
#include "erasure/names.h"
#include "files/kept.h"
#include "image/image.h"
#include "image/names.h"
#include "image/shared.h"
#include "store/store.h"

namespace fermata::store {
namespace {

constexpr std::string_view kFirstLine = "fermata generation 1\n";
constexpr uint64_t kMostMarker = 256;

// Regular files of these names; a generation has no other.
bool is_ours(const std::string& name) {
    if (name.starts_with(kOnItsWay)) return true;
    return name == kManifest || name == std::string(kManifest) + ".new" || name == kMarker ||
           name == std::string(kMarker) + ".new" || name == image::kSharedName || image::is_text_name(name) ||
           image::is_image_name(name) || image::lowest_of_group(name) || erasure::is_name_of_parity(name);
}

bool is_kept(const std::string& name) { return files::is_kept_name(name) || name.starts_with(kOnItsWay); }

// Copies of the program's files, and nothing else? Gives none when there is something else.
std::optional<files::Folder> kept_files(const files::Folder& generation) {
    auto kept = generation.find(files::kKeptFolder);
    if (!kept || kept->owner() != ::geteuid()) return {};
    for (const std::string& name : kept->names()) {
        auto status = kept->look(name);
        if (!is_kept(name) || (status && !S_ISREG(status->st_mode))) return {};
    }
    return kept;
}

std::string text_of(const Marker& marker) {
    return fmt::format("{}job {:016x}\ngeneration {}\n", kFirstLine, marker.job, marker.generation);
}

}  // namespace

void write_marker(const files::Folder& generation, const Marker& marker) {
    always(marker.generation > 0, "the marker of no generation");
    const std::string text = text_of(marker);
    always(text.size() <= kMostMarker, "a marker that is longer than readers take");
    Fd fd = generation.create(kMarker);
    write_all(fd.get(), text.data(), text.size(), generation.path_of(kMarker));
}

void mend_marker(const files::Folder& generation, const Marker& marker) {
    always(marker.generation > 0, "the marker of no generation");
    generation.replace(kMarker, text_of(marker));
}

std::optional<Marker> read_marker(const files::Folder& generation) {
    try {
        if (!generation.has(kMarker)) return {};
        std::string text = generation.text(kMarker, kMostMarker);
        Marker marker;
        if (!text.starts_with(kFirstLine)) return {};
        std::string_view rest = std::string_view(text).substr(kFirstLine.size());
        constexpr std::string_view kJob = "job ", kGeneration = "\ngeneration ";
        if (!rest.starts_with(kJob) || rest.size() < kJob.size() + 16 + kGeneration.size()) return {};
        const char* digits = rest.data() + kJob.size();
        auto [after, error] = std::from_chars(digits, digits + 16, marker.job, 16);
        if (error != std::errc{} || after != digits + 16) return {};
        rest = rest.substr(kJob.size() + 16);
        if (!rest.starts_with(kGeneration)) return {};
        rest = rest.substr(kGeneration.size());
        auto [end, bad] = std::from_chars(rest.data(), rest.data() + rest.size(), marker.generation);
        if (bad != std::errc{} || std::string_view(end, rest.data() + rest.size() - end) != "\n") return {};
        return marker;
    } catch (const Error&) {
        return {};
    }
}

namespace {

bool remove_kept(const files::Folder& generation, const files::Folder& kept) {
    for (const std::string& one : kept.names())
        if (is_kept(one)) kept.remove_file(one);
    return generation.remove_empty(files::kKeptFolder) || errno == ENOENT;
}

}  // namespace

void remove_images(const files::Folder& generation) {
    for (const std::string& one : generation.names())
        if (is_ours(one) && one != kManifest && one != kMarker) generation.remove_file(one);
    if (auto kept = kept_files(generation)) remove_kept(generation, *kept);
}

bool remove_generation(const files::Folder& parent, const std::string& name,
                       const files::Folder& folder) noexcept {
    try {
        if (folder.owner() != ::geteuid() || !folder.is(parent, name)) return false;
        std::vector<std::string> names = folder.names();
        std::optional<files::Folder> kept;
        for (const std::string& one : names) {
            if (one == files::kKeptFolder) {
                if (!(kept = kept_files(folder))) return false;
                continue;
            }
            auto status = folder.look(one);
            if (!is_ours(one) || (status && !S_ISREG(status->st_mode))) return false;
        }
        if (!folder.remove_file(kManifest) && errno != ENOENT) return false;
        // The marker goes last: what a crash leaves of this is removed another time.
        for (const std::string& one : names)
            if (one != kMarker && one != files::kKeptFolder) folder.remove_file(one);
        if (kept && !remove_kept(folder, *kept)) return false;
        folder.remove_file(kMarker);
        parent.remove_empty(name);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace fermata::store
