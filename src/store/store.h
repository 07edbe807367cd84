// The store keeps the generations of a checkpoint directory (docs/formats/manifest.md).
//
// A generation is a directory gen-000001 with an image per rank and a manifest. The generation exists once
// its manifest has its name: everything else in the directory is synced before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/generation.h"
#include "files/folder.h"
#include "image/image.h"

namespace fermata::store {

inline constexpr int kManifestVersion = 5;
inline constexpr int kOldestManifest = 2;  // knew no shared file; 3 no encryption; 4 one program only
inline constexpr const char* kManifest = "manifest.json";
// Before the name of a generation: its directory while it is being compacted.
inline constexpr const char* kUnfinished = ".compact-";
// In the directory of every generation, from its first moment on: whose it is. Only what has it is ever
// removed.
inline constexpr const char* kMarker = ".fermata";
// A manifest of 10^6 ranks has some 150 MB.
inline constexpr uint64_t kMostManifest = 256u << 20;

// How the images lie in the directory of their generation: a file for each, or one for all.
enum class Layout { files, shared };
const char* name_of(Layout layout);

struct ImageEntry {
    uint32_t rank = 0;
    std::string file;  // relative to the generation's directory
    uint64_t bytes = 0;
    std::string checksum;  // hex of image::Summary::checksum
    uint64_t offset = 0;   // in the file, when that holds all images
};

// Neighbouring ranks that run one program, of a job that runs several (`fermata run … : …`).
struct Segment {
    uint32_t first_rank = 0;
    uint32_t ranks = 0;
    std::vector<std::string> command;
    bool operator==(const Segment&) const = default;
};
// The whole command of a job, as mpiexec takes it: of several programs "-n 1 ./atm : -n 3 ./ocn".
std::vector<std::string> whole_command(const std::vector<std::string>& command,
                                       const std::vector<Segment>& segments);
// For JSON and back, exactly: `run --continue` compares them, and words need not be UTF-8.
std::vector<std::string> words_as_utf8(const std::vector<std::string>& words);
std::vector<std::string> words_of_utf8(const std::vector<std::string>& text);

// Manifest is what a restart needs to know before it opens an image.
struct Manifest {
    uint64_t job = 0;
    std::string job_name;
    uint32_t generation = 0;
    std::string created;                    // "2026-11-21 16:00:00"
    std::string level = "files";            // where it is kept
    std::optional<image::Checksum> key_id;  // of what its images are encrypted with; none: they are not
    uint64_t shared_bytes = 0;              // of the file that holds all images; 0: each has its own
    std::string mpi;                        // "openmpi" or "mpich": what the job ran on
    std::vector<std::string> command;       // program and arguments, of rank 0
    std::string starter;                    // what waits for the program and may go on after it; "" = nothing
    std::vector<Segment> segments;          // when not all ranks run that: all of them, in order
    std::vector<std::string> whole_command() const { return store::whole_command(command, segments); }
    std::vector<ImageEntry> images;        // by rank
    std::map<std::string, double> phases;  // seconds
    double seconds() const;                // all of them
    std::vector<uint32_t> needs;           // earlier generations whose images these refer to
    uint64_t bytes() const;
    Layout layout() const { return shared_bytes ? Layout::shared : Layout::files; }
    // Length of the file that holds this image.
    uint64_t file_bytes(const ImageEntry& image) const {
        return layout() == Layout::shared ? shared_bytes : image.bytes;
    }
};

struct GenerationInfo {
    uint32_t number = 0;
    std::string directory;
    files::Folder folder;         // the same, open
    std::optional<uint64_t> job;  // that made it; none: it has no marker and no manifest that can be read
    std::optional<Manifest> manifest;  // none: incomplete or damaged
    std::string damage;                // why there is none; empty for one that was never committed
    // Checksum of the manifest's text. A rank that is given this seal continues no other generation.
    image::Checksum seal;
    image::Place place(const ImageEntry& entry) const;
    // Is this the image that the manifest means: its bytes, and of whom it says that it is?
    bool is_of(const ImageEntry& entry, const image::Reader& image) const;
    // Sum of its images, of the text that they have in common, and of the program's files. Complete ones
    // only.
    uint64_t bytes() const;
    // Throws when a file of all images does not say what the manifest says: ranks believe the file.
    void check_layout() const;
    // Throws KeyError when a complete one is not of this key, or of none.
    void check_key(const image::Key* key) const;
};

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

class Store {
  public:
    // Opens `directory`, for writing creating it (0700) and checking that it can be written. With a key the
    // seals of manifests are compared, and new ones get theirs.
    static Store for_reading(const std::string& directory, image::KeyPointer key = nullptr);
    static Store for_writing(const std::string& directory, image::KeyPointer key = nullptr);
    const image::Key* key() const { return key_.get(); }

    // One running job per directory: throws when another holds it. Held until the Store is destroyed. What is
    // made, swept and retained from now on is `job`'s.
    void lock(const std::string& owner, uint64_t job);
    void act_for(uint64_t job) { job_ = job; }
    // Others than its owner may put generations into the directory, or take them away.
    bool open_to_others() const { return folder_.open_to_others(); }

    const std::string& directory() const { return directory_; }
    // All generations, oldest first; reads manifests, not images. Links and directories that are not
    // Fermata's are none.
    std::vector<GenerationInfo> list() const;
    // The newest complete generation or number `wanted`; checks that every image of the manifest is there
    // with its size. A damaged newest one is an error unless `fallback` is allowed. Throws with
    // ExitCode::damaged, or image::KeyError.
    GenerationInfo choose(std::optional<uint32_t> wanted, bool fallback) const;
    // The same checks for a generation that list() gave.
    void check(const GenerationInfo& info) const;

    // Jobs that ended with exit code 0, oldest first.
    std::vector<JobEnd> ends() const;
    void note_end(const JobEnd& end) const;
    // The job is continued all the same.
    void forget_end(uint64_t job) const noexcept;

    // Makes the directory of the next generation: above every number in use, committed or not. Removes
    // uncommitted ones, which nobody can be writing any more: the caller holds the lock.
    GenerationInfo begin();
    // Throws when less than `bytes` are free.
    void check_space(uint64_t bytes) const;
    // Syncs and renames the manifest into place. Throws when an image of the manifest is missing or the
    // storage fails; then the generation does not exist.
    void commit(const GenerationInfo& pending, const Manifest& manifest);
    // Removes an uncommitted generation; never throws.
    void abandon(const GenerationInfo& pending) noexcept;
    // Removes all but the newest `keep` complete generations of this job and those that they need, and its
    // uncommitted ones older than the newest complete one. Nothing of another job's.
    void retain(unsigned keep);

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
    void sweep(uint32_t below) const;
    bool remove(const GenerationInfo& info) const;
    files::Folder folder_;
    std::string directory_;
    image::KeyPointer key_;
    Fd lock_;
    uint64_t job_ = 0;  // of whoever holds the lock
};

// The manifest as text, ending in a line with the checksum of all that stands before it, and one with the
// key's seal of that. `key`: the one that manifest.key_id is of.
std::string to_text(const Manifest& manifest, const image::Key* key = nullptr);
// Throws when anything is not as to_text writes it. Without its key anybody may have written it.
Manifest parse_manifest(const std::string& text, const std::string& path, const image::Key* key = nullptr);

}  // namespace fermata::store
