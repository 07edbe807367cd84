#include "api/veloc.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "files/folder.h"
#include "veloc/defs.h"

namespace fermata::api {
namespace {

constexpr const char* kObject = "veloc";

bool chosen(int mode, const std::set<int>& ids, int id) {
    return mode == VELOC_CKPT_ALL || (ids.count(id) > 0) == (mode == VELOC_CKPT_SOME);
}

void check_name(const std::string& name, int version) {
    const bool good = std::all_of(name.begin(), name.end(),
                                  [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
    if (name.empty() || !good)
        refuse(FERMATA_ARGUMENT, "a checkpoint's name is made of letters, digits, _ and -, not '{}'",
               visible(name));
    if (version < 0) refuse(FERMATA_ARGUMENT, "a version is 0 or more, not {}", version);
}

// The program opens routed files by their names, which others can guess: where they may put links, a
// directory of this user's alone.
std::string own_scratch(const std::string& given, bool says) {
    const files::Folder folder = files::Folder::at(given);
    if (folder.owner() == ::geteuid() && !folder.open_to_others()) return given;
    const std::string name = fmt::format("fermata-scratch-{}", ::geteuid());
    if (!folder.own(name))
        refuse(FERMATA_STORAGE,
               "{} is not a directory of this user's alone: remove it, or name another scratch",
               folder.path_of(name));
    if (says && folder.open_to_others() && (folder.mode() & S_ISVTX) == 0)
        say(
            fmt::format("veloc: others may write to {}: they can put another directory in the place of {}; "
                        "chmod +t, or name a scratch of your own",
                        given, name));
    return folder.path_of(name);
}

std::string content_of(const files::Folder& folder, const std::string& name) {
    Fd fd = folder.read(name);
    std::string text(folder.size_of(name).value_or(0), '\0');
    pread_all(fd.get(), text.data(), text.size(), 0, folder.path_of(name));
    return text;
}

}  // namespace

Veloc::Veloc(const fermata_mpi& mpi, std::optional<unsigned> id, const std::string& configuration)
    : words_(parse_veloc_words(read_file(configuration), configuration)),
      library_(mpi.library ? mpi.library : ""),
      mpi_(mpi),
      folder_(id ? fmt::format("{}/id-{}", words_.persistent, *id) : words_.persistent),
      who_(id ? fmt::format("id-{}", *id) : std::to_string(mpi.rank)) {
    mpi_.library = library_.c_str();  // the caller's goes away
    files::make_path(words_.scratch);
    if (mpi_.rank == 0)
        for (const std::string& line : words_.unknown) say("veloc: " + line + " means nothing to Fermata");
}

Veloc::~Veloc() {
    places_.clear();
    mpi_.release(mpi_.now);
    mpi_.release(mpi_.behind);
}

void Veloc::protect(int id, void* data, size_t size, const std::string& group) {
    if (!data && size > 0) refuse(FERMATA_ARGUMENT, "region {} has no memory", id);
    groups_[group][id] = {static_cast<char*>(data), size};
}

// A group that was named belongs to the checkpoints of its name from then on, also when it is empty.
bool Veloc::unprotect(int id, const std::string& group) { return groups_[group].erase(id) > 0; }

// The directory of a name. All share the two communicators, so one saves at a time.
Veloc::Place& Veloc::place(const std::string& name) {
    auto& one = places_[name];
    if (one) return *one;
    one = std::make_unique<Place>();
    fermata_mpi mpi = mpi_;
    mpi.release = [](void*) {};
    const std::string options = fmt::format(
        "keep={}{}{}", words_.versions == 0 ? std::string("all") : std::to_string(words_.versions),
        words_.options.empty() ? "" : ",", words_.options);
    try {
        one->handle.start(mpi, folder_ + "/" + name, options);
        one->handle.state.protect_object(kObject, {one.get(), size_hook, pack_hook, unpack_hook});
    } catch (...) {
        places_.erase(name);
        throw;
    }
    return *one;
}

int64_t Veloc::size_hook(void* place) {
    return static_cast<int64_t>(static_cast<Place*>(place)->blob.size());
}

int Veloc::pack_hook(void* place, void* bytes, int64_t) {
    static_cast<Place*>(place)->blob.pack(static_cast<char*>(bytes));
    return 0;
}

int Veloc::unpack_hook(void* place, const void* bytes, int64_t size) {
    static_cast<Place*>(place)->blob =
        VelocBlob::unpacked(static_cast<const char*>(bytes), static_cast<size_t>(size));
    return 0;
}

// Those of the current checkpoint's name, or of all names.
const Veloc::Regions& Veloc::regions() const {
    static const Regions none;
    auto own = groups_.find(name_), all = groups_.find("");
    return own != groups_.end() ? own->second : all != groups_.end() ? all->second : none;
}

Veloc::Place& Veloc::current(Phase phase) {
    if (phase_ != phase)
        refuse(FERMATA_ARGUMENT, "this belongs between the begin and the end of a {}",
               phase == Phase::checkpoint ? "checkpoint" : "restart");
    return *places_.at(name_);
}

void Veloc::begin(const std::string& name, int version) {
    check_name(name, version);
    if (phase_ != Phase::none) refuse(FERMATA_ARGUMENT, "a checkpoint or a restart has not ended yet");
    wait();
    place(name).blob = {};
    name_ = name;
    version_ = version;
    phase_ = Phase::checkpoint;
}

void Veloc::copy(int mode, const std::set<int>& ids) {
    Place& to = current(Phase::checkpoint);
    for (auto& [id, region] : regions())
        if (chosen(mode, ids, id)) to.blob.regions[id].assign(region.data, region.size);
    if (to.blob.empty()) refuse(FERMATA_ARGUMENT, "no region is protected that belongs to {}", name_);
}

void Veloc::put(int id, std::string bytes) { current(Phase::checkpoint).blob.regions[id] = std::move(bytes); }

void Veloc::collect_files() {
    if (routed_.empty()) return;
    files::Folder folder = files::Folder::at(scratch_);
    for (auto& [original, name] : routed_) places_.at(name_)->blob.files[original] = content_of(folder, name);
}

void Veloc::end(bool success) {
    Place& from = current(Phase::checkpoint);
    phase_ = Phase::none;
    Fault mine;
    try {
        if (!success) refuse(FERMATA_ARGUMENT, "it says that it could not save {} {}", name_, version_);
        collect_files();
        if (from.blob.empty()) refuse(FERMATA_ARGUMENT, "it has saved nothing for {} {}", name_, version_);
    } catch (const Fault& fault) {
        mine = fault;
    } catch (const std::exception& error) {
        mine = Ranks::fault_of(error);
    }
    cleanup();
    from.handle.agree(mine);
    from.handle.save(version_);
    from.blob = {};
    // In both modes: such programs may make no further call before they die, and no daemon writes for them.
    from.handle.wait();
}

void Veloc::wait() {
    if (phase_ == Phase::checkpoint) refuse(FERMATA_ARGUMENT, "the checkpoint has not ended yet");
    for (auto& [name, one] : places_) one->handle.wait();
}

bool Veloc::finished() {
    if (phase_ == Phase::checkpoint) refuse(FERMATA_ARGUMENT, "the checkpoint has not ended yet");
    bool all = true;
    for (auto& [name, one] : places_) all = one->handle.test() && all;
    return all;
}

std::optional<int> Veloc::newest(const std::string& name, int below) {
    check_name(name, 0);
    wait();
    for (int64_t step : place(name).handle.steps())
        if (step >= 0 && step <= INT32_MAX && (below <= 0 || step < below)) return static_cast<int>(step);
    return {};
}

void Veloc::restart(const std::string& name, int version) {
    check_name(name, version);
    if (phase_ != Phase::none) refuse(FERMATA_ARGUMENT, "a checkpoint or a restart has not ended yet");
    wait();
    int64_t step = 0;
    Place& from = place(name);
    if (!from.handle.restore(&step, version))
        refuse(FERMATA_DAMAGED, "there is no version {} of {}", version, name);
    name_ = name;
    version_ = version;
    phase_ = Phase::restart;
}

void Veloc::recover(int mode, const std::set<int>& ids) {
    const Place& from = current(Phase::restart);
    const Regions& into = regions();
    if (mode == VELOC_RECOVER_SOME)
        for (int id : ids)
            if (!saved(id)) refuse(FERMATA_MISMATCH, "region {} was not saved", id);
    for (auto& [id, bytes] : from.blob.regions) {
        if (!chosen(mode, ids, id)) continue;
        auto region = into.find(id);
        if (region == into.end() || region->second.size < bytes.size())
            refuse(
                FERMATA_MISMATCH, "region {} was saved with {} bytes, and {}", id, bytes.size(),
                region == into.end() ? "is not protected" : fmt::format("has {} now", region->second.size));
    }
    for (auto& [id, bytes] : from.blob.regions)
        if (chosen(mode, ids, id)) std::memcpy(into.at(id).data, bytes.data(), bytes.size());
}

const std::string* Veloc::saved(int id) const {
    if (phase_ != Phase::restart) return nullptr;
    const auto& regions = places_.at(name_)->blob.regions;
    auto found = regions.find(id);
    return found == regions.end() ? nullptr : &found->second;
}

void Veloc::end_restart(bool success) {
    Place& from = current(Phase::restart);
    from.blob = {};
    cleanup();
    phase_ = Phase::none;
    Fault mine;
    if (!success)
        mine = {FERMATA_MISMATCH, fmt::format("it says that it could not restore {} {}", name_, version_)};
    from.handle.agree(mine);
}

void Veloc::finish() {
    phase_ = Phase::none;
    for (auto& [name, one] : places_) one->handle.finish();
    cleanup();
}

// A file of scratch with a name of its own. At a restart it is there, with what was saved under the original
// name, or with the only file that was saved.
std::string Veloc::route(const std::string& original) {
    if (phase_ == Phase::none)
        refuse(FERMATA_ARGUMENT, "a file belongs between the begin and the end of a checkpoint or a restart");
    const std::string name = fmt::format("{}-{}-{}-{}", name_, version_, who_, routed_.size());
    if (scratch_.empty()) scratch_ = own_scratch(words_.scratch, mpi_.rank == 0);
    files::Folder folder = files::Folder::at(scratch_);
    auto before = routed_.find(original);
    if (before != routed_.end()) return folder.path_of(before->second);
    if (folder.path_of(name).size() >= VELOC_MAX_NAME)
        refuse(FERMATA_ARGUMENT, "{} is longer than VELOC_MAX_NAME", folder.path_of(name));
    folder.remove_file(name);
    if (phase_ == Phase::restart) {
        const auto& files = places_.at(name_)->blob.files;
        auto saved = files.find(original);
        if (saved == files.end() && files.size() == 1) saved = files.begin();
        if (saved == files.end())
            refuse(FERMATA_MISMATCH, "no file {} was saved with {} {}", visible(original), name_, version_);
        Fd fd = folder.create(name);
        write_all(fd.get(), saved->second.data(), saved->second.size(), folder.path_of(name));
    }
    routed_[original] = name;
    return folder.path_of(name);
}

void Veloc::cleanup() {
    if (routed_.empty()) return;
    if (auto folder = files::Folder::find_at(scratch_))
        for (auto& [original, name] : routed_) folder->remove_file(name);
    routed_.clear();
}

}  // namespace fermata::api
