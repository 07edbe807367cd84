// The store keeps the generations of a checkpoint directory (docs/formats/manifest.md).
//
// A generation is a directory gen-000001 with an image per rank and a manifest. The generation exists once
// its manifest has its name: everything else in the directory is synced before.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/generation.h"
#include "files/folder.h"
#include "store/level.h"

namespace fermata::store {

// A job that ended with exit code 0: nothing of it is left to be continued.
struct JobEnd {
    uint64_t job = 0;
    std::string name;
    std::vector<std::string> command;
    std::string when;  // "2026-11-21 16:00:00"
};

// A generation in the making, as a rank finds it where the root says: throws unless it is this job's, of this
// number, and of this user.
files::Folder open_pending(const std::string& directory, uint64_t job, uint32_t number);
// The generation that the root chose, and no other: its manifest has this seal. Throws with
// ExitCode::damaged.
GenerationInfo open_chosen(const std::string& directory, const std::string& seal, const image::Key* key);

class Store : public Level {
  public:
    // Opens `directory`, for writing creating it (0700) and checking that it can be written. With a key the
    // seals of manifests are compared, and new ones get theirs.
    static Store for_reading(const std::string& directory, image::KeyPointer key = nullptr);
    static Store for_writing(const std::string& directory, image::KeyPointer key = nullptr);
    const image::Key* key() const { return key_.get(); }

    // One running job per directory: throws when another holds it. Held until the Store is destroyed.
    // Generations that are made, swept and retained from now on are `job`'s.
    void lock(const std::string& owner, uint64_t job);
    void act_for(uint64_t job) { job_ = job; }
    // Others than its owner may put generations into the directory, or take them away.
    bool open_to_others() const { return folder_.open_to_others(); }

    const std::string& directory() const { return directory_; }
    LevelName name() const override { return LevelName::files; }
    // Links and directories that are not Fermata's are no generations.
    std::vector<GenerationInfo> list() const override;
    GenerationInfo choose(std::optional<uint32_t> wanted, bool fallback) const override;
    // The same checks for a generation that list() gave.
    void check(const GenerationInfo& info) const;
    // Without those of its images.
    void check_manifest(const GenerationInfo& info) const;

    // Jobs that ended with exit code 0, oldest first.
    std::vector<JobEnd> ends() const;
    void note_end(const JobEnd& end) const;
    // The job is continued all the same.
    void forget_end(uint64_t job) const noexcept;

    // Makes the directory of the next generation. Removes uncommitted ones, which nobody can be writing any
    // more: the caller holds the lock.
    GenerationInfo begin() override { return begin_from(1); }
    // The same, with a number of at least `least`.
    GenerationInfo begin_from(uint32_t least);
    void check_space(uint64_t bytes) const override;
    // Syncs and renames the manifest into place.
    void commit(const GenerationInfo& pending, const Manifest& manifest) override;
    void abandon(const GenerationInfo& pending) noexcept override;
    void retain(unsigned keep) override;

    // Only the manifest of a generation is here whose images nodes keep (src/level). From here on such a one
    // exists. One in memory would not outlive this machine: nothing is synced. One in local directories is
    // to, once its nodes have all of it on storage.
    void commit_on_nodes(const GenerationInfo& pending, const Manifest& manifest);
    // Its images have come here, and are synced: from here on it is one in files.
    void commit_copied(uint32_t number);
    // The images that have come so far go.
    void forget_copied(uint32_t number) const noexcept;
    // One in memory has come to local directories as well: its manifest is brought to storage, too.
    void sync_manifest(Generation generation) const;
    // Removes this job's manifests of such ones, but those that are kept.
    void keep_on_nodes(const std::vector<Generation>& kept);

    // Removes what other jobs of this user began here and never committed. Only while this Store holds the
    // lock, and only where that says that none of them runs: on a file system of this machine. Never throws.
    void remove_left_behind() const noexcept;
    // Whether it would remove this one.
    bool is_left_behind(const GenerationInfo& info) const;
    // Whether a job, or `fermata compact`, has the directory at this moment.
    bool in_use() const;

    // Makes a complete generation stand alone: false when it does so already. Everything is read and
    // compared, one rank at a time in memory, and written beside the old files, whose place the new ones then
    // take in one step. Throws, with the generation as it was, when another one refers to it, space is short
    // or anything is damaged.
    bool compact(uint32_t number, const image::WriteOptions& options);

  private:
    Store(files::Folder folder, std::string directory, image::KeyPointer key)
        : folder_(std::move(folder)), directory_(std::move(directory)), key_(std::move(key)) {}
    void refuse(const GenerationInfo& info, const std::string& damage) const;
    void sweep(uint32_t below) const;
    bool remove(const Brief& one) const;
    bool is_left_behind(const Brief& one) const;

    // survey.cpp: as list(), and no manifest is read twice.
    std::vector<Brief> survey() const;
    static Brief brief_of(const GenerationInfo& info);
    void remember(const Brief& brief, const std::optional<struct stat>& manifest) const;
    // Which file it was.
    struct Stamp {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = 0;
        struct timespec changed {};
        uid_t owner = 0;  // of the directory
        bool operator==(const Stamp& other) const;
    };
    static Stamp stamp_of(const files::Folder& folder, const struct stat& manifest);
    struct Known {
        Stamp stamp;
        Brief brief;  // without its folder
    };
    mutable std::map<uint32_t, Known> known_;  // complete generations

    files::Folder folder_;
    std::string directory_;
    image::KeyPointer key_;
    Fd lock_;
    uint64_t job_ = 0;  // of whoever holds the lock
};

// The manifest as text, ending in a line with the checksum of all that stands before it, and one with the
// key's seal of that. `key`: the one that manifest.key_id is of.
std::string to_text(const Manifest& manifest, const image::Key* key = nullptr);
// The same piece by piece, for a file.
void write_text(const Manifest& manifest, const image::Key* key, const files::Folder::Put& put);
// Throws when anything is not as to_text writes it. Without its key anybody may have written it.
Manifest parse_manifest(const std::string& text, const std::string& path, const image::Key* key = nullptr);

}  // namespace fermata::store
