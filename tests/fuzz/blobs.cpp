// Parts of an image that are formats of their own, as `inspect` reads them; the image around them is right.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/contents.h"
#include "cli/objects.h"
#include "fuzz.h"
#include "image/image.h"
#include "split/mpi_objects.h"

namespace fermata::fuzz {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

struct Place {
    std::string directory;
    Place() {
        char name[] = "/dev/shm/fermata-fuzz-XXXXXX";
        if (!mkdtemp(name)) throw std::runtime_error("no scratch directory");
        directory = name;
    }
    ~Place() { fs::remove_all(directory); }
};

// `read` of an image that has the input as this blob.
template <class Read>
Verdict with_blob(const char* blob, Input input, Read read) {
    static Place place;
    std::string path = place.directory + "/rank-000000.img";
    fs::remove(path);
    image::WriteOptions options;
    options.threads = 1;
    options.direct = image::WriteOptions::Direct::no;
    options.sync = false;
    image::Writer writer(path, {11, 1, Rank(0), 1}, options);
    writer.blob(blob, input.data(), input.size());
    uint64_t anchors[4] = {};
    writer.blob("anchors", anchors, sizeof anchors);
    writer.finish();
    image::Reader reader(path);
    try {
        read(reader);
        return Verdict::accepted;
    } catch (const Error& error) {
        std::string line = error.what();
        require(line.find(path) != std::string::npos && line.find('\n') == std::string::npos,
                "a refusal without the file's name: " + line);
        return Verdict::refused;
    }
}

Verdict run_process_state(Input input) {
    return with_blob("process", input, [](const image::Reader& reader) {
        json state = cli::contents_of(reader);
        require(state.at("files").is_array(), "files that are none");
        state.dump(-1, ' ', false, json::error_handler_t::replace);
    });
}

std::vector<Bytes> process_state_seeds() {
    json state = {{"version", 1},
                  {"settings", {{"cwd", "/home/u"}, {"umask", 18}, {"limits", {{7, 1024, 4096}}}}},
                  {"descriptors",
                   {{"descriptors", {{0, 0, 0}, {3, 1, 1}}},
                    {"descriptions",
                     {{{"kind", "inherited"}},
                      {{"kind", "file"}, {"path", "/tmp/x"}, {"position", 12}, {"size", 99}}}}}},
                  {"signals", json::array()},
                  {"timers", json::object()}};
    return {json::to_cbor(state)};
}

Verdict run_mpi_objects(Input input) {
    return with_blob("mpi", input, [](const image::Reader& reader) {
        json objects = cli::objects_of(reader);
        cli::numbers_line(objects);
        for (const json& one : objects.at("list")) cli::object_line(one);
    });
}

std::vector<Bytes> mpi_objects_seeds() {
    Bytes bytes;
    auto put = [&](const auto& value) {
        auto* at = reinterpret_cast<const uint8_t*>(&value);
        bytes.insert(bytes.end(), at, at + sizeof value);
    };
    split::ObjectsHeader header{split::kObjectsVersion, 12, {}};
    for (uint64_t& count : header.counts) count = 1;
    put(header);
    for (uint32_t kind = 1; kind <= 12; ++kind) {
        split::ObjectRecord record{kind, 0x100 + kind, kind == 5 ? 1u : 0u, 0, {1, 2, 0, 1}, 8, 1, 4};
        put(record);
        put(uint64_t{0x41424344});
    }
    return {bytes};
}

}  // namespace

const Target process_state{"process_state", run_process_state, nullptr, process_state_seeds, nullptr};
const Target mpi_objects{"mpi_objects", run_mpi_objects, nullptr, mpi_objects_seeds, nullptr};

}  // namespace fermata::fuzz
