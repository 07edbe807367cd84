// A generation: what its manifest says (format in docs/formats/manifest.md), and where it was found.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/medium.h"
#include "files/folder.h"
#include "image/image.h"

namespace fermata::store {

// 10 knows images with message logs (`message_log`, with whatever else the others know), 9 images of
// processes in local directories of nodes, 8 files of several images (`files`), 7 images of processes in the
// memory of nodes (`nodes`), 6 the state of programs (`application`); other generations are written as 5.
inline constexpr int kManifestVersion = 10, kLoggedManifest = 10, kLocalManifest = 9, kGroupsManifest = 8,
                     kMemoryManifest = 7, kApplicationManifest = 6, kProcessManifest = 5;
inline constexpr int kOldestManifest = 2;  // knew no shared file; 3 no encryption; 4 one program only
inline constexpr const char* kManifest = "manifest.json";
// Before the name of a generation: its directory while it is being compacted.
inline constexpr const char* kUnfinished = ".compact-";
// In the directory of every generation, from its first moment on: whose it is. Only what has it is ever
// removed.
inline constexpr const char* kMarker = ".fermata";
// A manifest of 10^6 ranks has some 150 MB.
inline constexpr uint64_t kMostManifest = 256u << 20;
// Other users' are for `list`, `inspect` and `verify` only.
inline constexpr uint64_t kMostOthersManifest = 32u << 20;

// Where generations are kept (level.h); the word stands in the manifest.
enum class LevelName { files, memory, local };
const char* name_of(LevelName level);
std::optional<LevelName> level_of(const std::string& word);
constexpr LevelName level_of(Medium medium) {
    return medium == Medium::local ? LevelName::local : LevelName::memory;
}
// The medium of `level`, which is one that nodes keep; for files, memory.
constexpr Medium medium_of(LevelName level) {
    return level == LevelName::local ? Medium::local : Medium::memory;
}

struct ImageEntry {
    Rank rank;
    std::string file;  // relative to the generation's directory
    uint64_t bytes = 0;
    image::Checksum checksum;  // image::Summary::checksum
    uint64_t offset = 0;       // in the file, when that holds several images
};

// A file that holds images.
struct FileEntry {
    std::string name;
    uint64_t bytes = 0;
    bool operator==(const FileEntry&) const = default;
};

// Neighbouring ranks that run one program, of a job that runs several (`fermata run … : …`).
struct Segment {
    RankRange ranks;
    std::vector<std::string> command;
    bool operator==(const Segment&) const = default;
};
// The whole command of a job, as mpiexec takes it: of several programs "-n 1 ./atm : -n 3 ./ocn".
std::vector<std::string> whole_command(const std::vector<std::string>& command,
                                       const std::vector<Segment>& segments);
// For JSON and back, exactly: `run --continue` compares them, and words need not be UTF-8.
std::vector<std::string> words_as_utf8(const std::vector<std::string>& words);
std::vector<std::string> words_of_utf8(const std::vector<std::string>& text);

// Ranks whose images hold message logs (docs/internals/message-log.md).
struct MessageLog {
    static constexpr uint64_t kLeastMemory = uint64_t{64} << 10, kMostMemory = uint64_t{1} << 50;
    static constexpr uint64_t kDefaultMemory = uint64_t{256} << 20;
    uint32_t epoch = 0;                // of the checkpoint
    std::string replicas;              // ranks that had copies, as `run --replicas` has it; "" = none
    uint64_t memory = kDefaultMemory;  // bytes of a rank's log in memory
    bool operator==(const MessageLog&) const = default;
};

// Manifest is what a restart needs to know before it opens an image.
struct Manifest {
    uint64_t job = 0;
    std::string job_name;
    uint32_t generation = 0;
    std::string created;                    // "2026-11-21 16:00:00"
    std::string fermata;                    // version of the `fermata` that wrote it; "" = it says none
    LevelName level = LevelName::files;     // where it is kept
    std::optional<image::Checksum> key_id;  // of what its images are encrypted with; none: they are not
    image::Layout layout;                   // how the images lie in files
    std::vector<FileEntry> files;           // that hold several images; none: each has its own
    std::string mpi;                        // "openmpi" or "mpich": what the job ran on
    std::string cpu;                        // level of CPUs that the program may use (run --cpu); "" = all
    std::vector<std::string> command;       // program and arguments, of rank 0
    std::string starter;                    // what waits for the program and may go on after it; "" = nothing
    std::vector<Segment> segments;          // when not all ranks run that: all of them, in order
    std::vector<std::string> whole_command() const { return store::whole_command(command, segments); }
    std::vector<ImageEntry> images;  // by rank
    // The node that has the image, by rank, where nodes keep images of processes in memory or in local
    // directories. Else empty.
    std::vector<std::string> nodes;
    bool on_nodes() const { return level != LevelName::files && !step; }
    std::optional<int64_t>
        step;  // of a program that saved its own state (src/api); none: images of processes
    std::map<std::string, double> phases;   // seconds
    double seconds() const;                 // all of them
    std::optional<MessageLog> message_log;  // none: its ranks kept none
    std::vector<uint32_t> needs;            // earlier generations whose images these refer to
    uint64_t bytes() const;
    // Every file that holds images.
    std::vector<FileEntry> all_files() const;
    // "rank 3", "ranks 0-3,7": whose images are in this file.
    std::string whose(const std::string& file) const;
};

struct GenerationInfo {
    uint32_t number = 0;
    std::string directory;
    files::Folder folder;  // the same, open
    // The images lie in another directory than the manifest: in the memory of this node, or in its local one.
    // Else they are in `folder`.
    files::Folder elsewhere;
    const files::Folder& images() const { return elsewhere ? elsewhere : folder; }
    std::optional<uint64_t> job;  // that made it; none: it has no marker and no manifest that can be read
    std::optional<Manifest> manifest;  // none: incomplete or damaged
    std::string damage;                // why there is none; empty for one that was never committed
    // Why images in files are not those that the manifest names, by rank, as far as a restart has looked.
    // Other copies may be in the memory of nodes.
    std::map<uint32_t, std::string> broken;
    // Only nodes can say whether all its images are there.
    bool is_up_to_nodes() const { return manifest->on_nodes() || !broken.empty(); }
    // "", or why a file of images in `folder` has not the length that it should have.
    std::string damage_of(const FileEntry& file) const;
    // Checksum of the manifest's text. A rank that is given this seal continues no other generation.
    image::Checksum seal;
    image::Place place(const ImageEntry& entry) const;
    // Is this the image that the manifest means: its bytes, and of whom it says that it is?
    bool is_of(const ImageEntry& entry, const image::Reader& image) const;
    // Behind a line about the file of this image: " (image of rank 3)"; "" when the file's name says it.
    std::string note_of(const ImageEntry& entry) const;
    // Sum of its images, of the text that they have in common, and of the program's files. Complete ones
    // only.
    uint64_t bytes() const;
    // Throws when a file of several images does not say what the manifest says: ranks believe the file.
    void check_layout() const;
    // Throws KeyError when a complete one is not of this key, or of none.
    void check_key(const image::Key* key) const;
};
// The generation in a folder; none when nothing says that Fermata made it.
std::optional<GenerationInfo> read_generation(const files::Folder& folder, uint32_t number,
                                              const image::Key* key);

// Facts that decide whether a generation stays: it says nothing of the images.
struct Brief {
    uint32_t number = 0;
    files::Folder folder;
    std::optional<uint64_t> job;  // as in GenerationInfo
    bool complete = false;        // it has a manifest that is right
    bool on_nodes = false;        // its images are in the memory of nodes, or in local directories
    std::vector<uint32_t> needs;
    std::string damage;  // as in GenerationInfo
};

}  // namespace fermata::store
