#include "split/process/files.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "files/kept.h"
#include "files/others_link.h"
#include "split/noted_files.h"
#include "split/process/descriptors/kind.h"
#include "split/process/descriptors/saved.h"
#include "split/process/file_copy.h"
#include "split/process/read_files.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace {

// A copy takes about as long as reading it: with 64 MiB a job stands 50 ms longer, and most files that are
// rewritten are smaller. All of a rank together: not more than what an image takes, which is written anyway.
constexpr int64_t kLargestCopy = 64 << 20;
constexpr int64_t kLargestSum = int64_t{1} << 30;
// The ends of what is too large for a copy are compared.
constexpr int64_t kSample = 64 << 10;
// So many copies are written out one by one; more, with all else of that file system.
constexpr size_t kSyncedAlone = 16;
constexpr size_t kNamedInALine = 4;

struct Wanted {
    uint32_t how = 0;
    bool open = false;
    bool locked = false;  // by a POSIX lock of the program's
};

// The copy that this process has kept last of a file: as long as nothing has changed the next generation
// shares it.
struct Kept {              // NOLINT(bugprone-exception-escape): of Json, whose moves throw nothing
    std::string key;       // and the name of the copy
    files::Folder folder;  // of the copy; none: it is another rank's
    Json entry;
};
std::map<std::string, Kept> g_kept;
std::set<std::string> g_told;

std::string real_path(const std::string& path) {
    char out[PATH_MAX];
    return realpath(path.c_str(), out) != nullptr ? out : std::string();
}

// Names in one line, the first few of many.
std::string some_of(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size() && i < kNamedInALine; ++i) text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kNamedInALine)
        text += " and " + std::to_string(names.size() - kNamedInALine) + " more";
    return text;
}

class Capture {
  public:
    Capture(const Keep& keep, const Json& descriptors, Lines& warnings) : keep_(keep), warnings_(warnings) {
        open_ones(descriptors);
        if (keep_.all) noted_ones();
    }

    bool anything() const { return !wanted_.empty() || !read_.empty(); }
    bool wants(const std::string& path) const { return wanted_.count(path) != 0 || read_.count(path) != 0; }
    bool is_in(const files::Folder& folder) const {
        return folder_ && folder.descriptor() == folder_.descriptor();
    }
    void into(files::Folder folder) { folder_ = std::move(folder); }
    Copies copies() { return fresh_.empty() && !linked_ ? Copies() : Copies(folder_, std::move(fresh_)); }

    Json run(bool alone) {
        for (auto& [path, wanted] : wanted_)
            if (!wanted.locked || alone)
                one(path, wanted);
            else
                unkept_.push_back(path + " (locked)");
        for (const auto& [path, noted] : read_)
            if (wanted_.count(path) == 0) read(path, *noted);
        std::vector<std::string> fresh;
        for (const std::string& name : unkept_)
            if (g_told.insert(name).second) fresh.push_back(name);
        if (!fresh.empty())
            warnings_.push_back(
                std::to_string(fresh.size()) +
                (fresh.size() == 1 ? " file that the program writes is"
                                   : " files that the program writes are") +
                " not kept with the checkpoint: after a restart they hold what was written later: " +
                some_of(fresh));
        return std::move(list_);
    }

