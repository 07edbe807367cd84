// Objects of MPI in an image (split/mpi_objects.h).
#include "cli/objects.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "fermata_types.h"
#include "split/mpi_objects.h"

using nlohmann::json;

namespace fermata::cli {
namespace {

using mpi::Kind;
using split::ObjectRecord;

// By mpi::Kind.
constexpr const char* kKinds[16] = {"",        "comm",       "group", "datatype", "op",
                                    "request", "errhandler", "info",  "message",  "window",
                                    "file",    "session",    "keyval"};
constexpr const char* kCombiners[] = {
    "named",    "dup",           "contiguous",     "vector",  "hvector",    "indexed",
    "hindexed", "indexed_block", "hindexed_block", "struct",  "subarray",   "darray",
    "f90_real", "f90_complex",   "f90_integer",    "resized", "value_index"};
// By split::RequestSort.
constexpr const char* kRequests[] = {"none",        "send",     "receive",          "collective",
                                     "generalized", "sendrecv", "partitioned send", "one-sided or file",
                                     "done"};
constexpr const char* kStates[] = {"free", "inactive", "active", "complete"};
constexpr const char* kModes[] = {"", "ready", "synchronous", "buffered"};

template <size_t N>
const char* named(const char* const (&names)[N], int64_t index) {
    return index >= 0 && static_cast<size_t>(index) < N && names[index] ? names[index] : "?";
}

const char* topology_name(uint32_t kind) {
    switch (static_cast<int>(kind)) {
        case mpi::FM_CART:
            return "cart";
        case mpi::FM_GRAPH:
            return "graph";
        case mpi::FM_DIST_GRAPH:
            return "dist_graph";
    }
    return "";
}

const char* flavor_name(uint32_t flavor) {
    switch (static_cast<int>(flavor)) {
        case mpi::FM_WIN_FLAVOR_CREATE:
            return "create";
        case mpi::FM_WIN_FLAVOR_ALLOCATE:
            return "allocate";
        case mpi::FM_WIN_FLAVOR_DYNAMIC:
            return "dynamic";
        case mpi::FM_WIN_FLAVOR_SHARED:
            return "shared";
    }
    return "?";
}

json rank_or_any(int32_t rank) {
    if (rank == mpi::FM_ANY_SOURCE) return "any";
    if (rank == mpi::FM_PROC_NULL) return "null";
    return rank;
}

json object_of(const ObjectRecord& r, const std::string& name) {
    json j = {{"object", kKinds[r.kind]}};
    if (r.handle) j["handle"] = fmt::format("{:#x}", r.handle);
    if (!name.empty()) j["name"] = name;
    if (r.flags & split::kObjectPredefined) j["predefined"] = true;
    if (r.flags & split::kObjectFreed) j["freed"] = true;
    if (r.attributes) j["attributes"] = r.attributes;
    switch (static_cast<Kind>(r.kind)) {
        case Kind::comm:
            j["kind"] = r.flags & split::kObjectInter ? "inter" : "intra";
            j["size"] = r.numbers[0];
            j["rank"] = r.numbers[1];
            if (r.flags & split::kObjectInter) j["remote_size"] = r.numbers[2];
            if (r.sort) j["topology"] = topology_name(r.sort);
            break;
        case Kind::group:
            j["size"] = r.numbers[0];
            break;
        case Kind::datatype:
            j["combiner"] = named(kCombiners, int64_t{r.sort} - mpi::FM_COMBINER_NAMED);
            j["bytes"] = r.amount;
            j["types"] = r.numbers[0];
            j["committed"] = (r.flags & split::kObjectCommitted) != 0;
            break;
        case Kind::op:
            j["commutes"] = (r.flags & split::kObjectCommutes) != 0;
            break;
        case Kind::request:
            j["kind"] = named(kRequests, r.sort);
            j["state"] = named(kStates, r.numbers[3]);
            if (r.flags & split::kObjectPersistent) j["persistent"] = true;
            if (j["kind"] == "send" || j["kind"] == "receive") {
                j["peer"] = rank_or_any(r.numbers[0]);
                j["tag"] = r.numbers[1] == mpi::FM_ANY_TAG ? json("any") : json(r.numbers[1]);
                j["elements"] = r.amount;
                if (r.numbers[2]) j["mode"] = named(kModes, r.numbers[2]);
            }
            break;
        case Kind::message:
            j["source"] = r.numbers[0];
            j["tag"] = r.numbers[1];
            j["bytes"] = r.amount;
            break;
        case Kind::win:
            j["kind"] = flavor_name(r.sort);
            j["size"] = r.numbers[0];
            j["unit"] = r.numbers[1];
            j["bytes"] = r.amount;
            break;
        case Kind::file:
            j["size"] = r.numbers[0];
            j["amode"] = r.sort;
            break;
        case Kind::info:
            j["pairs"] = r.numbers[0];
            break;
        default:
            break;
    }
    return j;
}

}  // namespace

json objects_of(const image::Reader& reader) {
    const auto& blobs = reader.blobs();
    auto blob = std::find_if(blobs.begin(), blobs.end(), [](const auto& one) { return one.name == "mpi"; });
    if (blob == blobs.end()) return nullptr;
    const std::vector<std::byte>& bytes = blob->bytes;
    size_t at = 0;
    auto take = [&](void* to, size_t size) {
        if (size > bytes.size() - at) fail("{} is damaged: its objects end early", reader.file_of({}));
        std::memcpy(to, bytes.data() + at, size);
        at += size;
    };
    split::ObjectsHeader header;
    take(&header, sizeof header);
    if (header.version != split::kObjectsVersion)
        fail("{} has objects of format {}; this Fermata reads {}", reader.file_of({}), header.version,
             split::kObjectsVersion);
    json j = {{"counts", json::object()}, {"list", json::array()}};
    for (size_t kind = 1; kind < std::size(kKinds); ++kind)
        if (kKinds[kind]) j["counts"][kKinds[kind]] = header.counts[kind];
    for (uint32_t i = 0; i < header.records; ++i) {
        ObjectRecord record;
        take(&record, sizeof record);
        if (record.kind >= std::size(kKinds) || !kKinds[record.kind] || record.name > bytes.size())
            fail("{} is damaged: an object of no kind", reader.file_of({}));
        std::string name((record.name + size_t{7}) & ~size_t{7}, '\0');
        take(name.data(), name.size());
        name.resize(record.name);
        j["list"].push_back(object_of(record, name));
    }
    return j;
}

std::string numbers_line(const json& objects) {
    std::string line;
    for (auto& [kind, count] : objects.at("counts").items())
        if (count.get<uint64_t>())
            line += fmt::format("{}{} {}", line.empty() ? "" : ", ", kind, count.get<uint64_t>());
    return line;
}

std::string object_line(const json& object) {
    std::string line = fmt::format("{:<10}", object.at("object").get<std::string>());
    for (auto& [key, value] : object.items())
        if (key != "object")
            line += fmt::format("  {} {}", key, value.is_string() ? value.get<std::string>() : value.dump());
    return line;
}

}  // namespace fermata::cli
