#include "lower/load_image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/cpu_level.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "base/version.h"
#include "level/place.h"
#include "lower/cpu.h"
#include "lower/services.h"
#include "lower/text_ranges.h"
#include "split/address/maps.h"
#include "split/bridge.h"
#include "split/memory/dirty.h"
#include "split/memory/memory.h"
#include "split/process/places.h"
#include "split/shared/describe.h"
#include "split/threads/donors.h"
#include "store/store.h"

namespace fermata::lower {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the extents of an image go: each into one mapping of its table, and nowhere else.
class Places {
  public:
    Places(const split::MemoryTable& table, const std::string& path) : table_(table), path_(path) {}

    void of(const image::Extent& extent) {  // called in address order
        while (next_ < table_.maps.size() && table_.maps[next_].range.end() <= extent.address) ++next_;
        if (next_ >= table_.maps.size() || !table_.maps[next_].range.contains(image::memory_of(extent)))
            fail("{} is damaged: content for {:#x}, where the program had no memory", path_, extent.address);
    }

  private:
    const split::MemoryTable& table_;
    const std::string& path_;
    size_t next_ = 0;
};

// ld-linux-x86-64.so.2, and ld-2.31.so behind that name in older systems.
bool is_dynamic_linker(const std::string& path) {
    return path.substr(path.rfind('/') + 1).starts_with("ld-");
}

// Null, with a warning, when this process may not watch faults.
std::unique_ptr<image::Pager> page_later(const image::Place& place, const image::Key* key,
                                         const split::MemoryTable& table, Rank rank,
                                         std::vector<std::string>& warnings) {
    std::vector<Range> areas;
    image::Pager::Hooks hooks;
    bool everywhere = split::huge_pages_everywhere();
    const split::MapEntry* last = nullptr;
    for (const split::MapEntry& map : table.maps) {
        // A stack may grow past what is watched.
        if (map.kind != split::MapKind::anonymous || (map.flags & (MAP_HUGETLB | MAP_GROWSDOWN))) continue;
        bool huge = (map.advice & split::kHugePage) || (everywhere && !(map.advice & split::kNoHugePage));
        // Guard pages and what is beside them are one mapping.
        bool one = last != nullptr && last->range.end() == map.range.begin() &&
                   (last->advice ^ map.advice) == split::kGuard;
        last = &map;
        if (one) {
            always(!areas.empty(), "a mapping that belongs to one before the first");
            if (huge) hooks.huge.pop_back();
            areas.back() = areas.back().hull(map.range);
        } else {
            areas.push_back(map.range);
        }
        if (huge) hooks.huge.push_back(areas.back());
    }
    hooks.failed = [rank](const std::string& line) {
        // Whoever should say it may itself wait for that memory.
        std::thread([] {
            ::sleep(30);
            ::_exit(static_cast<int>(ExitCode::damaged));
        }).detach();
        the_bridge()->fatal(fmt::format("error: rank {}: {}", rank.number(), line).c_str(),
                            static_cast<int>(ExitCode::damaged));
    };
    hooks.finished = split::threads::poke_agent;
    hooks.wiped_in_children = [] {
        std::vector<Range> wiped;
        for (const split::Mapping& map : split::read_smaps())
            if (map.flags.find(" wf") != std::string::npos) wiped.push_back(map.range);
        return wiped;
    };
    hooks.descriptors = {split::threads::bell_fd()};
    try {
        return std::make_unique<image::Pager>(std::make_unique<image::Reader>(place, key), areas,
                                              std::move(hooks));
    } catch (const Error& why) {
        warnings.push_back(fmt::format("all memory is read before the program goes on: {}", why.what()));
        return {};
    }
}

// An image that the root has chosen and that cannot be read is damaged, or was exchanged: the exit code says
// so. A wrong key keeps its own.
template <class Read>
decltype(auto) as_damage(Read read) {
    try {
        return read();
    } catch (const image::KeyError&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.what(), ExitCode::damaged);
    }
}

// As a generation with one image, about which nobody has said anything.
store::GenerationInfo open_lone(const WantedImage& wanted) {
    store::GenerationInfo info;
    info.number = wanted.lone;
    info.directory = wanted.directory;
    info.folder = store::open_pending(wanted.directory, wanted.job, wanted.lone);
    info.job = wanted.job;
    info.manifest.emplace();
    info.manifest->job = wanted.job;
    info.manifest->generation = wanted.lone;
    info.manifest->fermata = kVersion;
    for (uint32_t rank = 0; rank < wanted.size; ++rank)
        info.manifest->images.push_back({Rank(rank), image::image_name(Rank(rank)), 0, {}, 0});
    return info;
}