  private:
    void open_ones(const Json& descriptors) {
        for (const Json& one : descriptors.at("descriptions")) {
            int flags = one.at("flags");
            if (one.at("kind") != descriptors::word_of(descriptors::Kind::file)) continue;
            if (one.contains("read") && keep_.all && one.at("read").contains("name"))
                read_.insert({one.at("path"), &one.at("read")});
            if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) continue;
            bool appended = (flags & O_APPEND) != 0;
            if (!appended && !keep_.all) continue;
            std::string path = one.at("path");
            if (is_of_the_kernel(path)) continue;
            Wanted& wanted = wanted_[path];
            wanted.open = true;
            wanted.how |= appended ? kNotedAppended | kNotedLastAppended : kNotedWritten;
            for (const Json& lock : one.at("locks"))
                wanted.locked |= lock.get<descriptors::Lock>().kind == "POSIX";
        }
    }

    void noted_ones() {
        const NotedFiles* noted = keep_.noted;
        if (noted == nullptr) return;
        if (noted->missed != 0 && g_told.insert("").second)
            warnings_.push_back("more than " + std::to_string(noted->count) +
                                " files were opened for writing: those that came later are not kept with the "
                                "checkpoint, and hold after a restart what was written later");
        for (uint32_t i = 0; i < noted->count; ++i)
            note(noted->text + noted->file[i].path, noted->file[i].how);
    }

    void note(const std::string& path, uint32_t how) {
        struct stat there;
        if (lstat(path.c_str(), &there) != 0) {
            if ((how & (kNotedAppended | kNotedWritten)) == 0) return;
            size_t slash = path.rfind('/');
            std::string folder = real_path(path.substr(0, slash + 1));
            std::string real = (folder.empty()  ? path.substr(0, slash)
                                : folder == "/" ? ""
                                                : folder) +
                               path.substr(slash);
            if (absent_.insert(real).second) list_.push_back({{"path", real}, {"how", "absent"}});
            return;
        }
        std::string real = real_path(path);
        if (real != path)
            if (const std::string link = files::others_link(path); !link.empty()) {
                unkept_.push_back(path + " (" + link + ")");
                return;
            }
        if (S_ISLNK(there.st_mode)) {
            char target[PATH_MAX];
            ssize_t size = readlink(path.c_str(), target, sizeof target - 1);
            if (size > 0)
                list_.push_back({{"path", path},
                                 {"how", "link"},
                                 {"target", std::string(target, static_cast<size_t>(size))}});
            if (real.empty() || stat(real.c_str(), &there) != 0) return;
        }
        if (S_ISREG(there.st_mode) && !real.empty()) wanted_[real].how |= how;
    }

    void one(const std::string& path, const Wanted& wanted) {
        files::Opened file = open_to_look(path);
        struct stat status;
        if (!file) {
            // Gone or replaced since a moment ago, or not to be read by who writes it.
            if (file.error != ENOENT && file.error != 0) unkept_.push_back(path + " (" + file.why + ")");
            return;
        }
        if (const std::string link = files::others_link(path, file.fd.get()); !link.empty()) {
            unkept_.push_back(path + " (" + link + ")");
            return;
        }
        if (fstat(file.fd.get(), &status) != 0) return;
        std::string key = name_of_copy(path, status);
        Json entry = describe_status(status);
        entry["path"] = path;
        if (wanted.open && (wanted.how & kNotedLastAppended) != 0) entry["open_appended"] = true;
        auto known = g_kept.find(path);
        bool same = known != g_kept.end() && known->second.key == key;
        if (same && !known->second.folder) return;  // who has it last has it again
        if (same && known->second.entry.at("settled").get<bool>() && relink(known->second, key)) return;
        g_kept.erase(path);
        std::optional<Fd> place;
        try {
            place = folder_.try_create(key);
        } catch (const Error& error) {
            unkept_.push_back(path + " (" + error.what() + ")");
            return;
        }
        if (!place) {  // another rank's
            g_kept[path] = {key, {}, {}};
            return;
        }
        if (keep_.all && keep_content(path, file.fd.get(), place->get(), status, entry)) {
            entry["how"] = "copy";
            entry["name"] = key;
            g_kept[path] = {key, folder_, entry};
            fresh_.push_back(key);
        } else if ((wanted.how & kNotedLastAppended) != 0 &&
                   keep_ends(file.fd.get(), status.st_size, entry)) {
            entry["how"] = "end";
        } else {
            entry["how"] = "large";
            // An empty place: the file is in this rank's care all the same.
            [[maybe_unused]] int ignored = ftruncate(place->get(), 0);
            if (unkept_.empty() || !unkept_.back().starts_with(path + " (")) unkept_.push_back(path);
        }
        list_.push_back(std::move(entry));
    }

    // Best effort: a restart that finds the file changed, and no copy, says so.
    void read(const std::string& path, const Json& noted) {
        const std::string name = noted.at("name");
        auto known = g_kept.find(path);
        // (The holder of the last copy may not have the file any more.)
        if (known != g_kept.end() && known->second.key == name && known->second.folder &&
            known->second.entry.at("settled").get<bool>() && relink(known->second, name))
            return;
        g_kept.erase(path);
        files::Opened file = open_to_look(path);
        if (!file || copied_ + noted.at("size").get<int64_t>() > kLargestSum) return;
        try {
            std::optional<Fd> place = folder_.try_create(name);
            std::string sum;
            if (!place) return;  // another rank's
            if (!copy_file(file.fd.get(), 0, noted.at("size"), place->get(), &sum) ||
                Json(sum) != noted.at("sum")) {
                folder_.remove_file(name);
                return;
            }
        } catch (const Error&) {
            return;
        }
        copied_ += noted.at("size").get<int64_t>();
        Json entry = noted;
        entry["path"] = path;
        entry["how"] = "read";
        g_kept[path] = {name, folder_, entry};
        fresh_.push_back(name);
        list_.push_back(std::move(entry));
    }

    bool relink(Kept& known, const std::string& key) {
        if (linkat(known.folder.descriptor(), key.c_str(), folder_.descriptor(), key.c_str(), 0) != 0)
            return false;
        linked_ = true;
        list_.push_back(known.entry);
        known.folder = folder_;
        return true;
    }

    bool keep_content(const std::string& path, int from, int to, const struct stat& status, Json& entry) {
        bool small = status.st_size <= kLargestCopy;
        if (status.st_size > 0 && clone_file(from, to)) {
            // A copy that the file system makes for us in one step need not be read, if that takes long.
            entry["sum"] = small ? sum_of(from, 0, status.st_size) : "";
        } else {
            if (!small || copied_ + status.st_size > kLargestSum) return false;
            std::string sum;
            if (!copy_file(from, 0, status.st_size, to, &sum)) {
                unkept_.push_back(path + " (" + error_text(errno) + ")");
                return false;
            }
            copied_ += status.st_size;
            entry["sum"] = sum;
        }
        struct stat after;
        if (fstat(from, &after) == 0 && after.st_size == status.st_size &&
            after.st_mtim.tv_sec == status.st_mtim.tv_sec && after.st_mtim.tv_nsec == status.st_mtim.tv_nsec)
            return true;
        unkept_.push_back(path + " (somebody else is writing it)");
        return false;
    }

    static bool keep_ends(int fd, int64_t size, Json& entry) {
        int64_t part = std::min(size, kSample);
        entry["sample"] = kSample;
        entry["head"] = sum_of(fd, 0, part);
        entry["tail"] = sum_of(fd, size - part, part);
        return !entry["head"].get<std::string>().empty() && !entry["tail"].get<std::string>().empty();
    }

    const Keep& keep_;
    files::Folder folder_;
    Lines& warnings_;
    std::map<std::string, Wanted> wanted_;
    std::map<std::string, const Json*> read_;  // open for reading, and what is noted of it
    std::set<std::string> absent_;
    std::vector<std::string> unkept_, fresh_;
    bool linked_ = false;
    int64_t copied_ = 0;
    Json list_ = Json::array();
};

