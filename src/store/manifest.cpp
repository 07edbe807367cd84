// The manifest of a generation as text, and back (store.h, docs/formats/manifest.md).
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/cpu_level.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "image/hash.h"
#include "store/store.h"

namespace fermata::store {
namespace {

constexpr const char *kChecksum = "xxh3-128 ", *kSeal = "blake2b-256 ";
constexpr const char* kCipher = "xchacha20-poly1305";

std::string checksum_line(const std::string& body) {
    return kChecksum + image::checksum_of(body.data(), body.size()).hex() + "\n";
}

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

Rank rank_of(const nlohmann::json& image, size_t ranks, const std::string& path) {
    auto said = number<uint32_t>(image.at("rank"), path, "rank");
    auto rank = Rank::among(said, ranks);
    if (!rank) damaged(path, fmt::format("it has {} images, and one of rank {}", ranks, said));
    return *rank;
}

uint64_t hex_number(const std::string& text, const std::string& path) {
    uint64_t value = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || at != text.data() + text.size() || text.size() != 16)
        damaged(path, "its job id is not a number");
    return value;
}

image::Checksum checksum_of(const nlohmann::json& text, const std::string& path, const char* what) {
    auto sum = image::Checksum::of_hex(text.get<std::string>());
    if (!sum) damaged(path, fmt::format("its {} is none", what));
    return *sum;
}

// Every rank belongs to one, and the first is what `command` says.
void check_segments(const Manifest& m, const std::string& path) {
    if (m.segments.empty()) return;
    uint32_t next = 0;
    for (const Segment& segment : m.segments) {
        if (segment.ranks.first().number() != next || segment.command.empty())
            damaged(path, "its programs do not cover its ranks");
        next = segment.ranks.end();
    }
    if (next != m.images.size() || m.segments[0].command != m.command)
        damaged(path, "its programs do not cover its ranks");
}

}  // namespace

std::vector<std::string> whole_command(const std::vector<std::string>& command,
                                       const std::vector<Segment>& segments) {
    if (segments.empty()) return command;
    std::vector<std::string> words;
    for (const Segment& segment : segments) {
        if (!words.empty()) words.push_back(":");
        words.insert(words.end(), {"-n", std::to_string(segment.ranks.count())});
        words.insert(words.end(), segment.command.begin(), segment.command.end());
    }
    return words;
}

std::vector<FileEntry> Manifest::all_files() const {
    if (layout.together()) return files;
    std::vector<FileEntry> all;
    all.reserve(images.size());
    for (const ImageEntry& image : images) all.push_back({image.file, image.bytes});
    return all;
}

std::string Manifest::whose(const std::string& file) const {
    std::set<uint32_t> ranks;
    for (const ImageEntry& image : images)
        if (image.file == file) ranks.insert(image.rank.number());
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", text_of_numbers(ranks));
}

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

std::vector<std::string> words_as_utf8(const std::vector<std::string>& words) {
    std::vector<std::string> text;
    for (const std::string& word : words) text.push_back(as_utf8(word));
    return text;
}

std::vector<std::string> words_of_utf8(const std::vector<std::string>& text) {
    std::vector<std::string> words;
    for (const std::string& word : text) words.push_back(bytes_of_utf8(word));
    return words;
}

const char* name_of(LevelName level) {
    switch (level) {
        case LevelName::memory:
            return "memory";
        case LevelName::local:
            return "local";
        case LevelName::files:
            break;
    }
    return "files";
}

std::optional<LevelName> level_of(const std::string& word) {
    for (LevelName level : {LevelName::files, LevelName::memory, LevelName::local})
        if (word == name_of(level)) return level;
    return {};
}

namespace {

int version_of(const Manifest& m) {
    if (m.message_log) return kLoggedManifest;
    if (m.layout.in_groups()) return kGroupsManifest;
    if (m.step) return kApplicationManifest;
    if (!m.on_nodes()) return kProcessManifest;
    return m.level == LevelName::local ? kLocalManifest : kMemoryManifest;
}

// Length of the file of all ranks; 0: there is none.
uint64_t shared_bytes_of(const Manifest& m) {
    always(m.layout != image::Layout::shared() || m.files.size() == 1,
           "a file of all ranks that is none, or several");
    return m.layout == image::Layout::shared() ? m.files.at(0).bytes : 0;
}

// Neighbouring ranks of one node are told together.
nlohmann::ordered_json nodes_as_json(const std::vector<std::string>& nodes) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (size_t first = 0, next; first < nodes.size(); first = next) {
        next = first + 1;
        while (next < nodes.size() && nodes[next] == nodes[first]) ++next;
        list.push_back({{"node", as_utf8(nodes[first])}, {"first_rank", first}, {"ranks", next - first}});
    }
    return list;
}

}  // namespace

