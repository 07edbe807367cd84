// The table at the beginning of a file of all images.
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

constexpr size_t kChecksum = 16, kRanksAt = 12, kBytesAt = 32, kBeginsAt = 40;

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
    Bytes all(24 + 8 * table.begins.size());
    std::memcpy(all.data(), &table.job, 8);
    std::memcpy(all.data() + 8, &table.generation, 4);
    std::memcpy(all.data() + 16, &table.bytes, 8);
    if (!table.begins.empty()) std::memcpy(all.data() + 24, table.begins.data(), 8 * table.begins.size());
    return all;
}

void seal(Bytes& bytes) {
    if (bytes.size() < kBeginsAt) return;
    uint64_t size = bytes.size();
    std::memcpy(bytes.data() + kBytesAt, &size, 8);
    uint32_t ranks;
    std::memcpy(&ranks, bytes.data() + kRanksAt, 4);
    uint64_t end = kBeginsAt + uint64_t{ranks} * 8;
    if (end + kChecksum > size) return;
    image::Checksum sum = image::checksum_of(bytes.data(), end);
    std::memcpy(bytes.data() + end, sum.bytes.data(), kChecksum);
}

std::vector<Bytes> seeds() {
    fs::remove(place().path());
    image::SharedFile file(files::Folder::at(place().directory));
    file.finish(0x1234567890abcdef, 7, {4096, 8192, 20480}, 24576);
    std::ifstream in(place().path(), std::ios::binary);
    return {Bytes{std::istreambuf_iterator<char>(in), {}}};
}

}  // namespace

const Target shared_file{"shared_file", run, seal, seeds, meaning};

}  // namespace fermata::fuzz
