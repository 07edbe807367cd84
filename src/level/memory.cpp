#include "level/memory.h"

#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "level/image_check.h"
#include "level/place.h"
#include "level/spares.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::level {
namespace {

constexpr const char* kLock = ".lock";
// Holds the path of the directory of files.
constexpr const char* kHome = ".ckpt-dir";
constexpr uint64_t kMostPath = 8192;
// A daemon of the life before may just be leaving, and looking through a large image.
constexpr int64_t kLockPatienceMs = 10'000;

// Memory is dear; a disk is there for the job that comes back after a weekend.
time_t grace_s(Medium medium) { return medium == Medium::local ? 7 * 86400 : 3600; }

// Gives none when somebody else holds the lock.
std::optional<Fd> try_lock(const files::Folder& folder) {
    Fd lock = folder.lock_file(kLock);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
    return lock;
}

std::vector<Generation> generations_in(const files::Folder& folder) {
    std::vector<Generation> all;
    for (const std::string& name : folder.names())
        if (auto generation = Generation::named(name)) all.push_back(*generation);
    return all;
}

// Lists the generations from which a restart of a job that does not run here could still go on. This node may
// have nothing of the newest one, and a second copy of others.
std::vector<Generation> wanted_of(uint64_t job, const files::Folder& folder) {
    std::vector<Generation> wanted;
    try {
        store::Store store = store::Store::for_reading(folder.text(kHome, kMostPath));
        for (const store::JobEnd& end : store.ends())
            if (end.job == job) return {};
        for (const store::GenerationInfo& one : store.list())
            if (one.job == job && one.manifest && one.manifest->on_nodes())
                wanted.push_back(Generation(one.number));
    } catch (const Error&) {
        // The directory is gone, and with it the manifests.
    }
    return wanted;
}

// `first` is done to each that goes.
void remove_all_but(const files::Folder& folder, const std::vector<Generation>& kept,
                    void (*first)(const files::Folder&, const files::Folder&) = nullptr) {
    for (Generation one : generations_in(folder)) {
        if (std::count(kept.begin(), kept.end(), one)) continue;
        auto found = folder.find(one.name());
        if (!found) continue;
        if (first != nullptr) first(folder, *found);
        store::remove_generation(folder, one.name(), *found);
    }
}

// Only while its lock is held. A file that is not Fermata's keeps the directory.
void remove_job_directory(const files::Folder& of_job, const std::string& node, const files::Folder& folder) {
    drop_spares(folder);
    folder.remove_file(kHome);
    folder.remove_file(kLock);
    of_job.remove_empty(node);
}

void sweep_one(const NodePlace& place, uint64_t job, const files::Folder& of_job) {
    auto folder = of_job.find(place.node);
    if (!folder || folder->owner() != ::geteuid()) return;
    auto lock = try_lock(*folder);
    if (!lock) return;  // it runs
    drop_spares(*folder);
    for (Generation one : wanted_of(job, *folder)) {
        auto kept = folder->look(one.name());
        if (kept && ::time(nullptr) - kept->st_mtim.tv_sec < grace_s(place.medium)) return;
    }
    remove_all_but(*folder, {});
    remove_job_directory(of_job, place.node, *folder);
}

}  // namespace

