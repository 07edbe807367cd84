// This file shows people the contents of an image.
#include "cli/contents.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "api/table.h"
#include "base/error.h"
#include "base/text.h"
#include "level/process_state.h"
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

}  // namespace

json contents_of(const image::Reader& reader) {
    return level::with_process_state(reader, [&](const json& state) -> json {
        return {{"threads", threads_of(reader)},
                {"files", files_of(state.at("descriptors"))},
                {"kept", level::kept_of(state)},
                {"directory", state.at("settings").at("cwd")}};
    });
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
