#include "lower/rank_image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "image/compare.h"
#include "image/shared.h"
#include "lower/cpu.h"
#include "lower/node_ranks.h"
#include "lower/services.h"
#include "lower/text_ranges.h"
#include "split/address/maps.h"
#include "split/address/partition.h"
#include "split/address/ranges.h"
#include "split/address/window.h"
#include "split/fds/descriptors.h"
#include "split/memory/memory.h"
#include "split/process/places.h"
#include "split/process/state.h"
#include "split/shared/describe.h"
#include "split/threads/donors.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"
#include "store/store.h"

namespace fermata::lower {
namespace {

// Names of the image's blobs.
constexpr const char *kMemory = "memory", *kProcess = "process", *kAnchors = "anchors", *kProgram = "program",
                     *kMaps = "maps", *kCpu = "cpu", *kMpi = "mpi", *kShared = "shared";

// Addresses in upper memory from which everything else is found.
struct Anchors {
    uint64_t upper;    // UpperServices*
    uint64_t threads;  // ThreadTable*
    uint32_t bridge_version;
    uint32_t abi_hash;
};

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the extents of an image go: each into one mapping of its table, and nowhere else.
class Places {
  public:
    Places(const split::MemoryTable& table, const std::string& path) : table_(table), path_(path) {}