Memory::Memory(NodePlace place, uint64_t job, const std::string& ckpt_dir)
    : place_(std::move(place)), job_(job), folder_(make_job_directory(place_, job)) {
    for (int64_t end = monotonic_ms() + kLockPatienceMs;;) {
        if (auto lock = try_lock(folder_)) {
            lock_ = std::move(*lock);
            break;
        }
        if (monotonic_ms() > end) fail("{} is in use by another process of this job", folder_.path());
        ::usleep(10'000);
    }
    place_.medium == Medium::local ? make_lasting(ckpt_dir) : folder_.replace_unsynced(kHome, ckpt_dir);
    sweep(job, place_.node);
}

// Up to the file system's own: after a loss of power all of these directories have to be there.
void Memory::make_lasting(const std::string& ckpt_dir) const {
    always(place_.medium == Medium::local, "memory that is to outlive its machine");
    folder_.replace(kHome, ckpt_dir);
    const std::string user = user_directory(place_.medium);
    for (const std::string& path :
         {folder_.path(), files::split_path(folder_.path()).first, user, files::split_path(user).first})
        files::Folder::at(path).sync();
}

void sync_generation(const files::Folder& of_job, Generation generation) {
    always(static_cast<bool>(generation), "no generation, brought to storage");
    const files::Folder folder = of_job.below(generation.name());
    sync_file(folder.read(store::kMarker).get(), folder.path_of(store::kMarker));
    folder.sync();
    of_job.sync();
}

std::string Memory::directory_of(Generation generation) const {
    return folder_.path() + "/" + generation.name();
}

std::optional<files::Folder> find_generation(const files::Folder& folder, uint64_t job,
                                             Generation generation) {
    auto found = folder.find(generation.name());
    if (!found || store::read_marker(*found) != store::Marker{job, generation.number()}) return {};
    return found;
}

std::optional<files::Folder> Memory::find(Generation generation) const {
    return find_generation(folder_, job_, generation);
}

files::Folder Memory::make_room(Generation generation, uint64_t bytes) {
    always(static_cast<bool>(generation), "room for no generation");
    always(static_cast<bool>(lock_), "room in a directory that this process does not hold");
    // It is of an earlier attempt or life: its number would not be given again if it existed.
    if (auto old = folder_.find(generation.name()))
        if (!store::remove_generation(folder_, generation.name(), *old))
            fail("{} is in the way", directory_of(generation));
    if (place_.medium == Medium::memory && room_in_memory(folder_) < bytes) drop_spares(folder_);
    if (const uint64_t room = room_in(place_.medium, folder_); room < bytes)
        fail("{} {} for images of up to {}", human_size(room),
             place_.medium == Medium::local ? "free in " + base_directory(place_.medium) : "of memory",
             human_size(bytes));
    auto made = folder_.make(generation.name());
    if (!made) fail("{} is in the way", directory_of(generation));
    store::write_marker(*made, {job_, generation.number()});
    if (place_.medium == Medium::local) sync_generation(folder_, generation);
    return *made;
}

void Memory::keep(const std::vector<Generation>& generations) {
    if (place_.medium != Medium::memory) return remove_all_but(folder_, generations);
    remove_all_but(folder_, generations, set_aside_images);
    drop_dear_spares(folder_);
}

void Memory::relieve() const {
    if (place_.medium == Medium::memory) drop_dear_spares(folder_);
}

void Memory::leave() {
    always(static_cast<bool>(lock_), "a directory that is left, and this process does not hold it");
    remove_all_but(folder_, {});
    const std::string job = fmt::format("{:016x}", job_);
    auto all = find_user_directory(place_.medium);
    if (auto of_job = all ? all->find(job) : std::nullopt) {
        remove_job_directory(*of_job, place_.node, folder_);
        all->remove_empty(job);
    }
}

std::optional<Rank> rank_of_image(const std::string& name) {
    const size_t dash = name.find('-'), dot = name.rfind('.');
    if (dash == std::string::npos || dot == std::string::npos || dot < dash) return {};
    uint32_t number = 0;
    auto [end, error] = std::from_chars(name.data() + dash + 1, name.data() + dot, number);
    if (error != std::errc{} || end != name.data() + dot) return {};
    auto rank = Rank::of(number);
    if (!rank || image::image_name(*rank) != name) return {};
    return rank;
}

Memory::Found Memory::look_for(const std::vector<Generation>& generations, const image::Key* key,
                               const std::function<bool()>& given_up,
                               const std::function<bool(Generation)>& thorough) const {
    Found found;
    for (Generation generation : generations) {
        auto folder = find(generation);
        if (!folder) continue;
        for (const std::string& name : folder->names()) {
            auto rank = rank_of_image(name);
            if (!rank) continue;
            if (given_up()) return found;
            try {
                image::Reader reader(image::Place(*folder, name), key);
                check_identity(reader, job_, generation, *rank);
                if (thorough(generation)) check_content(reader, *folder);
                found.intact.push_back({generation, *rank, reader.summary()});
            } catch (const Error& error) {
                found.damaged.push_back({generation, *rank, error.what()});
            }
        }
    }
    return found;
}

namespace {

void sweep_all(const NodePlace& own, uint64_t but_of_job) {
    auto all = find_user_directory(own.medium);
    if (!all) return;
    for (const std::string& name : all->names()) {
        uint64_t job = 0;
        auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), job, 16);
        auto of_job = all->find(name);
        if (error != std::errc{} || end != name.data() + name.size() || job == but_of_job || !of_job)
            continue;
        for (const std::string& node : of_job->names())
            if (own.medium == Medium::memory || node == own.node) sweep_one({node, own.medium}, job, *of_job);
        all->remove_empty(name);
    }
}

uint64_t bytes_in(const files::Folder& folder) {
    uint64_t bytes = 0;
    for (const std::string& name : folder.names())
        if (auto below = folder.find(name))
            bytes += bytes_in(*below);
        else
            bytes += folder.size_of(name).value_or(0);
    return bytes;
}

void add_left_behind(Medium medium, std::vector<LeftBehind>& all) {
    auto jobs = find_user_directory(medium);
    if (!jobs) return;
    for (const std::string& name : jobs->names()) {
        uint64_t job = 0;
        auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), job, 16);
        auto of_job = jobs->find(name);
        if (error != std::errc{} || end != name.data() + name.size() || !of_job) continue;
        for (const std::string& node : of_job->names()) {
            auto folder = of_job->find(node);
            if (!folder || folder->owner() != ::geteuid() || !try_lock(*folder)) continue;
            all.push_back({folder->path(), bytes_in(*folder), !wanted_of(job, *folder).empty()});
        }
    }
}

}  // namespace

std::vector<LeftBehind> left_behind() noexcept {
    std::vector<LeftBehind> all;
    for (Medium medium : kMediums) try {
            add_left_behind(medium, all);
        } catch (const std::exception&) {
            // As if nothing were there.
        }
    return all;
}

void sweep(uint64_t but_of_job, const std::string& node) noexcept {
    for (Medium medium : kMediums) try {
            sweep_all({node, medium}, but_of_job);
        } catch (const std::exception&) {
            // Another time.
        }
}

}  // namespace fermata::level