store::GenerationInfo open_wanted(const WantedImage& wanted) {
    if (wanted.lone != 0) return open_lone(wanted);
    store::GenerationInfo info = store::open_chosen(wanted.directory, wanted.seal, wanted.key.get());
    if (info.manifest->on_nodes()) {
        if (wanted.images.empty()) fail("{} is kept by nodes, and not by this one", wanted.directory);
        info.elsewhere = store::open_pending(wanted.images, info.manifest->job, info.number);
    }
    return info;
}

// The image of this rank in the generation that the root has chosen: `seal` is of its manifest, which names
// the image. One in files may still be in the memory of this machine, or in a local directory, too: where the
// one is damaged, the other is taken.
class ChosenImage {
  public:
    explicit ChosenImage(const WantedImage& wanted) : generation(open_wanted(wanted)), wanted_(wanted) {
        const store::Manifest& manifest = *generation.manifest;
        if (!manifest.on_nodes() && !manifest.step && wanted.lone == 0)
            others_ = level::find_here(manifest.job, Generation(generation.number));
        try {
            read_it();
        } catch (const image::KeyError&) {
            throw;
        } catch (const Error& damage) {
            if (!take_another(damage)) throw;
        }
    }

    // The one that is open is damaged. False: there is no other.
    bool take_another(const Error& damage) {
        while (!others_.empty()) {
            generation.elsewhere = std::move(others_.front().folder);
            others_.erase(others_.begin());
            try {
                read_it();
                warnings.push_back(fmt::format("{}; {} is read instead", damage.what(), place->path()));
                return true;
            } catch (const Error&) {
                // The next one.
            }
        }
        return false;
    }

    store::GenerationInfo generation;
    std::optional<image::Place> place;
    std::unique_ptr<image::Reader> reader;
    std::vector<std::string> warnings;

  private:
    void read_it() {
        const store::ImageEntry& wanted = entry();
        place = generation.elsewhere ? image::Place(generation.elsewhere, image::image_name(wanted.rank))
                                     : generation.place(wanted);
        auto opened = as_damage([&] { return std::make_unique<image::Reader>(*place, wanted_.key.get()); });
        const image::Identity& who = opened->identity();
        const bool named = wanted_.lone != 0 || opened->summary().checksum == wanted.checksum;
        if (!named || who.job != generation.manifest->job || who.generation != generation.number)
            throw Error(fmt::format("{} is not the image that the manifest names", place->path()),
                        ExitCode::damaged);
        if (who.rank != wanted_.rank || who.ranks != wanted_.size)
            throw Error(fmt::format("{} is of rank {} of {}, not of rank {} of {}", place->path(),
                                    who.rank.number(), who.ranks, wanted_.rank.number(), wanted_.size),
                        ExitCode::damaged);
        reader = std::move(opened);
    }
    const store::ImageEntry& entry() const {
        const auto& images = generation.manifest->images;
        if (images.size() != wanted_.size)
            fail("{} has {} ranks, and {} were started", generation.directory, images.size(), wanted_.size);
        return images.at(wanted_.rank.index());
    }
    const WantedImage& wanted_;
    std::vector<level::NodeFolder> others_;
};

// Refuses the image of a build whose halves knew something of each other that this one does not continue.
Anchors anchors_of(const ChosenImage& chosen) {
    const auto& bytes = as_damage([&]() -> const auto& { return chosen.reader->blob(kAnchorsPart); });
    const std::string path = chosen.place->path();
    Anchors anchors;
    if (bytes.size() != sizeof anchors)
        throw Error(fmt::format("{} is damaged: its parts", path), ExitCode::damaged);
    std::memcpy(&anchors, bytes.data(), sizeof anchors);
    const std::string why = why_not_continued(anchors), &version = chosen.generation.manifest->fermata;
    if (!why.empty())
        fail("{}{} {}", path, version.empty() ? "" : fmt::format(", saved by Fermata {},", visible(version)),
             why);
    return anchors;
}

void check_cpu(const image::Reader& reader, const std::string& path) {
    std::string missing = missing_instructions(text_of(reader.blob(kCpuPart)), cpu_flags());
    if (!missing.empty() && !std::getenv("FERMATA_ANY_CPU"))
        fail(
            "{}: the program was started on a CPU with {}, which this one lacks and it may have chosen its "
            "code by: restart on a node like that one, or with FERMATA_ANY_CPU=1 if it uses nothing of it; "
            "`fermata run --cpu {}` keeps a job's libraries to what this node has, too",
            path, missing, greatest_cpu_level(cpu_flags()).name);
}

// All of it, from the one copy or from the other: the addresses are the same.
void read_memory(ChosenImage& chosen) {
    for (;;) try {
            chosen.reader->load(
                [](const image::Extent& extent) { return reinterpret_cast<void*>(extent.address); });
            return;
        } catch (const Error& damage) {
            if (!chosen.take_another(damage)) throw Error(damage.what(), ExitCode::damaged);
        }
}

