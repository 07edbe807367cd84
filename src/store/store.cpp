#include "store/store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "files/kept.h"
#include "files/owners.h"
#include "image/shared.h"
#include "store/remove.h"

namespace fermata::store {
namespace {

constexpr const char* kLock = ".lock";
constexpr uint64_t kMostLock = 4096;

image::Checksum seal_of(const std::string& text) { return image::checksum_of(text.data(), text.size()); }

// Several at once: a file system brings what comes together to storage together (1,500 files on ext4: 0.4 s
// instead of 8).
void sync_files(const files::Folder& folder, const std::vector<FileEntry>& files) {
    constexpr size_t kAtOnce = 8;
    std::atomic<size_t> next{0};
    std::mutex lock;
    std::exception_ptr failed;
    auto work = [&] {
        try {
            for (size_t i; (i = next++) < files.size();)
                sync_file(folder.read(files[i].name).get(), folder.path_of(files[i].name));
        } catch (const std::exception&) {
            std::lock_guard hold(lock);
            if (!failed) failed = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        while (others.size() + 1 < std::min(kAtOnce, files.size())) others.emplace_back(work);
    } catch (const std::system_error&) {  // no thread is to be had: with fewer
    }
    work();
    for (std::thread& other : others) other.join();
    if (failed) std::rethrow_exception(failed);
}

// "", or the first of these images that an earlier generation has in none of its files. (Where in there they
// are is looked at by whoever reads them.)
std::string what_is_missing(const files::Folder& earlier, const std::vector<ImageEntry>& images) {
    if (earlier.has(image::kSharedName)) return "";
    std::set<Rank> in_groups;
    for (const std::string& name : earlier.names()) {
        if (!image::lowest_of_group(name)) continue;
        try {
            const image::SharedFile::Table table = image::SharedFile::read({earlier, name});
            in_groups.insert(table.ranks.begin(), table.ranks.end());
        } catch (const Error& error) {
            return fmt::format("{}, which it needs", error.what());
        }
    }
    for (const ImageEntry& image : images)
        if (in_groups.count(image.rank) == 0 && !earlier.has(image::image_name(image.rank)))
            return in_groups.empty() ? fmt::format("{} is missing, which it needs",
                                                   earlier.path_of(image::image_name(image.rank)))
                                     : fmt::format("{} has no image of rank {}, which it needs",
                                                   earlier.path(), image.rank.number());
    return "";
}

// Not of another whom the person has named, either: his is to be continued.
bool is_of_others(const files::Folder& folder) {
    const uid_t owner = folder.owner();
    return owner != ::geteuid() && owner != 0 && owner != files::allowed_owner();
}

}  // namespace

std::optional<GenerationInfo> read_generation(const files::Folder& folder, uint32_t number,
                                              const image::Key* key) {
    GenerationInfo info;
    info.number = number;
    info.directory = folder.path();
    info.folder = folder;
    try {
        // Others may have closed theirs in part.
        const bool written = folder.has(kManifest);
        auto marker = read_marker(folder);
        if (marker && marker->generation == number) info.job = marker->job;
        if (!written) {
            if (!info.job) return {};
            return info;
        }
        folder.check_owner(folder.path());
        std::string text = folder.text(kManifest, is_of_others(folder) ? kMostOthersManifest : kMostManifest);
        Manifest parsed = parse_manifest(text, folder.path_of(kManifest), key);
        if (parsed.generation != number)
            fail("{} is of generation {}", folder.path_of(kManifest), parsed.generation);
        if (info.job && *info.job != parsed.job)
            fail("{} is of another job than {}", folder.path_of(kManifest), folder.path_of(kMarker));
        info.job = parsed.job;
        info.seal = seal_of(text);
        info.manifest = std::move(parsed);
    } catch (const Error& damage) {
        info.damage = damage.what();
    }
    return info;
}

image::Place GenerationInfo::place(const ImageEntry& entry) const {
    image::Place place(images(), entry.file);
    if (manifest && manifest->layout.together()) place.begin = entry.offset;
    return place;
}

bool GenerationInfo::is_of(const ImageEntry& entry, const image::Reader& image) const {
    always(manifest.has_value(), "an image of a generation that is not complete");
    const image::Identity who{manifest->job, number, entry.rank,
                              static_cast<uint32_t>(manifest->images.size())};
    return image.summary().checksum == entry.checksum && image.identity() == who;
}

uint64_t GenerationInfo::bytes() const {
    always(manifest.has_value(), "the size of a generation that is not complete");
    uint64_t sum = manifest->bytes();
    for (const std::string& name : images().names())
        if (image::is_text_name(name)) sum += images().size_of(name).value_or(0);
    if (auto kept = images().find(files::kKeptFolder))
        for (const std::string& name : kept->names()) sum += kept->size_of(name).value_or(0);
    return sum;
}

std::string GenerationInfo::note_of(const ImageEntry& entry) const {
    if (!manifest || !manifest->layout.together()) return "";
    return fmt::format(" (image of rank {})", entry.rank.number());
}

void GenerationInfo::check_layout() const {
    if (!manifest || !manifest->layout.together()) return;
    std::map<std::string_view, std::vector<const ImageEntry*>> images;
    for (const ImageEntry& entry : manifest->images) images[entry.file].push_back(&entry);
    for (const FileEntry& entry : manifest->files) {
        const image::Place file(folder, entry.name);
        const auto& parts = images[entry.name];
        try {
            const image::SharedFile::Table table = image::SharedFile::read(file);
            bool same = table.job == manifest->job && table.generation == manifest->generation &&
                        table.bytes == entry.bytes && table.ranks.size() == parts.size();
            for (size_t i = 0; same && i < parts.size(); ++i)
                same = table.ranks[i] == parts[i]->rank && table.begins[i] == parts[i]->offset;
            if (!same) fail("{} is not the file that the manifest names", file.path());
        } catch (const Error& error) {
            throw Error(fmt::format("{} (images of {})", error.what(), manifest->whose(entry.name)),
                        ExitCode::damaged);
        }
    }
}

void GenerationInfo::check_key(const image::Key* key) const {
    if (manifest) image::check_key(directory, manifest->key_id, key);
}

files::Folder open_pending(const std::string& directory, uint64_t job, uint32_t number) {
    auto [parent, name] = files::split_path(directory);
    files::Folder folder = files::Folder::at(parent).below(name);
    if (folder.owner() != ::geteuid() || read_marker(folder) != Marker{job, number})
        fail("{} is not the directory that the job made for {}: somebody has exchanged it", directory,
             Generation(number).name());
    return folder;
}

GenerationInfo open_chosen(const std::string& directory, const std::string& seal, const image::Key* key) {
    auto [parent, name] = files::split_path(directory);
    files::Folder folder = files::Folder::at(parent).below(name);
    folder.check_owner(directory);
    auto number = Generation::named(name);
    auto info = number ? read_generation(folder, number->number(), key) : std::nullopt;
    if (info && !info->damage.empty()) throw Error(info->damage, ExitCode::damaged);
    if (!info || !info->manifest || info->seal.hex() != seal)
        throw Error(
            fmt::format("{} is not the generation that was chosen: it was exchanged since", directory),
            ExitCode::damaged);
    info->check_key(key);
    return std::move(*info);
}

Store Store::for_reading(const std::string& directory, image::KeyPointer key) {
    std::string absolute = files::absolute_path(directory);
    std::optional<files::Folder> folder;
    try {
        folder = files::Folder::find_at(absolute);
    } catch (const Error& why) {
        throw Error(fmt::format("checkpoint directory {} cannot be read: {}", absolute, why.what()),
                    ExitCode::damaged);
    }
    if (!folder)
        throw Error(fmt::format("no checkpoint directory {}; name the right one with --ckpt-dir", directory),
                    ExitCode::damaged);
    return {std::move(*folder), absolute, std::move(key)};
}

Store Store::for_writing(const std::string& directory, image::KeyPointer key) {
    files::make_path(directory);
    std::string absolute = files::absolute_path(directory);
    files::Folder folder = files::Folder::at(absolute);
    // Asking access(2) is not enough: root may, a read-only or full file system may not.
    // A name of its own: others of the same number (threads, ranks in containers) may ask at this moment.
    std::string probe = fmt::format(".probe-{}-{:x}", ::gettid(), monotonic_ns());
    try {
        Fd fd = folder.create(probe);
        write_all(fd.get(), "x", 1, folder.path_of(probe));
    } catch (const Error&) {
        int code = errno;
        folder.remove_file(probe);
        throw Error(
            fmt::format("checkpoint directory {} cannot be written ({}); choose another with --ckpt-dir",
                        absolute, std::strerror(code)));
    }
    folder.remove_file(probe);
    return {std::move(folder), absolute, std::move(key)};
}

void Store::lock(const std::string& owner, uint64_t job) {
    always(!lock_, "a directory that is locked twice");
    std::string path = folder_.path_of(kLock);
    Fd fd = folder_.lock_file(kLock);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) fail_errno("cannot lock {}", path);
        std::string other;
        try {
            other = folder_.text(kLock, kMostLock);
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
    job_ = job;
}

std::vector<GenerationInfo> Store::list() const {
    std::vector<GenerationInfo> all;
    for (const std::string& name : folder_.names()) {
        auto number = Generation::named(name);
        if (!number) continue;
        auto folder = folder_.find(name);
        if (!folder) continue;  // a link, a file, or gone meanwhile
        auto info = read_generation(*folder, number->number(), key_.get());
        if (!info) continue;
        // Others may put there as many as they like: of theirs that are not read, whose they are is all that
        // is asked.
        if (!info->manifest && is_of_others(*folder)) info->folder = folder->closed();
        all.push_back(std::move(*info));
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
}

void Store::refuse(const GenerationInfo& info, const std::string& damage) const {
    if (!damage.empty())
        throw Error(fmt::format("generation {} in {} cannot be used: {}", Generation(info.number).name(),
                                directory_, damage),
                    ExitCode::damaged);
}

void Store::check_manifest(const GenerationInfo& info) const {
    info.check_key(key_.get());
    if (!info.manifest) refuse(info, info.damage.empty() ? "it was never committed" : info.damage);
    // Whether images in memory are there is known to their nodes only.
    if (info.manifest->on_nodes()) return;
    for (uint32_t number : info.manifest->needs) {
        auto other = folder_.find(Generation(number).name());
        refuse(info, other ? what_is_missing(*other, info.manifest->images)
                           : fmt::format("{} is missing, which it needs",
                                         folder_.path_of(Generation(number).name())));
    }
}

void Store::check(const GenerationInfo& info) const {
    check_manifest(info);
    if (info.manifest->on_nodes()) return;
    for (const FileEntry& file : info.manifest->all_files()) {
        const std::string damage = info.damage_of(file);
        if (!damage.empty() && info.manifest->layout.together())
            refuse(info, damage + fmt::format(" (images of {})", info.manifest->whose(file.name)));
        refuse(info, damage);
    }
}

std::string GenerationInfo::damage_of(const FileEntry& file) const {
    const std::string path = folder.path_of(file.name);
    const auto size = folder.size_of(file.name);
    if (!size) return path + " is missing";
    return *size == file.bytes ? "" : fmt::format("{} has {} bytes instead of {}", path, *size, file.bytes);
}

GenerationInfo Store::choose(std::optional<uint32_t> wanted, bool fallback) const {
    std::vector<GenerationInfo> all = list();
    std::string first_damage;
    for (auto info = all.rbegin(); info != all.rend(); ++info) {
        if (wanted && info->number != *wanted) continue;
        // Never committed: not a generation at all, unless it was asked for by number.
        if (!wanted && !info->manifest && info->damage.empty()) continue;
        try {
            check(*info);
            return *info;
        } catch (const image::KeyError&) {
            throw;
        } catch (const Error& damage) {
            if (wanted) throw;
            // Another user's is passed over: he may put a newest one there as often as he likes.
            if (!fallback && files::believed(info->folder.owner()))
                throw Error(fmt::format("{}; --fallback takes the one before", damage.what()), damage.code());
            if (first_damage.empty()) first_damage = damage.what();
        }
    }
    if (wanted)
        throw Error(fmt::format("no generation {} in {}", Generation(*wanted).name(), directory_),
                    ExitCode::damaged);
    throw Error(fmt::format("no complete generation in {}{}{}", directory_, first_damage.empty() ? "" : ": ",
                            first_damage),
                ExitCode::damaged);
}

GenerationInfo Store::begin_from(uint32_t least) {
    always(least > 0, "a generation without a number");
    // The ranks go by its name.
    if (!folder_.is_at(directory_))
        fail(
            "checkpoint directory {} is not there any more: it was renamed or removed; give it its name back",
            directory_);
    uint32_t number = least;
    for (const Brief& one : survey()) number = std::max(number, one.number + 1);
    for (;; ++number) {
        if (number > Generation::kLast)
            fail(
                "{} holds {}: no number is left for another one; give this job another directory with "
                "--ckpt-dir",
                directory_, Generation(Generation::kLast).name());
        // Something that is not Fermata's may have the name: the program's own directories, somebody's link.
        auto folder = folder_.make(Generation(number).name());
        if (!folder) continue;
        GenerationInfo info;
        info.number = number;
        info.directory = directory_ + "/" + Generation(number).name();
        info.folder = std::move(*folder);
        info.job = job_;
        write_marker(info.folder, {job_, number});
        sweep(number);
        return info;
    }
}

// Leftovers of a killed job must not take the space of its next generation. The new directory is there first,
// so that no number is used again while a late rank may still write to it.
void Store::sweep(uint32_t below) const {
    for (const Brief& one : survey())
        if (one.number < below && !one.complete && one.damage.empty()) remove(one);
    for (const std::string& name : folder_.names()) {
        if (!name.starts_with(kUnfinished)) continue;
        auto folder = folder_.find(name);
        if (!folder) continue;
        auto marker = read_marker(*folder);
        if (marker && marker->job == job_) remove_generation(folder_, name, *folder);
    }
}

// False when it is not this job's, or could not be removed: then it is all still there.
bool Store::remove(const Brief& one) const {
    return one.job == job_ && remove_generation(folder_, Generation(one.number).name(), one.folder);
}

void Store::check_space(uint64_t bytes) const {
    struct statvfs vfs {};
    if (::fstatvfs(folder_.descriptor(), &vfs) != 0)
        fail_errno("cannot stat the file system of {}", directory_);
    uint64_t available = static_cast<uint64_t>(vfs.f_bavail) * vfs.f_frsize;
    if (available < bytes)
        fail("not enough space for a checkpoint in {}: {} needed, {} free; the job goes on", directory_,
             human_size(bytes), human_size(available));
}

void Store::commit(const GenerationInfo& pending, const Manifest& manifest) {
    always(pending.number == manifest.generation, "a manifest of another generation than its directory");
    always(!manifest.on_nodes(), "a generation that nodes keep, committed as one in files");
    const files::Folder& folder = pending.folder;
    if (!folder.is(folder_, Generation(pending.number).name()))
        fail("{} cannot be found any more: was it removed or exchanged by hand? {} is given up",
             pending.directory, Generation(pending.number).name());
    for (const FileEntry& file : manifest.all_files()) {
        auto size = folder.size_of(file.name);
        if (!size)
            fail("{} cannot be found any more: was it removed by hand? {} is given up",
                 folder.path_of(file.name), Generation(pending.number).name());
        if (*size != file.bytes)
            fail("{} is incomplete: {} bytes of {}", folder.path_of(file.name), *size, file.bytes);
    }
    // Ranks of other nodes have synced what they wrote, not the tables that were written here.
    sync_files(folder, manifest.files);
    // All that the manifest stands for is on storage before it gets its name.
    folder.sync();
    folder_.sync();
    try {
        folder.replace(kManifest,
                       [&](const files::Folder::Put& put) { write_text(manifest, key_.get(), put); });
    } catch (const Error& error) {
        // The manifest may have its name, and only the directory is not known to be on storage. A caller that
        // is told of a failure must not find a generation.
        if (folder.remove_file(kManifest) || errno == ENOENT) throw;
        fail("{}; {} could not be taken back and may be there", error.what(),
             Generation(pending.number).name());
    }
    GenerationInfo done = pending;
    done.job = manifest.job;
    done.manifest.emplace();  // without its images
    done.manifest->level = manifest.level;
    done.manifest->step = manifest.step;
    done.manifest->needs = manifest.needs;
    try {
        remember(brief_of(done), folder.look(kManifest));
    } catch (const Error&) {
        // The generation is read when it is asked for; a caller that is told of a failure must not find one.
    }
}

void Store::abandon(const GenerationInfo& pending) noexcept {
    try {
        // Never a committed one, whatever the caller believes.
        if (pending.folder && !pending.folder.has(kManifest)) remove(brief_of(pending));
    } catch (const Error&) {
    }
}

namespace {

// File systems that only this machine writes to, where a lock excludes everybody who has the directory. (A
// server's may be mounted so that locks hold on one node: NFS with local_lock, Lustre with localflock.)
bool locks_exclude_all(int folder) {
    struct statfs system {};
    if (::fstatfs(folder, &system) != 0) return false;
    switch (static_cast<uint32_t>(system.f_type)) {
        case EXT4_SUPER_MAGIC:
        case XFS_SUPER_MAGIC:
        case BTRFS_SUPER_MAGIC:
        case F2FS_SUPER_MAGIC:
        case TMPFS_MAGIC:
        case OVERLAYFS_SUPER_MAGIC:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool Store::is_left_behind(const GenerationInfo& info) const { return is_left_behind(brief_of(info)); }

bool Store::is_left_behind(const Brief& one) const {
    return !one.complete && one.damage.empty() && one.job && one.folder.owner() == ::geteuid() &&
           locks_exclude_all(folder_.descriptor());
}

void Store::remove_left_behind() const noexcept {
    try {
        if (!lock_) return;
        for (const Brief& one : survey())
            if (is_left_behind(one) && one.job != job_)
                remove_generation(folder_, Generation(one.number).name(), one.folder);
    } catch (const std::exception&) {
        // Another time.
    }
}

bool Store::in_use() const {
    try {
        if (!folder_.has(kLock)) return false;
        Fd lock = folder_.read(kLock);
        return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    } catch (const Error&) {
        return false;
    }
}

void Store::retain(unsigned keep) {
    always(keep > 0, "retention that would keep nothing");
    std::vector<Brief> all = survey();
    unsigned complete = 0;
    std::set<uint32_t> needed;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (one->job != job_) continue;
        // keep_on_nodes() has taken care of those.
        if (one->complete && one->on_nodes) continue;
        bool newest = one->complete && ++complete <= keep;
        if (newest || needed.count(one->number)) {
            // Also what those need that are only kept for others: whatever has a manifest can be restarted.
            needed.insert(one->needs.begin(), one->needs.end());
            continue;
        }
        // Damaged ones stay: a person decides. Uncommitted ones above the newest complete may be in the
        // making.
        if (!one->damage.empty() || complete == 0) continue;
        // One that cannot be removed keeps what it needs.
        if (!remove(*one)) needed.insert(one->needs.begin(), one->needs.end());
    }
}

}  // namespace fermata::store
