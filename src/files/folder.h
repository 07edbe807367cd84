// A Folder is an open directory in a place that other users may reach: a checkpoint directory, a generation,
// a run directory.
//
// Every file in a Folder is reached by the Folder's descriptor, so that nobody can put another directory
// under the same name meanwhile. Links are never followed, existing files are never truncated, and a pipe or
// a device under the name of a file is refused instead of waited for. The owner of a Folder is asked once,
// when the Folder is opened, and holds for as long as the descriptor does.
//
// Every function throws Error, with the path in the line, unless its comment says something else.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace fermata::files {

// Manifests and the like; more is not read, whatever a file claims.
inline constexpr uint64_t kMostText = 64u << 20;

class Folder {
  public:
    Folder() = default;  // none

    // The directory that the user named: links in this path are the user's own and are followed.
    static Folder at(const std::string& path);
    // Opens it as at() does, but gives none when there is no directory of this name.
    static std::optional<Folder> find_at(const std::string& path);

    // The same without its descriptor, of which there are not many: path, owner and mode can be asked, no
    // more.
    Folder closed() const;

    explicit operator bool() const { return bool(open_); }
    const std::string& path() const { return open_->path; }
    std::string path_of(const std::string& name) const { return path() + "/" + name; }
    int descriptor() const { return open_->fd.get(); }
    uid_t owner() const { return open_->status.st_uid; }
    mode_t mode() const { return open_->status.st_mode & 07777; }
    // Users other than its owner may put files into it, or take them away.
    bool open_to_others() const { return (mode() & 022) != 0; }
    // Throws unless the folder's owner is believed (owners.h); `what` names the folder in the message.
    void check_owner(const std::string& what) const;

    // Directories in this one, never through a link. Gives none, too, when it is another user's who lets
    // nobody in.
    Folder below(const std::string& name) const;
    std::optional<Folder> find(const std::string& name) const;
    // A directory beside this one, in whatever directory this one lies now.
    Folder beside(const std::string& name) const;
    std::optional<Folder> find_beside(const std::string& name) const;
    // A new one, 0700. Empty when the name is taken.
    std::optional<Folder> make(const std::string& name) const;
    // One of this user's alone, made when there is none. Empty when the name is something else's: a link, a
    // file, somebody else's directory, one that is open to others.
    std::optional<Folder> own(const std::string& name) const;

    // Files. A new one (0600, O_EXCL), for writing and reading.
    Fd create(const std::string& name) const;
    // Gives none when the name is taken.
    std::optional<Fd> try_create(const std::string& name) const;
    // Opens an existing file, which must be regular and of a believed owner.
    Fd read(const std::string& name) const;
    Fd write(const std::string& name) const;
    // Opens or makes a lock file, never truncating it; it must be regular and of a believed owner.
    Fd lock_file(const std::string& name) const;
    // The same, for a file that only grows: whatever is written goes to its end.
    Fd append(const std::string& name) const;
    // The whole text of a file of at most `most` bytes.
    std::string text(const std::string& name, uint64_t most = kMostText) const;
    // Readers see the old or the new content, never half; both are on storage when this returns.
    void replace(const std::string& name, const std::string& content) const;
    // The same with content that comes piece by piece: `fill` gives one after the other to what it is called
    // with.
    using Put = std::function<void(std::string_view piece)>;
    void replace(const std::string& name, const std::function<void(const Put&)>& fill) const;
    // The same, and nothing is brought to storage.
    void replace_unsynced(const std::string& name, const std::string& content) const;
    // The same, and everybody may read it (0644).
    void publish(const std::string& name, const std::string& content) const;

    // The status of what has this name, links not followed; none when nothing has it.
    std::optional<struct stat> look(const std::string& name) const;
    bool has(const std::string& name) const { return look(name).has_value(); }
    // Whether another user than this one and root has it.
    bool is_others(const std::string& name) const;
    // Length of a regular file; none for anything else.
    std::optional<uint64_t> size_of(const std::string& name) const;
    // All names, sorted. `most`: a directory with more is refused.
    std::vector<std::string> names() const;

    // False, with errno, when it cannot be removed.
    bool remove_file(const std::string& name) const noexcept;
    bool remove_empty(const std::string& name) const noexcept;
    bool rename(const std::string& from, const std::string& to) const noexcept;
    bool exchange(const std::string& one, const std::string& other) const noexcept;
    void sync() const;

    // Is what this path leads to, links followed, still this directory?
    bool is_at(const std::string& path) const;
    // Is the directory under `name` still this one?
    bool is(const Folder& parent, const std::string& name) const;

  private:
    struct Open {
        Fd fd;
        std::string path;
        struct stat status {};
    };
    static std::optional<Folder> open(int at, const std::string& name, const std::string& path, int flags);
    std::optional<Fd> try_open(const std::string& name, int flags, mode_t mode = 0) const;
    void put(const std::string& name, const std::function<void(const Put&)>& fill, bool synced,
             mode_t mode = 0600) const;
    Fd checked(const std::string& name, int flags) const;
    Fd made_by_us(const std::string& name, int flags) const;
    std::shared_ptr<const Open> open_;
};

// mkdir -p; new directories are 0700. Links in the path are the user's own and are followed.
void make_path(const std::string& path);
// Absolute, without "." and "..", as the text says it: links are not looked at.
std::string absolute_path(const std::string& path);

// Splits a path at its last slash into directory ("." when there is none) and name.
std::pair<std::string, std::string> split_path(const std::string& path);

}  // namespace fermata::files
