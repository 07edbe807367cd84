#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "store/store.h"

namespace fermata::store {
namespace {

constexpr const char* kSeal = "xxh3-128 ";

std::string seal_of(const std::string& body) { return image::checksum_of(body.data(), body.size()).hex(); }

[[noreturn]] void damaged(const std::string& path, const std::string& how) {
    throw Error(fmt::format("{} is damaged: {}", path, how), ExitCode::damaged);
}

// No silent conversion: -1 and 1.5 are no numbers of anything here.
template <typename T>
T number(const nlohmann::json& value, const std::string& path, const char* what) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<T>::max())
        damaged(path, fmt::format("'{}' is not a number that it can be", what));
    return static_cast<T>(value.get<uint64_t>());
}

uint64_t hex_number(const std::string& text, const std::string& path) {
    uint64_t value = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || at != text.data() + text.size() || text.size() != 16)
        damaged(path, "its job id is not a number");
    return value;
}

}  // namespace

const char* name_of(Layout layout) { return layout == Layout::shared ? "shared" : "files"; }

uint64_t Manifest::bytes() const {
    uint64_t sum = 0;
    for (const ImageEntry& image : images) sum += image.bytes;
    return sum;
}

double Manifest::seconds() const {
    double sum = 0;
    for (auto& [name, seconds] : phases) sum += seconds;
    return sum;
}

std::string to_text(const Manifest& m) {
    nlohmann::ordered_json images = nlohmann::ordered_json::array();
    for (const ImageEntry& image : m.images)
        images.push_back({{"rank", image.rank},
                          {"file", image.file},
                          {"offset", image.offset},
                          {"bytes", image.bytes},
                          {"checksum", image.checksum}});
    nlohmann::ordered_json json = {{"fermata_manifest", kManifestVersion},
                                   {"job", fmt::format("{:016x}", m.job)},
                                   {"job_name", m.job_name},
                                   {"generation", m.generation},
                                   {"created", m.created},
                                   {"level", m.level},
                                   {"shared_bytes", m.shared_bytes},
                                   {"mpi", m.mpi},
                                   {"command", m.command},
                                   {"phases", m.phases},
                                   {"needs", m.needs},
                                   {"images", images}};
    // Arguments need not be UTF-8; a replaced byte there is only cosmetic (the image holds the real ones).
    std::string body = json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    return body + kSeal + seal_of(body) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
    auto at = text.rfind(kSeal);
    if (at == std::string::npos || text.empty() || text.back() != '\n') damaged(path, "it ends early");
    std::string body = text.substr(0, at);
    if (text.substr(at) != kSeal + seal_of(body) + "\n") damaged(path, "its checksum is wrong");
    auto json = nlohmann::json::parse(body, nullptr, false);
    if (json.is_discarded() || !json.is_object()) damaged(path, "it is not JSON");
    try {
        int version = number<int>(json.at("fermata_manifest"), path, "fermata_manifest");
        if (version < kOldestManifest || version > kManifestVersion)
            fail("{} has manifest format {}; this Fermata reads {} to {}", path, version, kOldestManifest,
                 kManifestVersion);
        // What an older version did not know.
        auto later = [&](const nlohmann::json& object, const char* key) {
            return version < 3 ? uint64_t{0} : number<uint64_t>(object.at(key), path, key);
        };
        Manifest m;
        m.job = hex_number(json.at("job").get<std::string>(), path);
        m.job_name = json.at("job_name");
        m.generation = number<uint32_t>(json.at("generation"), path, "generation");
        if (m.generation == 0) damaged(path, "generations count from 1");
        m.created = json.at("created");
        m.level = json.value("level", "files");
        m.shared_bytes = later(json, "shared_bytes");
        m.mpi = json.at("mpi");
        m.command = json.at("command").get<std::vector<std::string>>();
        m.phases = json.at("phases").get<std::map<std::string, double>>();
        for (const auto& value : json.at("needs")) {
            m.needs.push_back(number<uint32_t>(value, path, "needs"));
            if (m.needs.back() == 0 || m.needs.back() >= m.generation)
                damaged(path, "it needs a generation that is not earlier");
        }
        for (const auto& image : json.at("images"))
            m.images.push_back({number<uint32_t>(image.at("rank"), path, "rank"), image.at("file"),
                                number<uint64_t>(image.at("bytes"), path, "bytes"), image.at("checksum"),
                                later(image, "offset")});
        for (size_t i = 0; i < m.images.size(); ++i) {
            if (m.images[i].rank != i)
                damaged(path, fmt::format("image {} is of rank {}", i, m.images[i].rank));
            const std::string& file = m.images[i].file;
            if (file.empty() || file[0] == '.' ||
                file.find_first_of(std::string("/\0", 2)) != std::string::npos)
                damaged(path, "an image outside the generation");
            if (m.shared_bytes ? file != m.images[0].file : m.images[i].offset != 0)
                damaged(path, "images that share a file, and do not");
            if (m.shared_bytes && (m.images[i].offset > m.shared_bytes ||
                                   m.images[i].bytes > m.shared_bytes - m.images[i].offset))
                damaged(path, "an image outside the file of all images");
        }
        if (m.images.empty()) damaged(path, "it names no image");
        return m;
    } catch (const nlohmann::json::exception& error) {
        damaged(path, error.what());
    }
}

}  // namespace fermata::store