split::MemoryTable memory_table(const image::Reader& reader, const split::process::PathMap& moved) {
    const auto& bytes = reader.blob(kMemoryPart);
    split::MemoryTable table = as_damage([&] {
        return split::decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
    for (split::MapEntry& map : table.maps)
        if (map.kind == split::MapKind::shared_file || map.kind == split::MapKind::shared_kept)
            map.name = moved(map.name);
    return table;
}

}  // namespace

std::string program_of(const WantedImage& lone) {
    const ChosenImage image(lone);
    return text_of(image.reader->blob(kProgramPart));
}

std::vector<std::string> programs_of_images(const std::string& directory, const std::string& seal,
                                            const image::Key* key) {
    try {
        store::GenerationInfo chosen = store::open_chosen(directory, seal, key);
        const store::Manifest& manifest = *chosen.manifest;
        std::vector<RankRange> programs_of;
        for (const store::Segment& segment : manifest.segments) programs_of.push_back(segment.ranks);
        if (programs_of.empty())
            programs_of.emplace_back(Rank(0), static_cast<uint32_t>(manifest.images.size()));
        std::vector<files::Folder> folders = {chosen.folder};
        if (manifest.on_nodes()) {
            folders.clear();
            for (const level::NodeFolder& node : level::find_here(manifest.job, Generation(chosen.number)))
                folders.push_back(node.folder);
        }
        // One image of each program will do.
        std::vector<std::string> programs;
        for (const RankRange& ranks : programs_of) {
            const store::ImageEntry* found = nullptr;
            for (size_t i = ranks.first().index(); !found && i < ranks.first().index() + ranks.count(); ++i)
                for (const files::Folder& folder : folders)
                    if (folder.has(manifest.images.at(i).file)) {
                        found = &manifest.images[i];
                        chosen.elsewhere = folder;
                    }
            if (!found) return {};
            programs.push_back(text_of(image::Reader(chosen.place(*found), key).blob(kProgramPart)));
        }
        return programs;
    } catch (const std::exception&) {
        return {};
    }
}

split::process::PutBack put_files_back(const WantedImage& wanted, bool all) {
    ChosenImage image(wanted);
    (void)anchors_of(image);  // before anything of the program's is touched
    std::string state;
    std::vector<std::string> lines;
    try {
        const std::string saved = text_of(image.reader->blob(kProcessPart));
        state = wanted.moved.in_state(saved);
        if (wanted.rank == Rank(0)) lines = wanted.moved.unused_in(saved);
        lines.push_back(split::process::make_temporary_folder(state));
        if (wanted.rank == Rank(0))
            lines.push_back(split::process::say_of_another_place(state, wanted.directory));
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Error(fmt::format("the image's process state is damaged: {}", error.what()), ExitCode::damaged);
    }
    auto result = split::process::put_files_back(state, image.generation.images(),
                                                 Generation(image.generation.number).name(), all);
    for (const std::string& line : lines)
        if (!line.empty()) result.warnings.push_back(line);
    return result;
}

LoadedImage load_image(const WantedImage& wanted, bool mapped, split::shared::Peers peers) {
    ChosenImage chosen(wanted);
    const image::Reader& reader = *chosen.reader;
    const std::string path = chosen.place->path();
    LoadedImage loaded;
    loaded.identity = reader.identity();
    loaded.generation = chosen.generation.images();
    loaded.anchors = anchors_of(chosen);
    check_cpu(reader, path);
    loaded.program = wanted.moved(text_of(reader.blob(kProgramPart)));
    loaded.process_state = wanted.moved.in_state(text_of(reader.blob(kProcessPart)));

    split::MemoryTable table = memory_table(reader, wanted.moved);
    split::shared::make_objects(wanted.moved.in_shared(text_of(reader.blob(kSharedPart))), std::move(peers),
                                loaded.warnings);
    split::map_memory(table);
    remember_text(reader);
    Places places(table, path);
    for (const image::Extent& extent : reader.extents()) places.of(extent);
    if (mapped)
        loaded.pager = page_later(*chosen.place, wanted.key.get(), table, wanted.rank, loaded.warnings);
    if (!loaded.pager) read_memory(chosen);
    loaded.warnings.insert(loaded.warnings.end(), chosen.warnings.begin(), chosen.warnings.end());
    split::shared::meet_over_content();
    split::finish_memory(table);
    for (const split::MapEntry& map : table.maps)
        if ((map.prot & PROT_EXEC) && (map.prot & PROT_READ) && is_dynamic_linker(map.name))
            loaded.linkers.push_back(map.range);
    return loaded;
}

}  // namespace fermata::lower
