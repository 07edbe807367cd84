#include "store/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "image/shared.h"

namespace fermata::store {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "gen-";

std::optional<uint32_t> number_of(const std::string& name) {
    if (!name.starts_with(kPrefix)) return {};
    uint32_t number = 0;
    const char* begin = name.data() + 4;
    const char* end = name.data() + name.size();
    auto [at, error] = std::from_chars(begin, end, number);
    if (error != std::errc{} || at != end || number == 0 || generation_name(number) != name) return {};
    return number;
}

}  // namespace

std::string generation_name(uint32_t number) { return fmt::format("gen-{:06}", number); }

image::Place GenerationInfo::place(const ImageEntry& entry) const {
    image::Place place{directory + "/" + entry.file, {}};
    if (manifest && manifest->layout() == Layout::shared) place.begin = entry.offset;
    return place;
}

uint64_t GenerationInfo::bytes() const {
    uint64_t sum = manifest->bytes();
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error))
        if (image::is_text_name(entry.path().filename().string()))
            if (uint64_t size = entry.file_size(error); !error) sum += size;
    for (const auto& entry : fs::directory_iterator(directory + "/" + kFilesFolder, error))
        if (uint64_t size = entry.file_size(error); !error) sum += size;
    return sum;
}

void GenerationInfo::check_layout() const {
    if (!manifest || manifest->layout() != Layout::shared) return;
    std::string path = directory + "/" + image::kSharedName;
    image::SharedFile::Table table = image::SharedFile::read(path);
    bool same = table.job == manifest->job && table.generation == manifest->generation &&
                table.bytes == manifest->shared_bytes && table.begins.size() == manifest->images.size();
    for (const ImageEntry& entry : manifest->images)
        same = same && entry.file == image::kSharedName && table.begins[entry.rank] == entry.offset;
    if (!same)
        throw Error(fmt::format("{} is not the file that the manifest names", path), ExitCode::damaged);
}

void GenerationInfo::check_key(const image::Key* key) const {
    if (manifest) image::check_key(directory, manifest->key_id, key);
}

Store Store::for_reading(const std::string& directory, image::KeyPointer key) {
    std::error_code error;
    if (!fs::is_directory(directory, error))
        throw Error(fmt::format("no checkpoint directory {}; name the right one with --ckpt-dir", directory),
                    ExitCode::damaged);
    return {fs::absolute(directory).lexically_normal().string(), std::move(key)};
}

Store Store::for_writing(const std::string& directory, image::KeyPointer key) {
    make_directories(directory);
    std::string absolute = fs::absolute(directory).lexically_normal().string();
    // Asking access(2) is not enough: root may, a read-only or full file system may not.
    std::string probe = fmt::format("{}/.probe-{}", absolute, ::getpid());
    try {
        Fd fd = open_file(probe, O_WRONLY | O_CREAT | O_EXCL, 0600);
        write_all(fd.get(), "x", 1, probe);
    } catch (const Error&) {
        int code = errno;
        ::unlink(probe.c_str());
        throw Error(
            fmt::format("checkpoint directory {} cannot be written ({}); choose another with --ckpt-dir",
                        absolute, std::strerror(code)));
    }
    ::unlink(probe.c_str());
    return {absolute, std::move(key)};
}

void Store::lock(const std::string& owner) {
    std::string path = directory_ + "/.lock";
    Fd fd = open_file(path, O_RDWR | O_CREAT, 0600);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) fail_errno("cannot lock {}", path);
        std::string other;
        try {
            other = read_file(path);
        } catch (const Error&) {
        }
        while (!other.empty() && other.back() == '\n') other.pop_back();
        fail("checkpoint directory {} is in use by job {}; give this job another with --ckpt-dir", directory_,
             other.empty() ? "(unknown)" : other);
    }
    if (::ftruncate(fd.get(), 0) != 0) fail_errno("cannot write {}", path);
    std::string line = owner + "\n";
    write_all(fd.get(), line.data(), line.size(), path);
    lock_ = std::move(fd);
}

