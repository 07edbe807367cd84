// Commands that read a checkpoint directory.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/objects.h"
#include "image/codec.h"
#include "image/image.h"
#include "split/memory/memory.h"
#include "store/store.h"

using nlohmann::json;

namespace fermata::cli {
namespace {

void print(const json& j) {
    std::printf("%s\n", j.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

store::Store open_store(const StoreOptions& options) {
    return store::Store::for_reading(options.ckpt_dir, image::Key::from_file_or_none(options.key_file));
}

const char* kind_of(const store::Manifest& m) { return m.needs.empty() ? "full" : "delta"; }

// Seconds since it was committed (compacting it later does not make it younger).
int64_t age_of(const store::GenerationInfo& info) {
    struct tm local {};
    local.tm_isdst = -1;
    if (!::strptime(info.manifest->created.c_str(), "%Y-%m-%d %H:%M:%S", &local)) return 0;
    return std::max<int64_t>(0, ::time(nullptr) - ::mktime(&local));
}

// 75 -> "1 min", as people say it.
std::string age_text(int64_t seconds) {
    if (seconds < 60) return fmt::format("{} s", seconds);
    if (seconds < 3600) return fmt::format("{} min", seconds / 60);
    if (seconds < int64_t{2} * 86400) return fmt::format("{} h", seconds / 3600);
    return fmt::format("{} d", seconds / 86400);
}

json summary(const store::GenerationInfo& info) {
    json j = {{"generation", store::generation_name(info.number)}, {"directory", info.directory}};
    if (!info.manifest) {
        j["state"] = info.damage.empty() ? "incomplete" : "damaged";
        j["damage"] = info.damage;
        return j;
    }
    const store::Manifest& m = *info.manifest;
    j["state"] = "complete";
    j["created"] = m.created;
    j["job"] = m.job_name;
    j["mpi"] = m.mpi;
    j["command"] = m.command;
    j["ranks"] = m.images.size();
    j["bytes"] = info.bytes();
    j["encrypted"] = m.key_id.has_value();
    j["level"] = m.level;
    j["layout"] = store::name_of(m.layout());
    j["kind"] = kind_of(m);
    j["age"] = age_of(info);
    j["seconds"] = m.seconds();
    j["phases"] = m.phases;
    j["needs"] = m.needs;
    return j;
}

std::string command_line(const store::Manifest& m) { return fmt::format("{}", fmt::join(m.command, " ")); }

// Compares every byte; "" or what is wrong.
std::string damage_of(const store::GenerationInfo& info, const image::Key* key) {
    if (!info.manifest) return info.damage.empty() ? "it was never committed" : info.damage;
    try {
        info.check_layout();
    } catch (const Error& error) {
        return error.what();
    }
    for (const store::ImageEntry& entry : info.manifest->images) {
        try {
            image::Reader reader(info.place(entry), key);
            if (reader.summary().checksum.hex() != entry.checksum)
                return fmt::format("{}/{} is not the image that the manifest names", info.directory,
                                   entry.file);
            const std::vector<uint32_t>& needs = info.manifest->needs;
            for (const image::Source& source : reader.sources())
                if (source.generation != info.number &&
                    std::count(needs.begin(), needs.end(), source.generation) == 0)
                    return fmt::format("{}/{} refers to generation {}, of which the manifest says nothing",
                                       info.directory, entry.file, source.generation);
            reader.verify();
            bool has_process = std::any_of(reader.blobs().begin(), reader.blobs().end(),
                                           [](const image::Blob& blob) { return blob.name == "process"; });
            if (has_process) check_kept_files(reader, info.directory);
        } catch (const Error& error) {
            return error.what();
        }
    }
    return {};
}

// The mappings of an image, with what of each is saved.
json regions_of(const image::Reader& reader) {
    const auto& bytes = reader.blob("memory");
    split::MemoryTable table = split::decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    static constexpr const char* kKinds[] = {"private", "shared file", "shared memory", "shared tmpfs"};
    json list = json::array();
    size_t next = 0;
    const std::vector<image::Extent>& extents = reader.extents();
    for (const split::MapEntry& map : table.maps) {
        uint64_t saved = 0;
        while (next < extents.size() && extents[next].address < map.range.end)
            saved += extents[next++].length;
        std::string access = "---";
        for (int bit = 0; bit < 3; ++bit)
            if (map.prot & (1 << bit)) access[static_cast<size_t>(bit)] = "rwx"[bit];
        list.push_back({{"range", fmt::format("{:x}-{:x}", map.range.begin, map.range.end)},
                        {"access", access},
                        {"kind", kKinds[static_cast<size_t>(map.kind)]},
                        {"size", map.range.size()},
                        {"saved", saved},
                        {"name", map.name}});
    }
    return list;
}

void print_process(const json& process) {
    std::printf("    in %s; %zu threads:", process["directory"].get<std::string>().c_str(),
                process["threads"].size());
    for (const json& thread : process["threads"])
        std::printf(" %d %s%s", thread["tid"].get<int>(), thread["name"].get<std::string>().c_str(),
                    thread["called_mpi"].get<bool>() ? " (MPI)" : "");
    std::printf("\n");
    if (size_t kept = process["kept"].size()) {
        uint64_t bytes = 0;
        for (const json& file : process["kept"])
            if (file["how"] == "copy") bytes += file["size"].get<uint64_t>();
        std::printf("    keeps %zu of the program's files: %s\n", kept, human_size(bytes).c_str());
    }
    for (const json& file : process["files"])
        std::printf("    descriptor %4d  %-9s  %s\n", file["number"].get<int>(),
                    file["kind"].get<std::string>().c_str(), file.value("path", "").c_str());
}

}  // namespace

int list(const StoreOptions& options) {
    store::Store store = open_store(options);
    json all = json::array();
    for (const store::GenerationInfo& info : store.list()) {
        if (options.json) {
            all.push_back(summary(info));
        } else if (info.manifest) {
            const store::Manifest& m = *info.manifest;
            std::string how = m.layout() == store::Layout::shared ? "shared" : "";
            if (m.key_id) how += how.empty() ? "encrypted" : " encrypted";
            std::printf("%s  %s  %6s old  %zu ranks  %10s  %-5s  %s %-6s  %.3f s  %-7s  %s\n",
                        store::generation_name(info.number).c_str(), m.created.c_str(),
                        age_text(age_of(info)).c_str(), m.images.size(), human_size(info.bytes()).c_str(),
                        kind_of(m), m.level.c_str(), how.c_str(), m.seconds(), m.mpi.c_str(),
                        command_line(m).c_str());
        } else {
            std::printf("%s  %s\n", store::generation_name(info.number).c_str(),
                        info.damage.empty() ? "incomplete" : ("damaged: " + info.damage).c_str());
        }
    }
    if (options.json) print(all);
    return 0;
}

int verify(const StoreOptions& options) {
    store::Store store = open_store(options);
    json all = json::array();
    bool good = true, any = false;
    for (const store::GenerationInfo& info : store.list()) {
        if (options.generation && *options.generation != info.number) continue;
        if (!options.generation && !info.manifest && info.damage.empty())
            continue;  // never committed: nothing to verify
        any = true;
        info.check_key(store.key());
        std::string damage = damage_of(info, store.key());
        good = good && damage.empty();
        std::string name = store::generation_name(info.number);
        if (options.json)
            all.push_back({{"generation", name}, {"ok", damage.empty()}, {"damage", damage}});
        else if (damage.empty())
            std::printf("%s  right, %s\n", name.c_str(), human_size(info.bytes()).c_str());
        else
            std::fprintf(stderr, "fermata: error: %s: %s\n", name.c_str(), damage.c_str());
    }
    if (!any)
        throw Error(fmt::format("no generation{} in {}",
                                options.generation ? " " + store::generation_name(*options.generation) : "",
                                options.ckpt_dir),
                    ExitCode::damaged);
    if (options.json) print(all);
    return static_cast<int>(good ? ExitCode::ok : ExitCode::damaged);
}

int inspect(const StoreOptions& options) {
    store::Store store = open_store(options);
    store::GenerationInfo info = store.choose(options.generation, true);
    const store::Manifest& m = *info.manifest;
    json j = summary(info);
    j["images"] = json::array();
    for (const store::ImageEntry& entry : m.images) {
        image::Reader reader(info.place(entry), store.key());
        std::map<std::string, size_t> codecs;
        for (const image::Block& block : reader.blocks()) ++codecs[image::name_of(block.codec)];
        json image = {{"rank", entry.rank},
                      {"file", entry.file},
                      {"offset", entry.offset},
                      {"bytes", entry.bytes},
                      {"checksum", entry.checksum},
                      {"extents", reader.extents().size()},
                      {"blocks", codecs},
                      {"content", reader.summary().content},
                      {"written", reader.summary().written}};
        for (const image::Blob& blob : reader.blobs()) image["blobs"][blob.name] = blob.bytes.size();
        // (The job's own tests have ranks that save no process.)
        if (image["blobs"].contains("process")) image["process"] = contents_of(reader);
        if (json objects = objects_of(reader); !objects.is_null()) image["mpi"] = std::move(objects);
        if (options.regions) image["region_list"] = regions_of(reader);
        j["images"].push_back(std::move(image));
    }
    if (options.json) {
        print(j);
        return 0;
    }
    std::printf("%s  %s  job %s\n  command  %s\n  mpi      %s\n  size     %s in %zu images\n",
                store::generation_name(info.number).c_str(), m.created.c_str(), m.job_name.c_str(),
                command_line(m).c_str(), m.mpi.c_str(), human_size(m.bytes()).c_str(), m.images.size());
    std::printf("  phases  ");
    for (auto& [name, seconds] : m.phases) std::printf(" %s %.3f s", name.c_str(), seconds);
    std::printf("\n");
    for (const json& image : j["images"]) {
        std::string blocks;
        for (auto& [codec, count] : image["blocks"].items())
            blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", count.get<size_t>(), codec);
        std::printf("  rank %6d  %10s  %s of memory in %zu extents; blocks: %s\n", image["rank"].get<int>(),
                    human_size(image["bytes"].get<uint64_t>()).c_str(),
                    human_size(image["content"].get<uint64_t>()).c_str(), image["extents"].get<size_t>(),
                    blocks.c_str());
        if (image.contains("process")) print_process(image["process"]);
        if (image.contains("mpi")) {
            std::printf("    MPI: %s\n", numbers_line(image["mpi"]).c_str());
            if (options.objects)
                for (const json& object : image["mpi"]["list"])
                    std::printf("    %s\n", object_line(object).c_str());
        }
        if (options.regions)
            for (const json& r : image["region_list"])
                std::printf("    %-29s %s %-13s %10s of %10s  %s\n", r["range"].get<std::string>().c_str(),
                            r["access"].get<std::string>().c_str(), r["kind"].get<std::string>().c_str(),
                            human_size(r["saved"].get<uint64_t>()).c_str(),
                            human_size(r["size"].get<uint64_t>()).c_str(),
                            r["name"].get<std::string>().c_str());
    }
    return 0;
}

int compact(const CompactOptions& options) {
    store::Store store = open_store(options.store);
    store.lock(fmt::format("fermata compact, process {}", ::getpid()));
    store::GenerationInfo before = store.choose(options.store.generation, false);
    uint64_t bytes_before = before.bytes();
    bool changed = store.compact(before.number, image::parse_write_options(options.save_options));
    if (options.keep > 0) store.retain(options.keep);
    store::GenerationInfo after = store.choose(before.number, false);
    if (options.store.json)
        print({{"generation", store::generation_name(after.number)},
               {"changed", changed},
               {"bytes_before", bytes_before},
               {"bytes", after.bytes()},
               {"needed", before.manifest->needs}});
    else if (changed)
        std::printf("%s stands alone: %s; it was %s and needed %zu earlier generations\n",
                    store::generation_name(after.number).c_str(), human_size(after.bytes()).c_str(),
                    human_size(bytes_before).c_str(), before.manifest->needs.size());
    else
        std::printf("%s stands alone already: %s\n", store::generation_name(after.number).c_str(),
                    human_size(after.bytes()).c_str());
    return 0;
}

}  // namespace fermata::cli