    void of(const image::Extent& extent) {  // called in address order
        while (next_ < table_.maps.size() && table_.maps[next_].range.end <= extent.address) ++next_;
        split::Range range{extent.address, extent.address + extent.length};
        if (next_ >= table_.maps.size() || !table_.maps[next_].range.contains(range))
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
                                         const split::MemoryTable& table, int rank,
                                         std::vector<std::string>& warnings) {
    image::Pager::Areas areas;
    image::Pager::Hooks hooks;
    bool everywhere = split::huge_pages_everywhere();
    for (const split::MapEntry& map : table.maps) {
        // A stack may grow past what is watched.
        if (map.kind != split::MapKind::anonymous || (map.flags & (MAP_HUGETLB | MAP_GROWSDOWN))) continue;
        areas.emplace_back(map.range.begin, map.range.end);
        if ((map.advice & split::kHugePage) || (everywhere && !(map.advice & split::kNoHugePage)))
            hooks.huge.push_back(areas.back());
    }
    hooks.failed = [rank](const std::string& line) {
        // Whoever should say it may itself wait for that memory.
        std::thread([] {
            ::sleep(30);
            ::_exit(static_cast<int>(ExitCode::damaged));
        }).detach();
        the_bridge()->fatal(fmt::format("error: rank {}: {}", rank, line).c_str(),
                            static_cast<int>(ExitCode::damaged));
    };
    hooks.finished = split::threads::poke_agent;
    hooks.wiped_in_children = [] {
        image::Pager::Areas wiped;
        for (const split::Mapping& map : split::read_smaps())
            if (map.flags.find(" wf") != std::string::npos)
                wiped.emplace_back(map.range.begin, map.range.end);
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

bool by_address(const split::Range& a, const split::Range& b) { return a.begin < b.begin; }

std::vector<std::pair<uint64_t, uint64_t>> as_pairs(const std::vector<split::Range>& ranges) {
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    for (const split::Range& range : ranges) pairs.emplace_back(range.begin, range.end);
    return pairs;
}

// How many generations an image needs that refers to this content.
size_t generations_of(const image::Content& content) {
    std::set<uint32_t> numbers;
    for (const image::Source& source : content.sources) numbers.insert(source.generation);
    return numbers.size();
}

// Ranks of this node, which share its processors and memory.
unsigned neighbours() { return static_cast<unsigned>(std::max(1, node_ranks())); }

// Where held mutexes may lie; small mappings first (libraries' data, the heap).
std::vector<split::threads::MutexArea> mutex_areas(const split::MemoryTable& table) {
    std::vector<const split::MapEntry*> maps;
    for (const split::MapEntry& map : table.maps)
        if ((map.prot & PROT_READ) && (map.prot & PROT_WRITE)) maps.push_back(&map);
    std::stable_sort(maps.begin(), maps.end(),
                     [](auto* a, auto* b) { return a->range.size() < b->range.size(); });
    std::vector<split::threads::MutexArea> areas;
    for (const split::MapEntry* map : maps)
        if (map->kind == split::MapKind::anonymous && !map->name.starts_with("/"))
            for (const split::Range& run : map->runs) areas.push_back({run, false, true});
        else
            areas.push_back({map->range, map->kind != split::MapKind::anonymous, false});
    return areas;
}

// What of these mappings is as the last image holds it.
template <class Which>
std::vector<split::Range> same_as_before(const split::MemoryTable& table, const image::Content& base,
                                         Which&& which) {
    std::vector<image::AddressRange> readable;
    for (const split::MapEntry& map : table.maps)
        if (which(map))
            for (const split::Range& run : map.runs) readable.emplace_back(run.begin, run.end);
    split::make_readable(table);
    std::vector<split::Range> same;
    for (auto [begin, end] : image::unchanged_since(base, readable)) same.push_back({begin, end});
    split::restore_protection(table);
    return same;
}

// One byte written costs a block of the next increment.
constexpr uint64_t kComparedBlock = 256 << 10;

// How is it found out what has changed since the last image?
enum class Follow {
    no,       // full images
    pages,    // the kernel tells which were written to
    content,  // by comparing it with the checksums of the last image
};

// Makes the tracker where it is asked for and can be had; else says once why not.
Follow prepare_to_follow(Incremental& state, image::Incremental wanted, std::vector<std::string>& warnings) {
    if (wanted == image::Incremental::no) return Follow::no;
    if (wanted == image::Incremental::hashes) return Follow::content;
    std::string why = split::writes_unseen();
    if (why.empty() && !state.tracker) {
        try {
            state.tracker = std::make_unique<split::DirtyTracker>(split::best_page_marks());
        } catch (const Error& error) {
            why = error.what();
        }
    }
    if (why.empty()) {
        state.tracker->split_huge_pages(wanted == image::Incremental::split);
        return Follow::pages;
    }
    if (!std::exchange(state.told, true))
        warnings.push_back(fmt::format("increments compare all memory with checksums: {}", why));
    return Follow::content;
}

// What cannot be read of an image that the root has chosen is damage, or it was exchanged: the exit code says
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

// The image of this rank in the generation that the root has chosen: `seal` is of its manifest, which names
// the image.
struct ChosenImage {
    ChosenImage(const std::string& directory, const std::string& seal, int rank, int size,
                const image::Key* key)
        : generation(store::open_chosen(directory, seal, key)),
          place(generation.place(entry(rank, size))),
          reader(as_damage([&] { return image::Reader(place, key); })) {
        const image::Identity& who = reader.identity();
        if (reader.summary().checksum.hex() != entry(rank, size).checksum ||
            who.job != generation.manifest->job || who.generation != generation.number)
            throw Error(fmt::format("{} is not the image that the manifest names", place.path()),
                        ExitCode::damaged);
        if (who.rank != static_cast<uint32_t>(rank) || who.ranks != static_cast<uint32_t>(size))
            throw Error(fmt::format("{} is of rank {} of {}, not of rank {} of {}", place.path(), who.rank,
                                    who.ranks, rank, size),
                        ExitCode::damaged);
    }

    store::GenerationInfo generation;
    image::Place place;
    image::Reader reader;

  private:
    const store::ImageEntry& entry(int rank, int size) const {
        const auto& images = generation.manifest->images;
        if (images.size() != static_cast<size_t>(size))
            fail("{} has {} ranks, and {} were started", generation.directory, images.size(), size);
        return images.at(static_cast<size_t>(rank));
    }
};

}  // namespace

split::process::Limits process_limits() { return {split::lower_descriptor_base()}; }

PendingImage::PendingImage(const files::Folder& folder, const image::Identity& identity,
                           const image::WriteOptions& how, split::process::Copies copies)
    : place_(folder, how.shared ? image::kSharedName : image::image_name(identity.rank)),
      shared_(how.shared),
      writer_(shared_ ? image::Writer::in_shared(place_, identity, how)
                      : image::Writer(place_, identity, how)),
      copies_(std::move(copies)) {}

PendingImage::~PendingImage() {
    child_.kill();
    if (!good_ && !shared_) place_.folder.remove_file(place_.name);
}

bool PendingImage::done() {
    if (child_.descriptor() < 0) return true;
    std::string why;
    if (!child_.ended(why)) return false;
    if (!why.empty()) fail("{}: {}", why, place_.path());
    return true;
}

void PendingImage::watch_memory() const {
    if (memory_is_short())
        fail("memory runs short while a copy of this rank is kept for {}; given up", place_.path());
}

image::Summary PendingImage::conclude() {
    copies_.sync();
    image::Summary summary = writer_.conclude();
    good_ = true;
    return summary;
}

CapturedImage capture_image(const std::string& directory, const image::Identity& identity,
                            const std::string& program, const image::SaveOptions& options,
                            const image::KeyPointer& key, bool files, Incremental& before) {
    CapturedImage saved;
    // Whatever becomes of this image: from now on pages count as written since this moment.
    uint32_t base = std::exchange(before.generation, 0);
    saved.warnings = split::threads::describe_stopped_threads();
    files::Folder generation = store::open_pending(directory, identity.job, identity.generation);
    split::process::Keep keep{generation, files && !key, the_upper()->noted_files};
    if (static bool told = false; files && key && !std::exchange(told, true))
        saved.warnings.push_back(
            "files that the program writes are not kept with encrypted checkpoints: after a restart they "
            "hold "
            "what was written later");
    split::process::Captured process = split::process::capture(process_limits(), keep);
    saved.warnings.insert(saved.warnings.end(), process.warnings.begin(), process.warnings.end());

    std::vector<char> objects(the_upper()->describe(nullptr, 0));
    the_upper()->describe(objects.data(), objects.size());
    Follow how_to_follow = prepare_to_follow(before, options.incremental, saved.warnings);
    // What is written from here on is seen by the next image.
    split::CollectedMemory memory =
        split::collect_memory(how_to_follow == Follow::pages ? before.tracker.get() : nullptr);
    saved.table = std::move(memory.table);
    const split::MemoryTable& table = saved.table;
    image::WriteOptions how = options.write;
    how.key = key;
    if (how_to_follow == Follow::content) how.largest_block = kComparedBlock;
    how.processors = std::max(1u, std::thread::hardware_concurrency() / neighbours());
    saved.image = std::make_unique<PendingImage>(generation, identity, how, std::move(process.copies));
    image::Writer& writer = saved.image->writer();
    std::string encoded = split::encode(table);
    writer.blob(kMemory, encoded.data(), encoded.size());
    // For people, and for tests that compare it with the table without using our code.
    writer.blob(kMaps, memory.maps.data(), memory.maps.size());
    writer.blob(kProcess, process.state.data(), process.state.size());
    writer.blob(kProgram, program.data(), program.size());
    Anchors anchors{reinterpret_cast<uint64_t>(the_upper()),
                    reinterpret_cast<uint64_t>(split::threads::table()), split::kBridgeVersion,
                    the_bridge()->abi_hash};
    writer.blob(kAnchors, &anchors, sizeof anchors);
    const std::string& cpu = cpu_instructions();
    writer.blob(kCpu, cpu.data(), cpu.size());
    writer.blob(kMpi, objects.data(), objects.size());
    std::string shared =
        split::shared::describe(table, memory.objects, process_limits().descriptors, saved.warnings);
    writer.blob(kShared, shared.data(), shared.size());

    bool forked = options.forked;
    if (forked && !options.trust_memory) {
        std::string why = too_little_memory(table.data_size(), neighbours());
        if (!why.empty()) saved.warnings.push_back(why);
        forked = why.empty();
    }
    bool follow = how_to_follow != Follow::no;
    bool refer =
        follow && base != 0 && options.base == base && generations_of(before.content) < options.chain;
    // What of each mapping is as it was in the last image. The search for mutexes writes to the thread table:
    // that is asked about (again) after it.
    auto holds_threads = [&](const split::MapEntry& map) {
        return map.range.begin < anchors.threads + sizeof(split::threads::ThreadTable) &&
               anchors.threads < map.range.end;
    };
    std::vector<split::Range> same_content;
    if (refer && how_to_follow == Follow::content)
        same_content = same_as_before(table, before.content, [&](const split::MapEntry& map) {
            return !memory.not_in_a_copy(map) && !holds_threads(map);
        });
    auto as_before = [&](size_t i) {
        const split::MapEntry& map = table.maps[i];
        if (!refer || memory.not_in_a_copy(map)) return std::vector<split::Range>{};
        if (how_to_follow == Follow::content && holds_threads(map))
            return same_as_before(table, before.content,
                                  [&](const split::MapEntry& other) { return &other == &map; });
        if (how_to_follow == Follow::content) return intersection(same_content, map.runs);
        std::vector<split::Range> unchanged = intersection(memory.unchanged[i], before.covered);
        if (!holds_threads(map)) return unchanged;
        auto since = before.tracker->look(map);
        return since ? intersection(unchanged, since->unchanged) : std::vector<split::Range>{};
    };
    std::vector<std::vector<split::Range>> same(table.maps.size());
    std::vector<split::Range> known;
    for (size_t i = 0; i < same.size(); ++i) {
        if (holds_threads(table.maps[i])) continue;
        same[i] = as_before(i);
        known.insert(known.end(), same[i].begin(), same[i].end());
    }
    // A child's search stays in the child, where a later increment would not find it.
    saved.mutexes.emplace(mutex_areas(table), known);
    saved.mutexes->in_shared_memory();
    if (!forked || follow) {
        saved.mutexes->in_own_memory();
        saved.mutexes.reset();
    }
    for (size_t i = 0; i < same.size(); ++i)
        if (holds_threads(table.maps[i])) same[i] = as_before(i);
    std::vector<std::pair<uint64_t, uint64_t>> unchanged;
    std::vector<TextUnit> text = text_units(table);
    std::vector<split::Range> all_text, written;
    for (const TextUnit& unit : text) all_text.insert(all_text.end(), unit.begin(), unit.end());
    std::sort(all_text.begin(), all_text.end(), by_address);
    for (bool first : {true, false}) {
        if (!first) writer.later();
        for (size_t i = 0; i < same.size(); ++i) {
            const split::MapEntry& map = table.maps[i];
            bool copied = !memory.not_in_a_copy(map);
            if (copied == first) continue;
            std::vector<split::Range> runs = map.runs;
            std::vector<split::Range> kept = intersection(runs, same[i]);
            runs = difference(runs, kept);
            for (const split::Range& part : kept) unchanged.emplace_back(part.begin, part.end);
            for (const split::Range& run : difference(runs, all_text))
                writer.run(run.begin, run.pointer(), run.size());
            written.insert(written.end(), runs.begin(), runs.end());
        }
    }
    std::sort(written.begin(), written.end(), by_address);
    for (const TextUnit& unit : text) writer.share(as_pairs(intersection(unit, written)));
    if (refer) {
        std::sort(unchanged.begin(), unchanged.end());
        writer.keep(before.content, unchanged);
    }
    if (follow)
        for (const split::MapEntry& map : table.maps)
            saved.covered.insert(saved.covered.end(), map.runs.begin(), map.runs.end());
    writer.prepare();
    saved.forked = forked;
    return saved;
}

void write_image(CapturedImage& captured) {
    image::Writer& writer = captured.image->writer();
    split::make_readable(captured.table);
    writer.write_first();
    auto search = [&captured] {
        if (captured.mutexes) captured.mutexes->in_own_memory();
    };
    if (captured.forked) {
        split::let_fork_copy(captured.table, true);
        captured.forked = captured.image->child().start(writer, search);
        split::let_fork_copy(captured.table, false);
        if (!captured.forked)
            captured.warnings.push_back("no process for the image: the job stands still while it is written");
    }
    if (!captured.forked) {
        search();
        writer.write_rest();
    }
    split::restore_protection(captured.table);
}

std::vector<std::string> programs_of_images(const std::string& directory, const std::string& seal,
                                            const image::Key* key) {
    try {
        store::GenerationInfo chosen = store::open_chosen(directory, seal, key);
        const store::Manifest& manifest = *chosen.manifest;
        std::vector<uint32_t> ranks;
        for (const store::Segment& segment : manifest.segments) ranks.push_back(segment.first_rank);
        if (ranks.empty()) ranks = {0};
        std::vector<std::string> programs;
        for (uint32_t rank : ranks)
            programs.push_back(
                text_of(image::Reader(chosen.place(manifest.images.at(rank)), key).blob(kProgram)));
        return programs;
    } catch (const std::exception&) {
        return {};
    }
}

split::process::PutBack put_files_back(const std::string& directory, const std::string& seal, int rank,
                                       int size, bool all, const split::process::PathMap& moved,
                                       const image::Key* key) {
    ChosenImage image(directory, seal, rank, size, key);
    std::string state;
    std::vector<std::string> lines;
    try {
        state = moved.in_state(text_of(image.reader.blob(kProcess)));
        lines = {split::process::make_temporary_folder(state)};
        if (rank == 0) lines.push_back(split::process::say_of_another_place(state, directory));
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Error(fmt::format("the image's process state is damaged: {}", error.what()), ExitCode::damaged);
    }
    auto result = split::process::put_files_back(state, image.generation.folder,
                                                 Generation(image.generation.number).name(), all);
    for (const std::string& line : lines)
        if (!line.empty()) result.warnings.push_back(line);
    return result;
}

LoadedImage load_image(const std::string& directory, const std::string& seal, int rank, int size, bool mapped,
                       const split::process::PathMap& moved, const image::Key* key,
                       split::shared::Peers peers) {
    ChosenImage chosen(directory, seal, rank, size, key);
    const image::Place& place = chosen.place;
    const image::Reader& reader = chosen.reader;
    const std::string path = place.path();
    LoadedImage loaded;
    loaded.identity = reader.identity();
    const auto& anchor_bytes = as_damage([&]() -> const auto& { return reader.blob(kAnchors); });
    Anchors anchors;
    if (anchor_bytes.size() != sizeof anchors)
        throw Error(fmt::format("{} is damaged: its parts", path), ExitCode::damaged);
    std::memcpy(&anchors, anchor_bytes.data(), sizeof anchors);
    if (anchors.bridge_version != split::kBridgeVersion || anchors.abi_hash != the_bridge()->abi_hash)
        fail("{} was made by another build of Fermata; restart it with the one that made it", path);
    std::string missing = missing_instructions(text_of(reader.blob(kCpu)), cpu_instructions());
    if (!missing.empty() && !std::getenv("FERMATA_ANY_CPU"))
        fail(
            "{}: the program was started on a CPU with {}, which this one lacks and it may have chosen its "
            "code by: "
            "restart on a node like that one, or with FERMATA_ANY_CPU=1 if it uses nothing of it",
            path, missing);
    loaded.program = moved(text_of(reader.blob(kProgram)));
    loaded.process_state = moved.in_state(text_of(reader.blob(kProcess)));

    const auto& memory = reader.blob(kMemory);
    split::MemoryTable table = as_damage([&] {
        return split::decode({reinterpret_cast<const char*>(memory.data()), memory.size()});
    });
    for (split::MapEntry& map : table.maps)
        if (map.kind == split::MapKind::shared_file || map.kind == split::MapKind::shared_kept)
            map.name = moved(map.name);
    split::shared::make_objects(moved.in_shared(text_of(reader.blob(kShared))), std::move(peers),
                                loaded.warnings);
    split::map_memory(table);
    remember_text(reader);
    Places places(table, path);
    for (const image::Extent& extent : reader.extents()) places.of(extent);
    if (mapped) loaded.pager = page_later(place, key, table, rank, loaded.warnings);
    if (!loaded.pager)
        as_damage([&] {
            reader.load([](const image::Extent& extent) { return reinterpret_cast<void*>(extent.address); });
        });
    split::shared::meet_over_content();
    split::finish_memory(table);
    for (const split::MapEntry& map : table.maps)
        if ((map.prot & PROT_EXEC) && (map.prot & PROT_READ) && is_dynamic_linker(map.name))
            loaded.linkers.push_back(map.range);
    if (std::string why =
            split::threads::adopt_table(reinterpret_cast<split::threads::ThreadTable*>(anchors.threads));
        !why.empty())
        fail("{}: {}", path, why);
    loaded.upper = reinterpret_cast<split::UpperServices*>(anchors.upper);
    // (Mapped images are read by now where they are touched.)
    moved.in_noted(loaded.upper->noted_files);
    return loaded;
}

}  // namespace fermata::lower
