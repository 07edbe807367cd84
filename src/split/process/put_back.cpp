// This file puts the files of files.h back at a restart. Nobody of the job has any of them open: the ranks
// wait for each other before they go on. Every step leaves the file as it was or as it shall be: a restart
// that is killed in the middle is repeated.
//
// Each file is reached by a descriptor of its directory, which is compared with the path once: whoever may
// write above it can put a link in its place at any moment.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "files/kept.h"
#include "files/others_link.h"
#include "files/owners.h"
#include "split/process/file_copy.h"
#include "split/process/files.h"

namespace fermata::split::process {
namespace {

timespec time_of(const Json& pair) { return {pair.at(0).get<time_t>(), pair.at(1).get<long>()}; }

void set_times(int fd, const Json& entry) {
    timespec times[2] = {{0, UTIME_OMIT}, time_of(entry.at("modified"))};
    futimens(fd, times);
}

class Back {
  public:
    // `all`: else files are cut, and nothing more.
    Back(const files::Folder& folder, const std::string& generation, bool all, PutBack& result)
        : folder_(folder), generation_(generation), all_(all), result_(result) {}

    void one(const Json& entry) {
        std::string how = entry.at("how");
        if (how == "read") return;  // not the program's to put back (read_files.h)
        path_ = entry.at("path");
        if (!path_.starts_with("/")) refuse("it is no path from the root");
        hold_parent();
        there_ = parent_ && lstat(at_.c_str(), &now_) == 0;
        if (there_ && S_ISLNK(now_.st_mode) && !files::believed(now_.st_uid))
            refuse(path_ + " is a link of " + files::name_of_user(now_.st_uid) + "'s");
        if (how == "absent") return absent();
        if (how == "link") return symbolic_link(entry.at("target"));
        bool regular = there_ && S_ISREG(now_.st_mode);
        if (regular && is_untouched(entry, now_)) return;
        if (how == "copy") {
            copied(entry, regular);
        } else if (how == "end") {
            ended(entry, regular);
        } else if (regular && now_.st_size == entry.at("size").get<int64_t>() &&
                   same_time(entry.at("modified"), now_.st_mtim)) {
            return;
        } else {
            result_.warnings.push_back(path_ +
                                       " was changed after the checkpoint and is too large to have been "
                                       "kept with it: it stays as it is");
        }
    }

  private:
    // `why` names files by the path.
    [[noreturn]] void refuse(std::string why) const {
        const std::string held = at_.substr(0, at_.rfind('/') + 1),
                          named = path_.substr(0, path_.rfind('/') + 1);
        for (size_t at = 0; !held.empty() && (at = why.find(held, at)) != why.npos; at += named.size())
            why.replace(at, held.size(), named);
        throw Refused{"file " + path_ + " cannot be put back as it was at " + generation_ + ": " + why +
                      ": mend that and restart again (--files off leaves all files as they are now)"};
    }

    static std::string parent_of(const std::string& path) {
        return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
    }