// Ranks make it one after the other.
files::Folder kept_folder(const files::Folder& generation) {
    if (auto made = generation.make(files::kKeptFolder)) return *made;
    files::Folder folder = generation.below(files::kKeptFolder);
    if (folder.owner() != geteuid() || folder.open_to_others())
        fail("{} is not the directory that the job made: somebody has exchanged it", folder.path());
    return folder;
}

}  // namespace

Json capture_files(const Keep& keep, const Json& descriptors, Copies& copies, Lines& warnings) {
    if (!keep.generation) return Json::array();
    Capture capture(keep, descriptors, warnings);
    if (capture.anything()) capture.into(kept_folder(keep.generation));
    // Directories are closed in this thread, which has the process's table of descriptors, not in the other.
    std::vector<files::Folder> earlier;
    for (const auto& [path, kept] : g_kept)
        if (kept.folder) earlier.push_back(kept.folder);
    Json list;
    std::string failed;
    // In a thread with a table of descriptors of its own: no lock of the program's hangs on it.
    std::thread([&] {
        constexpr unsigned kUnshare = 1 << 1;  // CLOSE_RANGE_UNSHARE, where unshare itself is forbidden
        bool alone = unshare(CLONE_FILES) == 0 || raw::call(SYS_close_range, ~0U, ~0U, kUnshare) == 0;
        try {
            list = capture.run(alone);
        } catch (const Refused& refused) {
            failed = refused.line;
        } catch (const std::exception& error) {
            failed = error.what();
        }
    }).join();
    copies = capture.copies();
    if (!failed.empty()) throw Refused{failed};
    // A file that is not in this generation is not followed any more: its directory may go.
    std::erase_if(g_kept, [&](const auto& one) {
        return one.second.folder ? !capture.is_in(one.second.folder) : !capture.wants(one.first);
    });
    return list;
}

Copies::~Copies() {
    if (folder_) g_kept.clear();
}

void Copies::sync() {
    if (!folder_) return;
    if (names_.size() > kSyncedAlone) {
        if (syncfs(folder_.descriptor()) != 0) fail_errno("cannot bring {} to storage", folder_.path());
    } else {
        for (const std::string& name : names_) sync_file(folder_.read(name).get(), folder_.path_of(name));
    }
    folder_.sync();
    folder_ = {};
}

}  // namespace fermata::split::process
