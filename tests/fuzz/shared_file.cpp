// The table at the beginning of a file of several images.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "fuzz.h"
#include "image/shared.h"

namespace fermata::fuzz {
namespace {
namespace fs = std::filesystem;

constexpr size_t kChecksum = 16, kVersionAt = 8, kPartsAt = 12, kBytesAt = 32, kBeginsAt = 40;

struct Place {
    std::string directory;
    Place() {
        char name[] = "/dev/shm/fermata-fuzz-XXXXXX";
        if (!mkdtemp(name)) throw std::runtime_error("no scratch directory");
        directory = name;
    }
    ~Place() { fs::remove_all(directory); }
    std::string path() const { return directory + "/" + image::kSharedName; }
};

Place& place() {
    static Place one;
    return one;
}

image::SharedFile::Table read(Input input) {
    std::ofstream file(place().path(), std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    file.close();
    return image::SharedFile::read(place().path());
}

Verdict run(Input input) {
    try {
        image::SharedFile::Table table = read(input);
        require(table.bytes == input.size(), "a file of another length was accepted");
        require(table.ranks.size() == table.begins.size(), "a part of nobody was accepted");
        for (size_t i = 1; i < table.ranks.size(); ++i)
            require(table.ranks[i - 1] < table.ranks[i], "ranks out of order were accepted");
        for (size_t i = 0; i < table.ranks.size(); ++i)
            require(table.begin_of(table.ranks[i]) == table.begins[i], "a part is not found");
        uint64_t last = 0;
        for (uint64_t begin : table.begins) {
            require(begin > last && begin % kPage == 0 && begin < table.bytes,
                    "an impossible part was accepted");
            last = begin;
        }
        return Verdict::accepted;
    } catch (const Error& error) {
        require(std::string(error.what()).find(place().path()) != std::string::npos,
                std::string("a refusal without the file's name: ") + error.what());
        return Verdict::refused;
    }
}

Bytes meaning(Input input) {
    image::SharedFile::Table table = read(input);
    Bytes all(24 + 12 * table.begins.size());
    std::memcpy(all.data(), &table.job, 8);
    std::memcpy(all.data() + 8, &table.generation, 4);
    std::memcpy(all.data() + 16, &table.bytes, 8);
    if (!table.begins.empty()) std::memcpy(all.data() + 24, table.begins.data(), 8 * table.begins.size());
    for (size_t i = 0; i < table.ranks.size(); ++i) {
        const uint32_t rank = table.ranks[i].number();
        std::memcpy(all.data() + 24 + 8 * table.begins.size() + 4 * i, &rank, 4);
    }
    return all;
}

void seal(Bytes& bytes) {
    if (bytes.size() < kBeginsAt) return;
    uint64_t size = bytes.size();
    std::memcpy(bytes.data() + kBytesAt, &size, 8);
    uint32_t version, parts;
    std::memcpy(&version, bytes.data() + kVersionAt, 4);
    std::memcpy(&parts, bytes.data() + kPartsAt, 4);
    uint64_t end = kBeginsAt + uint64_t{parts} * (version == 1 ? 8 : 12);
    if (end + kChecksum > size) return;
    image::Checksum sum = image::checksum_of(bytes.data(), end);
    std::memcpy(bytes.data() + end, sum.bytes.data(), kChecksum);
}

std::vector<Bytes> seeds() {
    std::vector<Bytes> all;
    for (const std::vector<Rank>& ranks : {std::vector<Rank>(), {Rank(3), Rank(4), Rank(1000)}}) {
        fs::remove(place().path());
        image::SharedFile file(files::Folder::at(place().directory));
        file.finish(0x1234567890abcdef, 7, {4096, 8192, 20480}, 24576, ranks);
        std::ifstream in(place().path(), std::ios::binary);
        all.push_back(Bytes{std::istreambuf_iterator<char>(in), {}});
    }
    return all;
}

}  // namespace

const Target shared_file{"shared_file", run, seal, seeds, meaning};

}  // namespace fermata::fuzz