    static Fd open_folder(int at, const std::string& name, int flags) {
        return Fd(openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
    }

    // Leaves it empty when there is no such directory.
    void hold_parent() {
        const std::string folder = parent_of(path_);
        hold(open_folder(AT_FDCWD, folder, 0));
        if (const std::string link =
                parent_ ? files::others_link(folder, parent_.get()) : files::others_link(folder);
            !link.empty())
            refuse(link);
    }

    void hold(Fd parent) {
        parent_ = std::move(parent);
        at_ = parent_
                  ? "/proc/thread-self/fd/" + std::to_string(parent_.get()) + path_.substr(path_.rfind('/'))
                  : "";
    }

    void copied(const Json& entry, bool regular) {
        auto size = entry.at("size").get<int64_t>();
        std::string sum = entry.at("sum");
        if (regular && now_.st_size >= size && !sum.empty()) {
            files::Opened file = open_itself(at_, O_RDONLY);
            if (file && sum_of(file.fd.get(), 0, size) == sum) {
                if (now_.st_size > size) return cut(entry);
                if (!same_time(entry.at("modified"), now_.st_mtim)) set_times(file.fd.get(), entry);
                return;
            }
        }
        if (all_) replace(entry);
    }

    void ended(const Json& entry, bool regular) {
        auto size = entry.at("size").get<int64_t>();
        files::Opened file = open_itself(at_, O_RDONLY);
        std::string head = entry.at("head"), tail = entry.at("tail");
        int64_t part = std::min<int64_t>(size, entry.at("sample"));
        if (!regular || !file || now_.st_size < size || sum_of(file.fd.get(), 0, part) != head ||
            sum_of(file.fd.get(), size - part, part) != tail) {
            result_.warnings.push_back(
                path_ +
                " was changed after the checkpoint in another way than by appending: it stays as it is");
        } else if (now_.st_size > size) {
            cut(entry);
        }
    }

    void cut(const Json& entry) {
        std::string aside = name_beside(at_, "end-after-" + generation_);
        std::string why = cut_back(at_, entry.at("size"), aside);
        if (!why.empty()) refuse("what was appended to it cannot be set aside: " + why);
        if (files::Opened file = open_itself(at_, O_WRONLY)) set_times(file.fd.get(), entry);
        ++result_.files;
    }

    // Below what there is of them, one in the other.
    void make_parents() {
        if (parent_) return;
        std::string folder = parent_of(path_);
        std::vector<std::string> missing;
        Fd at;
        for (; !(at = open_folder(AT_FDCWD, folder, 0)); folder = parent_of(folder)) {
            if (errno != ENOENT) refuse(folder + ": " + error_text(errno));
            missing.push_back(folder);
        }
        if (const std::string link = files::others_link(folder, at.get()); !link.empty()) refuse(link);
        for (auto one = missing.rbegin(); one != missing.rend(); ++one) {
            const std::string name = one->substr(one->rfind('/') + 1);
            if (name.empty()) continue;  // "a//b": as the program wrote it
            if (mkdirat(at.get(), name.c_str(), 0777) != 0 && errno != EEXIST)
                refuse(*one + ": " + error_text(errno));
            if (!(at = open_folder(at.get(), name, O_NOFOLLOW))) refuse(*one + ": " + error_text(errno));
        }
        hold(std::move(at));
    }

    // The present file gets another name, and keeps this one until the next has it, where that can be.
    void set_aside() const {
        std::string aside = name_beside(at_, "after-" + generation_);
        if (S_ISREG(now_.st_mode) && link(at_.c_str(), aside.c_str()) == 0) return;
        if (rename(at_.c_str(), aside.c_str()) != 0) refuse(aside + ": " + error_text(errno));
    }

    // In the directory of this generation, and of nobody whom we do not believe.
    Fd open_copy(const std::string& name) const {
        if (!files::is_kept_name(name)) refuse("the image names a copy that cannot be");
        try {
            files::Folder kept = folder_.below(files::kKeptFolder);
            kept.check_owner(kept.path());
            return kept.read(name);
        } catch (const Error& error) {
            refuse(error.what());
        }
    }

    void replace(const Json& entry) {
        std::string copy = entry.at("name");
        std::string from = folder_.path() + "/" + files::kKeptFolder + "/" + copy;
        Fd kept = open_copy(copy);
        make_parents();
        std::string name = name_beside(at_, "fermata-" + std::to_string(getpid()));
        try {
            fill(name, kept.get(), from, entry);
            if (there_) set_aside();
            if (rename(name.c_str(), at_.c_str()) != 0) refuse(error_text(errno));
        } catch (...) {
            unlink(name.c_str());
            throw;
        }
        sync_parent(at_);
        ++result_.files;
    }

    void fill(const std::string& name, int kept, const std::string& from, const Json& entry) const {
        Fd file = make_new(name, 0600);
        if (!file) refuse(name + ": " + error_text(errno));
        auto size = entry.at("size").get<int64_t>();
        std::string sum = entry.at("sum"), found;
        struct stat status;
        if (fstat(kept, &status) != 0 || status.st_size != size) refuse(from + " is damaged");
        if (size > 0 && clone_file(kept, file.get()))
            found = sum.empty() ? "" : sum_of(kept, 0, size);
        else if (!copy_file(kept, 0, size, file.get(), &found))
            refuse(name + ": " + error_text(errno));
        if (!sum.empty() && found != sum) refuse(from + " is damaged");
        // Another owner only as root; a file of another's that the program may write comes back as its own.
        [[maybe_unused]] int ignored =
            fchown(file.get(), entry.at("owner").at(0).get<uid_t>(), entry.at("owner").at(1).get<gid_t>());
        fchmod(file.get(), entry.at("mode").get<mode_t>());
        set_times(file.get(), entry);
        if (fsync(file.get()) != 0) refuse(name + ": " + error_text(errno));
    }

    // Every rank that wrote it has it in its list: the first one moves it.
    void absent() {
        if (!there_ || !S_ISREG(now_.st_mode)) return;
        std::string aside = name_beside(at_, "after-" + generation_);
        if (rename(at_.c_str(), aside.c_str()) == 0)
            ++result_.files;
        else if (errno != ENOENT)
            refuse(aside + ": " + error_text(errno));
    }

    void symbolic_link(const std::string& target) {
        std::string now(target.size() + 1, 0);
        ssize_t size = readlink(at_.c_str(), now.data(), now.size());
        if (size >= 0 && now.substr(0, static_cast<size_t>(size)) == target) return;
        if (there_ && !S_ISLNK(now_.st_mode) && !S_ISREG(now_.st_mode)) return;
        make_parents();
        std::string name = name_beside(at_, "fermata-" + std::to_string(getpid()));
        if (symlink(target.c_str(), name.c_str()) != 0) refuse(name + ": " + error_text(errno));
        if (there_ && S_ISREG(now_.st_mode)) set_aside();
        if (rename(name.c_str(), at_.c_str()) != 0) {
            int error = errno;
            unlink(name.c_str());
            refuse(error_text(error));
        }
        ++result_.files;
    }

    const files::Folder& folder_;
    const std::string& generation_;
    bool all_;
    PutBack& result_;
    std::string path_;
    Fd parent_;       // its directory; none: it is not there
    std::string at_;  // the file in there
    bool there_ = false;
    struct stat now_ = {};
};

}  // namespace

PutBack put_files_back(std::string_view bytes, const files::Folder& generation, const std::string& name,
                       bool all) {
    PutBack result;
    try {
        Json state = parse_state(bytes);
        if (!state.contains("files")) return result;
        const Json& settings = state.at("settings");
        // Nothing is made in the place of a project that is not there any more, or of another user's.
        if (!settings.at("cwd_deleted").get<bool>()) open_working_directory(settings);
        Back back(generation, name, all, result);
        // Links first: others may be reached through them.
        for (bool links : {true, false})
            for (const Json& entry : state.at("files")) {
                if ((entry.at("how") == "link") != links) continue;
                if (all || entry.value("open_appended", false)) back.one(entry);
            }
    } catch (const Refused& refused) {
        result.error = refused.line;
    } catch (const std::exception& error) {
        result.error = std::string("the image's process state is damaged: ") + error.what();
    }
    return result;
}

}  // namespace fermata::split::process
