#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "fuzz.h"
#include "image/shared.h"
#include "store/store.h"

namespace fermata::fuzz {
namespace {

const std::string kPath = "/ckpt/gen-000007/manifest.json";
const std::string kSeal = "xxh3-128 ";

std::string text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// Every number and text that counts has come through as it stands there: nothing was converted on the way.
void require_same(const std::string& before, const std::string& after) {
    auto body = [](const std::string& text) {
        return nlohmann::json::parse(text.substr(0, text.rfind(kSeal)));
    };
    nlohmann::json a = body(before), b = body(after);
    int version = a.at("fermata_manifest");
    require(version >= store::kOldestManifest && version <= store::kManifestVersion,
            "an unknown version was read");
    for (const char* key : {"generation", "needs", "job_name", "created", "mpi", "command"})
        require(a.at(key) == b.at(key), std::string(key) + " was changed by reading it");
    require(a.contains("segments") == b.contains("segments"), "programs were lost");
    require(a.contains("application") == b.contains("application"), "the step was lost");
    if (a.contains("application"))
        require(a["application"]["step"] == b["application"]["step"], "the step was changed");
    if (a.contains("segments")) {
        require(a["segments"].size() == b["segments"].size(), "programs were lost");
        for (size_t i = 0; i < b["segments"].size(); ++i)
            for (const char* key : {"first_rank", "ranks", "command"})
                require(a["segments"][i].at(key) == b["segments"][i].at(key),
                        std::string(key) + " was changed by reading it");
    }
    for (const char* key : {"layout", "files"}) {
        require(a.contains(key) == b.contains(key), std::string(key) + " was lost");
        if (a.contains(key)) require(a[key].size() == b[key].size(), std::string(key) + " was lost");
    }
    if (a.contains("layout")) require(a["layout"] == b["layout"], "the layout was changed");
    if (a.contains("files"))
        for (size_t i = 0; i < b["files"].size(); ++i)
            for (const char* key : {"file", "bytes"})
                require(a["files"][i].at(key) == b["files"][i].at(key),
                        std::string(key) + " of a file was changed by reading it");
    require(a.at("images").size() == b.at("images").size(), "images were lost");
    for (size_t i = 0; i < b.at("images").size(); ++i)
        for (const char* key : {"rank", "file", "bytes", "checksum", "offset"})
            if (version >= 3 || std::string(key) != "offset")
                require(a["images"][i].at(key) == b["images"][i].at(key),
                        std::string(key) + " was changed by reading it");
}

store::Manifest full();

// As the key's owner has written it.
std::string encrypted() {
    store::Manifest m = full();
    m.key_id = fuzz_key()->id();
    return store::to_text(m, fuzz_key().get());
}

Verdict run(Input input) {
    try {
        store::Manifest m = store::parse_manifest(text_of(input), kPath);
        if (m.key_id) {
            // Nobody without the key can write one that its owner believes.
            bool believed = true;
            try {
                store::parse_manifest(text_of(input), kPath, fuzz_key().get());
            } catch (const Error&) {
                believed = false;
            }
            require(!believed || m.key_id != fuzz_key()->id() || text_of(input) == encrypted(),
                    "a manifest that was not written with the key");
            return Verdict::accepted;
        }
        std::string again = store::to_text(m);
        require(store::to_text(store::parse_manifest(again, kPath)) == again,
                "it does not survive a round trip");
        require_same(text_of(input), again);
        require(!m.images.empty() && m.generation > 0, "an impossible manifest was accepted");
        std::map<std::string, uint64_t> files;
        for (const store::FileEntry& file : m.all_files()) files[file.name] = file.bytes;
        for (const store::ImageEntry& entry : m.images)
            require(files.count(entry.file) && entry.offset <= files[entry.file] &&
                        entry.bytes <= files[entry.file] - entry.offset &&
                        (m.layout.together() || entry.offset == 0),
                    "an image outside its file");
        for (const store::ImageEntry& entry : m.images)
            require(!entry.file.empty() && entry.file[0] != '.' &&
                        entry.file.find('/') == std::string::npos &&
                        entry.file.find('\0') == std::string::npos,
                    "a file outside the generation: " + entry.file);
        uint64_t ranks = 0;
        for (const store::Segment& segment : m.segments) {
            require(segment.ranks.first().number() == ranks, "ranks without a program");
            ranks = segment.ranks.end();
        }
        require(m.segments.empty() || ranks == m.images.size(), "ranks without a program");
        return Verdict::accepted;
    } catch (const Error& error) {
        std::string line = error.what();
        require(line.find(kPath) != std::string::npos, "a refusal without the file's name: " + line);
        return Verdict::refused;
    }
}

Bytes meaning(Input input) {
    store::Manifest m = store::parse_manifest(text_of(input), kPath);
    std::string text;
    if (m.key_id) {
        text = m.key_id->hex();
        m.key_id.reset();
    }
    text += store::to_text(m);
    return {text.begin(), text.end()};
}

void seal(Bytes& bytes) {
    std::string text(bytes.begin(), bytes.end());
    if (auto at = text.rfind(kSeal); at != std::string::npos) text.resize(at);
    if (text.empty() || text.back() != '\n') text += '\n';
    text += kSeal + image::checksum_of(text.data(), text.size()).hex() + "\n";
    bytes.assign(text.begin(), text.end());
}

store::Manifest full() {
    store::Manifest m;
    m.job = 0x1234567890abcdef;
    m.job_name = "melt";
    m.generation = 7;
    m.created = "2026-11-21 16:00:00";
    m.mpi = "openmpi";
    m.command = {"/usr/bin/lmp", "-in", "in.\xc3\xa4\"melt"};
    m.phases = {{"save", 0.25}, {"commit", 1e-3}};
    for (uint32_t rank = 0; rank < 3; ++rank)
        m.images.push_back({Rank(rank), image::image_name(Rank(rank)), 1ull << (20 + 10 * rank),
                            image::Checksum{{0, 0x11, 0x22, 0xff}}});
    return m;
}

std::vector<Bytes> seeds() {
    store::Manifest m = full();
    std::string alone = store::to_text(m);
    m.needs = {3, 6};
    std::string delta = store::to_text(m);
    m.layout = image::Layout::shared();
    m.files = {{image::kSharedName, uint64_t{4} << 40}};
    for (store::ImageEntry& entry : m.images) {
        entry.file = image::kSharedName;
        entry.offset = (entry.rank.number() + uint64_t{1}) << 30;
    }
    std::string shared = store::to_text(m);
    m.segments = {{{Rank(0), 1}, m.command}, {{Rank(1), 2}, {"./ocn", "grid"}}};
    std::string coupled = store::to_text(m);
    std::string secret = encrypted();
    m.layout = image::Layout::node();
    m.files = {{image::group_name(Rank(0)), uint64_t{4} << 40},
               {image::group_name(Rank(1)), uint64_t{4} << 40}};
    for (store::ImageEntry& entry : m.images) entry.file = m.files[entry.rank.number() % 2].name;
    std::string groups = store::to_text(m);
    m.layout = image::Layout::group(2);
    m.step = -7;
    std::string own_state = store::to_text(m);
    return {{alone.begin(), alone.end()},    {delta.begin(), delta.end()},
            {shared.begin(), shared.end()},  {secret.begin(), secret.end()},
            {groups.begin(), groups.end()},  {own_state.begin(), own_state.end()},
            {coupled.begin(), coupled.end()}};
}

}  // namespace

const Target manifest{"manifest", run, seal, seeds, meaning};

}  // namespace fermata::fuzz