std::vector<GenerationInfo> Store::list() const {
    std::vector<GenerationInfo> all;
    for (const auto& entry : fs::directory_iterator(directory_)) {
        auto number = number_of(entry.path().filename().string());
        if (!number) continue;
        GenerationInfo info{*number, entry.path().string(), {}, {}};
        std::string path = info.directory + "/" + kManifest;
        std::error_code error;
        if (fs::exists(path, error)) {
            try {
                Manifest manifest = parse_manifest(read_file(path), path, key_.get());
                if (manifest.generation != info.number)
                    fail("{} is of generation {}", path, manifest.generation);
                info.manifest = std::move(manifest);
            } catch (const Error& damage) {
                info.damage = damage.what();
            }
        }
        all.push_back(std::move(info));
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
}

GenerationInfo Store::choose(std::optional<uint32_t> wanted, bool fallback) const {
    std::vector<GenerationInfo> all = list();
    std::string first_damage;
    for (auto info = all.rbegin(); info != all.rend(); ++info) {
        if (wanted && info->number != *wanted) continue;
        std::string damage = info->damage;
        info->check_key(key_.get());
        if (info->manifest) {
            for (const ImageEntry& image : info->manifest->images) {
                std::string path = info->directory + "/" + image.file;
                std::error_code error;
                uint64_t size = fs::file_size(path, error);
                uint64_t due = info->manifest->file_bytes(image);
                if (error)
                    damage = fmt::format("{} is missing", path);
                else if (size != due)
                    damage = fmt::format("{} has {} bytes instead of {}", path, size, due);
                for (uint32_t number : info->manifest->needs) {
                    std::string other = directory_ + "/" + generation_name(number) + "/";
                    if (!fs::exists(other + image::image_name(image.rank), error) &&
                        !fs::exists(other + image::kSharedName, error))
                        damage = fmt::format("{}{} is missing, which it needs", other,
                                             image::image_name(image.rank));
                }
                if (!damage.empty()) break;
            }
            if (damage.empty()) return *info;
        } else if (damage.empty()) {
            // Never committed: not a generation at all, unless it was asked for by number.
            if (!wanted) continue;
            damage = "it was never committed";
        }
        if (wanted || !fallback)
            throw Error(fmt::format("generation {} in {} cannot be used: {}{}", generation_name(info->number),
                                    directory_, damage, wanted ? "" : "; --fallback takes the one before"),
                        ExitCode::damaged);
        if (first_damage.empty()) first_damage = damage;
    }
    if (wanted)
        throw Error(fmt::format("no generation {} in {}", generation_name(*wanted), directory_),
                    ExitCode::damaged);
    throw Error(fmt::format("no complete generation in {}{}{}", directory_, first_damage.empty() ? "" : ": ",
                            first_damage),
                ExitCode::damaged);
}

GenerationInfo Store::begin() {
    uint32_t number = 1;
    for (const auto& entry : fs::directory_iterator(directory_))
        if (auto used = number_of(entry.path().filename().string())) number = std::max(number, *used + 1);
    GenerationInfo info{number, directory_ + "/" + generation_name(number), {}, {}};
    if (::mkdir(info.directory.c_str(), 0700) != 0) fail_errno("cannot create {}", info.directory);
    sweep(number);
    return info;
}

// What a killed job left must not take the space of the next generation. The new directory is there first, so
// that no number is used again while a late rank may still write to it.
void Store::sweep(uint32_t below) const {
    for (const GenerationInfo& info : list())
        if (info.number < below && !info.manifest && info.damage.empty()) remove(info);
    for (const auto& entry : fs::directory_iterator(directory_)) {
        std::error_code ignored;
        if (entry.path().filename().string().starts_with(kUnfinished)) fs::remove_all(entry.path(), ignored);
    }
}

// False when its manifest could not be removed: then it is all still there.
bool Store::remove(const GenerationInfo& info) {
    std::error_code error;
    // The manifest goes first: what is left of a half-removed generation is not one.
    fs::remove(info.directory + "/" + kManifest, error);
    if (error) return false;
    fs::remove_all(info.directory, error);
    return true;
}

void Store::check_space(uint64_t bytes) const {
    struct statvfs vfs {};
    if (::statvfs(directory_.c_str(), &vfs) != 0) fail_errno("cannot stat the file system of {}", directory_);
    uint64_t available = static_cast<uint64_t>(vfs.f_bavail) * vfs.f_frsize;
    if (available < bytes)
        fail("not enough space for a checkpoint in {}: {} needed, {} free; the job goes on", directory_,
             human_size(bytes), human_size(available));
}

void Store::commit(const GenerationInfo& pending, const Manifest& manifest) {
    for (const ImageEntry& image : manifest.images) {
        std::error_code error;
        std::string path = pending.directory + "/" + image.file;
        uint64_t size = fs::file_size(path, error);
        if (error || size != manifest.file_bytes(image)) fail("{} is missing or incomplete", path);
    }
    if (manifest.layout() == Layout::shared) {
        // Ranks of other nodes have synced what they wrote, not the table that was written here.
        std::string path = pending.directory + "/" + manifest.images.at(0).file;
        sync_file(open_file(path, O_RDONLY).get(), path);
    }
    // All that the manifest stands for is on storage before it gets its name.
    sync_directory(pending.directory);
    sync_directory(directory_);
    std::string path = pending.directory + "/" + kManifest;
    try {
        replace_file(path, to_text(manifest, key_.get()));
    } catch (const Error& error) {
        // It may have its name, and only the directory is not known to be on storage. Who is told of a
        // failure must not find a generation.
        if (::unlink(path.c_str()) == 0 || errno == ENOENT) throw;
        fail("{}; {} could not be taken back and may be there", error.what(),
             generation_name(pending.number));
    }
}

void Store::abandon(const GenerationInfo& pending) noexcept {
    std::error_code ignored;
    // Never a committed one, whatever the caller believes.
    if (fs::exists(pending.directory + "/" + kManifest, ignored)) return;
    fs::remove_all(pending.directory, ignored);
}

void Store::retain(unsigned keep) {
    std::vector<GenerationInfo> all = list();
    unsigned complete = 0;
    std::set<uint32_t> needed;
    for (auto info = all.rbegin(); info != all.rend(); ++info) {
        bool newest = info->manifest && ++complete <= keep;
        if (newest || needed.count(info->number)) {
            // Also what those need that are only kept for others: whatever has a manifest can be restarted.
            if (info->manifest) needed.insert(info->manifest->needs.begin(), info->manifest->needs.end());
            continue;
        }
        // Damaged ones stay: a person decides. Uncommitted ones above the newest complete may be in the
        // making.
        if (!info->damage.empty() || complete == 0) continue;
        // One that cannot be removed keeps what it needs.
        if (!remove(*info) && info->manifest)
            needed.insert(info->manifest->needs.begin(), info->manifest->needs.end());
    }
}

}  // namespace fermata::store
