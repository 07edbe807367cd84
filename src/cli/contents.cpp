// What an image holds, for people.
#include "cli/contents.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "api/table.h"
#include "base/cbor.h"
#include "base/error.h"
#include "base/text.h"
#include "files/kept.h"
#include "split/memory/memory.h"
#include "split/threads/records.h"

using nlohmann::json;

namespace fermata::cli {
namespace {

// Memory of the image at an address; what it holds nothing for was zero.
void read_memory(const image::Reader& reader, uint64_t address, void* to, uint64_t size) {
    std::memset(to, 0, size);
    std::unique_ptr<char[]> block(new char[image::kLargestBlock]);
    for (const image::Extent& extent : reader.extents()) {
        uint64_t from = std::max(address, extent.address),
                 end = std::min(address + size, extent.address + extent.length);
        if (from >= end) continue;
        reader.read(reader.blocks()[extent.block], block.get());
        std::memcpy(static_cast<char*>(to) + (from - address),
                    block.get() + extent.skip + (from - extent.address), end - from);
    }
}

json threads_of(const image::Reader& reader) {
    const auto& anchors = reader.blob("anchors");
    uint64_t address = 0;
    if (anchors.size() < 16) fail("{} is damaged: its parts", reader.file_of({}));
    std::memcpy(&address, anchors.data() + 8, sizeof address);
    auto table = std::make_unique<split::threads::ThreadTable>();
    read_memory(reader, address, table.get(), sizeof *table);
    json list = json::array();
    if (table->magic != split::threads::kTableMagic) return list;
    for (uint32_t i = 0; i < std::min<uint32_t>(uint32_t{table->high_water}, split::kMaxThreads); ++i) {
        const split::threads::SavedThread& one = table->saved[i];
        if (one.old_tid == 0) continue;
        list.push_back({{"tid", one.old_tid},
                        {"name", std::string(one.name, strnlen(one.name, sizeof one.name))},
                        {"called_mpi", one.attached != 0}});
    }
    return list;
}

json files_of(const json& descriptors) {
    json list = json::array();
    for (const json& fd : descriptors.at("descriptors")) {
        const json& one = descriptors.at("descriptions").at(fd.at(1).get<size_t>());
        json file = {{"number", fd.at(0)}, {"kind", one.at("kind")}};
        for (const char* key : {"path", "position", "size"})
            if (one.contains(key) && !one.at(key).is_structured()) file[key] = one.at(key);
        list.push_back(std::move(file));
    }
    return list;
}

// Of the program's files, what a restart puts back; older images have none.
json kept_of(const json& state) { return state.contains("files") ? state.at("files") : json::array(); }

template <class Use>
auto with_state(const image::Reader& reader, Use use) {
    const auto& bytes = reader.blob("process");
    if (const char* fault = cbor_fault(bytes.data(), bytes.size()))
        fail("{} is damaged: its process state: {}", reader.file_of({}), fault);
    try {
        json state = json::from_cbor(reinterpret_cast<const uint8_t*>(bytes.data()),
                                     reinterpret_cast<const uint8_t*>(bytes.data()) + bytes.size());
        return use(state);
    } catch (const json::exception& error) {
        fail("{} is damaged: its process state: {}", reader.file_of({}), error.what());
    }
}

}  // namespace

json contents_of(const image::Reader& reader) {
    return with_state(reader, [&](const json& state) -> json {
        return {{"threads", threads_of(reader)},
                {"files", files_of(state.at("descriptors"))},
                {"kept", kept_of(state)},
                {"directory", state.at("settings").at("cwd")}};
    });
}

std::vector<level::KeptFile> kept_files_of(const image::Reader& reader, const files::Folder& generation) {
    return with_state(reader, [&](const json& state) {
        std::vector<level::KeptFile> all;
        for (const json& entry : kept_of(state)) {
            if (entry.at("how") != "copy") continue;
            level::KeptFile file{entry.at("name"), entry.at("size").get<uint64_t>(), entry.at("sum")};
            const std::string what = fmt::format("{}/{}/{}, which {} was at the checkpoint,",
                                                 generation.path(), files::kKeptFolder, visible(file.name),
                                                 visible(entry.at("path").get<std::string>()));
            if (!files::is_kept_name(file.name)) fail("{} is not the name of a copy", what);
            const auto kept = generation.find(files::kKeptFolder);
            const auto found = kept ? kept->size_of(file.name) : std::nullopt;
            if (!found) fail("{} is missing", what);
            if (*found != file.bytes) fail("{} has {} bytes instead of {}", what, *found, file.bytes);
            if (!level::is_right(generation, file)) fail("{} is damaged", what);
            all.push_back(std::move(file));
        }
        return all;
    });
}

bool has_part(const image::Reader& reader, const char* name) {
    return std::any_of(reader.blobs().begin(), reader.blobs().end(),
                       [&](const image::Blob& blob) { return blob.name == name; });
}

json regions_of(const image::Reader& reader) {
    const auto& bytes = reader.blob("memory");
    split::MemoryTable table = split::decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    static constexpr const char* kKinds[] = {"private", "shared file", "shared memory", "shared tmpfs"};
    json list = json::array();
    size_t next = 0;
    const std::vector<image::Extent>& extents = reader.extents();
    for (const split::MapEntry& map : table.maps) {
        uint64_t saved = 0;
        while (next < extents.size() && extents[next].address < map.range.end())
            saved += extents[next++].length;
        std::string access = "---";
        for (int bit = 0; bit < 3; ++bit)
            if (map.prot & (1 << bit)) access[static_cast<size_t>(bit)] = "rwx"[bit];
        list.push_back({{"range", fmt::format("{:x}-{:x}", map.range.begin(), map.range.end())},
                        {"access", access},
                        {"kind", kKinds[static_cast<size_t>(map.kind)]},
                        {"size", map.range.size()},
                        {"saved", saved},
                        {"name", map.name}});
    }
    return list;
}

json state_of(const image::Reader& reader) {
    const auto& bytes = reader.blob(api::kBlob);
    json list = json::array();
    for (auto& [name, entry] : api::Table::decoded(bytes.data(), bytes.size(), "its image").entries) {
        uint64_t sum = 0;
        for (const api::SavedPart& part : entry.parts) sum += part.bytes;
        list.push_back({{"name", as_utf8(name)},
                        {"what", api::text_of(entry)},
                        {"bytes", sum},
                        {"parts", entry.parts.size()}});
    }
    return list;
}

}  // namespace fermata::cli