namespace {

// Whatever parse_manifest() refuses is not written.
void check_written(const Manifest& m) {
    always(m.generation > 0, "a manifest of no generation");
    always(m.on_nodes() != m.nodes.empty(), "a manifest whose level does not fit its nodes");
    always(m.nodes.empty() || m.nodes.size() == m.images.size(), "a manifest without a node for each rank");
    always(m.layout.together() != m.files.empty(), "a manifest whose layout does not fit its files");
    for (size_t i = 0; i < m.images.size(); ++i) {
        always(m.images[i].rank.index() == i, "a manifest whose images are not in the order of ranks");
        always(m.layout.together() || m.images[i].offset == 0, "an image that does not begin its own file");
        always(!m.images[i].file.empty(), "an image in a file without a name");
    }
    always(!m.message_log || (m.message_log->memory >= MessageLog::kLeastMemory &&
                              m.message_log->memory <= MessageLog::kMostMemory),
           "a message log of a size that nobody can ask for");
    for (uint32_t needed : m.needs)
        always(needed > 0 && needed < m.generation, "a generation that needs one that is not earlier");
    uint32_t next = 0;
    for (const Segment& segment : m.segments) {
        always(segment.ranks.first().number() == next, "programs of a job that do not cover its ranks");
        next = segment.ranks.end();
    }
    always(m.segments.empty() || next == m.images.size(), "programs of a job of another number of ranks");
}

constexpr const char* kNoImages = "\n \"images\": []";

// The JSON, with an empty list of images.
std::string frame_of(const Manifest& m) {
    nlohmann::ordered_json json = {{"fermata_manifest", version_of(m)},
                                   {"job", fmt::format("{:016x}", m.job)},
                                   {"job_name", m.job_name},
                                   {"generation", m.generation},
                                   {"created", m.created},
                                   {"level", name_of(m.level)},
                                   {"shared_bytes", shared_bytes_of(m)},
                                   {"mpi", m.mpi},
                                   {"command", words_as_utf8(m.command)},
                                   {"phases", m.phases},
                                   {"needs", m.needs},
                                   {"images", nlohmann::ordered_json::array()}};
    if (!m.fermata.empty()) json["fermata"] = m.fermata;
    if (!m.cpu.empty()) json["cpu"] = m.cpu;
    if (m.step) json["application"] = {{"step", *m.step}};
    if (m.message_log)
        json["message_log"] = {{"epoch", m.message_log->epoch},
                               {"replicas", m.message_log->replicas},
                               {"memory", m.message_log->memory}};
    if (m.layout.in_groups()) {
        json["layout"] = m.layout.word();
        for (const FileEntry& file : m.files)
            json["files"].push_back({{"file", file.name}, {"bytes", file.bytes}});
    }
    if (m.on_nodes()) json["nodes"] = nodes_as_json(m.nodes);
    if (!m.starter.empty()) json["starter"] = m.starter;
    for (const Segment& segment : m.segments)
        json["segments"].push_back({{"first_rank", segment.ranks.first().number()},
                                    {"ranks", segment.ranks.count()},
                                    {"command", words_as_utf8(segment.command)}});
    if (m.key_id) json["encryption"] = {{"cipher", kCipher}, {"key", m.key_id->hex()}};
    // Other texts that are not UTF-8 are for people only.
    return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of(const ImageEntry& image) {
    return fmt::format(
        "  {{\n   \"rank\": {},\n   \"file\": {},\n   \"offset\": {},\n   \"bytes\": {},\n   "
        "\"checksum\": \"{}\"\n  }}",
        image.rank.number(),
        nlohmann::json(image.file).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
        image.offset, image.bytes, image.checksum.hex());
}

}  // namespace

// Image by image: as one JSON value a manifest of 100,000 ranks takes a hundred megabytes.
void write_text(const Manifest& m, const image::Key* key, const files::Folder::Put& put) {
    check_written(m);
    image::check_key("the new " + Generation(m.generation).name(), m.key_id, key);
    image::Hash sum;
    std::string sealed;  // with a key: what it seals
    auto add = [&](std::string_view piece) {
        sum.add(piece.data(), piece.size());
        if (key) sealed += piece;
        put(piece);
    };
    const std::string frame = frame_of(m);
    const std::string_view all = frame;
    always(all.find(kNoImages) != all.npos, "a manifest without a list of images");
    const size_t begin =
        all.find(kNoImages) + std::strlen(kNoImages) - 1;  // at the bracket that ends the list
    add(all.substr(0, begin));
    for (const ImageEntry& image : m.images) add((&image == m.images.data() ? "\n" : ",\n") + text_of(image));
    if (!m.images.empty()) add("\n ");
    add(all.substr(begin));
    const std::string line = kChecksum + sum.sum().hex() + "\n";
    put(line);
    if (key) put(kSeal + key->seal_of(sealed + line) + "\n");
}

std::string to_text(const Manifest& m, const image::Key* key) {
    std::string text;
    write_text(m, key, [&text](std::string_view piece) { text += piece; });
    return text;
}

namespace {

// The text of a manifest in its parts: the lines of checksum and seal are compared with what they stand for.
struct Parts {
    std::string body;    // JSON
    std::string sealed;  // all that the seal is of
    std::string seal;    // a line, the last one; "" = none
};

Parts parts_of(const std::string& whole, const std::string& path) {
    Parts parts{"", whole, ""};
    size_t last = whole.size() < 2 ? std::string::npos : whole.rfind('\n', whole.size() - 2);
    if (last != std::string::npos && whole.compare(last + 1, std::strlen(kSeal), kSeal) == 0) {
        parts.sealed = whole.substr(0, last + 1);
        parts.seal = whole.substr(last + 1);
    }
    const std::string& text = parts.sealed;
    auto at = text.rfind(kChecksum);
    if (at == std::string::npos || text.empty() || text.back() != '\n') damaged(path, "it ends early");
    parts.body = text.substr(0, at);
    if (text.substr(at) != checksum_line(parts.body)) damaged(path, "its checksum is wrong");
    return parts;
}

// Each image lies in one of the files, and no file is without an image.
void check_files(const Manifest& m, const std::string& path) {
    if (!m.layout.together()) return;
    std::map<std::string_view, uint64_t> bytes;
    std::set<std::string_view> used;
    for (const FileEntry& file : m.files)
        if (!bytes.emplace(file.name, file.bytes).second) damaged(path, "a file of images twice");
    for (const ImageEntry& image : m.images) {
        auto file = bytes.find(image.file);
        if (file == bytes.end()) damaged(path, "an image in a file of which it says nothing");
        if (image.offset > file->second || image.bytes > file->second - image.offset)
            damaged(path, "an image outside its file");
        used.insert(file->first);
    }
    if (used.size() != bytes.size()) damaged(path, "a file without images");
}

void check_images(const Manifest& m, const std::string& path) {
    if (m.images.empty()) damaged(path, "it names no image");
    for (size_t i = 0; i < m.images.size(); ++i) {
        const ImageEntry& image = m.images[i];
        if (image.rank.index() != i)
            damaged(path, fmt::format("image {} is of rank {}", i, image.rank.number()));
        if (image.file.empty() || image.file[0] == '.' ||
            image.file.find_first_of(std::string("/\0", 2)) != std::string::npos)
            damaged(path, "an image outside the generation");
        if (!m.layout.together() && image.offset != 0) damaged(path, "images that share a file, and do not");
    }
    check_files(m, path);
}

std::vector<Segment> segments_of(const nlohmann::json& json, const std::string& path) {
    if (!json.contains("segments")) return {};
    if (!json.at("segments").is_array() || json.at("segments").size() < 2)
        damaged(path, "its programs are not several");
    std::vector<Segment> segments;
    for (const auto& segment : json.at("segments")) {
        auto ranks = RankRange::of(number<uint32_t>(segment.at("first_rank"), path, "first_rank"),
                                   number<uint32_t>(segment.at("ranks"), path, "ranks"));
        if (!ranks) damaged(path, "its programs do not cover its ranks");
        segments.push_back({*ranks, words_of_utf8(segment.at("command").get<std::vector<std::string>>())});
    }
    return segments;
}

constexpr size_t kMostNode = 1024;  // bytes of its name

std::vector<std::string> nodes_of(const nlohmann::json& json, const std::string& path, size_t ranks) {
    std::vector<std::string> nodes;
    for (const auto& one : json.at("nodes")) {
        auto count = number<uint32_t>(one.at("ranks"), path, "ranks");
        if (number<uint32_t>(one.at("first_rank"), path, "first_rank") != nodes.size() || count == 0 ||
            count > ranks - nodes.size())
            damaged(path, "its nodes do not cover its ranks");
        const std::string name = bytes_of_utf8(one.at("node").get<std::string>());
        if (name.size() > kMostNode) damaged(path, "a node of a name that none has");
        nodes.insert(nodes.end(), count, name);  // for each rank
    }
    if (nodes.size() != ranks) damaged(path, "its nodes do not cover its ranks");
    return nodes;
}

void check_seal(const Manifest& m, const Parts& parts, const std::string& path, const image::Key* key) {
    const std::string& seal = parts.seal;
    if (m.key_id.has_value() == seal.empty())
        damaged(path, m.key_id ? "it lacks its seal" : "it has a seal, and is not encrypted");
    if (!seal.empty() && (seal.size() != std::strlen(kSeal) + 65 || seal.back() != '\n'))
        damaged(path, "its seal is none");
    // With another key than its own nothing is known of it.
    if (key && m.key_id == key->id() && seal != kSeal + key->seal_of(parts.sealed) + "\n")
        damaged(path, "its seal is wrong: it was not written with the key");
}

// The name of the file of all ranks stands with the images.
void read_layout(Manifest& m, const nlohmann::json& json, uint64_t shared_bytes, int version,
                 const std::string& path) {
    const bool groups = version == kLoggedManifest ? json.contains("layout") : version == kGroupsManifest;
    if (json.contains("layout") != groups || json.contains("files") != groups)
        damaged(path, "its version does not fit its files");
    if (groups) {
        auto layout = image::Layout::of(json.at("layout").get<std::string>());
        if (!layout || !layout->in_groups() || shared_bytes != 0) damaged(path, "its layout is none");
        m.layout = *layout;
        for (const auto& file : json.at("files"))
            m.files.push_back(
                {file.at("file").get<std::string>(), number<uint64_t>(file.at("bytes"), path, "bytes")});
    } else if (shared_bytes != 0) {
        m.layout = image::Layout::shared();
        m.files = {{"", shared_bytes}};
    }
}

Manifest manifest_of(const nlohmann::json& json, const std::string& path) {
    int version = number<int>(json.at("fermata_manifest"), path, "fermata_manifest");
    if (version < kOldestManifest || version > kManifestVersion)
        fail("{} has manifest format {}; this Fermata reads {} to {}", path, version, kOldestManifest,
             kManifestVersion);
    // Reads a number that an older version did not know.
    auto later = [&](const nlohmann::json& object, const char* key) {
        return version < 3 ? uint64_t{0} : number<uint64_t>(object.at(key), path, key);
    };
    Manifest m;
    m.job = hex_number(json.at("job").get<std::string>(), path);
    m.job_name = json.at("job_name");
    m.generation = number<uint32_t>(json.at("generation"), path, "generation");
    if (m.generation == 0) damaged(path, "generations count from 1");
    m.created = json.at("created");
    auto level = level_of(json.value("level", name_of(LevelName::files)));
    if (!level) fail("{}: it is kept at a level that this Fermata does not know", path);
    m.level = *level;
    read_layout(m, json, later(json, "shared_bytes"), version, path);
    m.mpi = json.at("mpi");
    m.command = words_of_utf8(json.at("command").get<std::vector<std::string>>());
    m.starter = json.value("starter", "");
    m.fermata = json.value("fermata", "");
    m.cpu = json.value("cpu", "");
    if (!m.cpu.empty() && !cpu_level(m.cpu))
        fail("{}: its program is kept to a level of CPUs that this Fermata does not know", path);
    const bool logged = version == kLoggedManifest;
    if (logged) {
        const auto& log = json.at("message_log");
        m.message_log = {number<uint32_t>(log.at("epoch"), path, "epoch"), log.at("replicas")};
        if (log.contains("memory")) m.message_log->memory = number<uint64_t>(log["memory"], path, "memory");
        if (m.message_log->memory < MessageLog::kLeastMemory ||
            m.message_log->memory > MessageLog::kMostMemory)
            damaged(path, "no rank's log has so much memory");
    }
    if (json.contains("message_log") != logged || (logged && json.contains("application")))
        damaged(path, "its version does not fit its message logs");
    if (!logged &&
        ((version != kGroupsManifest && json.contains("application") != (version == kApplicationManifest)) ||
         json.contains("nodes") != (version == kMemoryManifest || version == kLocalManifest) ||
         (m.level == LevelName::local) != (version == kLocalManifest)))
        damaged(path, "its version does not fit what it is of");
    if (json.contains("application")) {
        const auto& step = json.at("application").at("step");
        if (!step.is_number_integer()) damaged(path, "its step is not a number");
        m.step = step.get<int64_t>();
    }
    m.phases = json.at("phases").get<std::map<std::string, double>>();
    for (const auto& value : json.at("needs")) {
        m.needs.push_back(number<uint32_t>(value, path, "needs"));
        if (m.needs.back() == 0 || m.needs.back() >= m.generation)
            damaged(path, "it needs a generation that is not earlier");
    }
    for (const auto& image : json.at("images"))
        m.images.push_back({rank_of(image, json.at("images").size(), path), image.at("file"),
                            number<uint64_t>(image.at("bytes"), path, "bytes"),
                            checksum_of(image.at("checksum"), path, "checksum of an image"),
                            later(image, "offset")});
    if (m.layout == image::Layout::shared() && !m.images.empty()) m.files.at(0).name = m.images[0].file;
    check_images(m, path);
    if (json.contains("nodes")) m.nodes = nodes_of(json, path, m.images.size());
    if (m.on_nodes() == m.nodes.empty()) damaged(path, "its level does not fit its version");
    m.segments = segments_of(json, path);
    check_segments(m, path);
    if (json.contains("encryption")) {
        const auto& encryption = json.at("encryption");
        if (encryption.at("cipher") != kCipher)
            fail("{}: its images are encrypted in a way that this Fermata does not know", path);
        m.key_id = checksum_of(encryption.at("key"), path, "key");
    }
    return m;
}

}  // namespace

namespace {

// Each key and each value that Fermata writes takes more bytes than that; a text of short ones would take
// forty times its length of memory.
constexpr uint64_t kBytesOfValue = 8;
constexpr uint64_t kAnyValues = 1 << 20;  // words of a command line may be short

bool is_mark(char c) { return c == ',' || c == ':' || c == '[' || c == '{'; }

// Says whether the text can have more keys and values: one is before the first mark, and one behind each.
// (To be asked by the parser takes it a time that grows with the square of the images.)
bool may_have_more(std::string_view text, uint64_t most) {
    // Those in strings are none, but seldom many.
    if (static_cast<uint64_t>(std::count_if(text.begin(), text.end(), is_mark)) < most) return false;
    uint64_t values = 1;
    bool quoted = false;
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"')
            quoted = !quoted;
        else if (quoted)
            at += c == '\\';
        else
            values += is_mark(c);
    }
    return values > most;
}

nlohmann::json json_of(const std::string& text, const std::string& path) {
    const uint64_t most = kAnyValues + text.size() / kBytesOfValue;
    if (may_have_more(text, most)) damaged(path, fmt::format("more than {} values", most));
    return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace

Manifest parse_manifest(const std::string& whole, const std::string& path, const image::Key* key) {
    Parts parts = parts_of(whole, path);
    auto json = json_of(parts.body, path);
    if (json.is_discarded() || !json.is_object()) damaged(path, "it is not JSON");
    try {
        Manifest m = manifest_of(json, path);
        check_seal(m, parts, path, key);
        return m;
    } catch (const nlohmann::json::exception& error) {
        damaged(path, error.what());
    }
}

}  // namespace fermata::store
