// An image as the second of two generations: it may refer to blocks of the first, which is always the same.
#include "image/image.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "fuzz.h"
#include "image/format.h"
#include "image/save_options.h"

namespace fermata::fuzz {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kBase = 0x10000000;

image::WriteOptions options(const std::string& words, image::KeyPointer key) {
    image::WriteOptions o = image::SaveOptions::parse(words + " threads=1 io=buffered").write;
    o.sync = false;
    o.key = std::move(key);
    return o;
}

Bytes contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

alignas(4096) char text[2 * kPage];

// gen-000001 with one image, and the name of the image to be judged.
struct Place {
    std::string directory, base, path;
    image::KeyPointer key;
    image::Content content;
    std::vector<char> memory;

    explicit Place(image::KeyPointer with) : key(std::move(with)), memory(4 * kPage) {
        char name[] = "/dev/shm/fermata-fuzz-XXXXXX";
        if (!mkdtemp(name)) throw std::runtime_error("no scratch directory");
        directory = name;
        base = directory + "/gen-000001/rank-000000.img";
        path = directory + "/gen-000002/rank-000000.img";
        fs::create_directory(directory + "/gen-000001");
        fs::create_directory(directory + "/gen-000002");
        for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i / 64 + i % 7);
        image::Writer writer(base, {11, 1, Rank(0), 1}, options("", key));
        writer.blob("process", "abc", 3);
        writer.run(kBase, memory.data(), memory.size());
        writer.finish();
        content = writer.content();
        for (size_t i = 0; i < sizeof text; ++i) text[i] = static_cast<char>(i / 100);
        write_with_text();
    }
    // Leaves the text file beside the image: what refers to it can be read in another process, too.
    void write_with_text() {
        fs::remove(path);
        image::Writer writer(path, {11, 2, Rank(0), 1}, options("", key));
        writer.blob("process", "abc", 3);
        auto at = reinterpret_cast<uint64_t>(text);
        writer.share({{at, at + sizeof text}});
        writer.run(kBase, memory.data(), kPage);
        writer.finish();
    }
    ~Place() { fs::remove_all(directory); }
};

template <bool kEncrypted>
Place& place() {
    static Place one(kEncrypted ? fuzz_key() : nullptr);
    return one;
}

void put(Place& place, Input input) {
    int fd = ::open(place.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
        throw std::runtime_error("cannot write the input");
    ::close(fd);
}

// Everything that a restart takes from it; throws Error.
Bytes read_all(const Place& place) {
    image::Reader reader(place.path, place.key.get());
    std::string all;
    auto add = [&](const void* data, size_t size) { all.append(static_cast<const char*>(data), size); };
    const image::Identity& who = reader.identity();
    add(&who.job, sizeof who.job);
    for (uint32_t number : {who.generation, who.rank.number(), who.ranks}) add(&number, sizeof number);
    for (const image::Blob& blob : reader.blobs()) {
        add(blob.name.c_str(), blob.name.size() + 1);
        add(blob.bytes.data(), blob.bytes.size());
    }
    uint64_t size = 0, last = 0;
    for (const image::Extent& extent : reader.extents()) {
        require(extent.address >= last && extent.length > 0 && extent.length <= image::kLargestBlock &&
                    extent.address % kPage == 0 && extent.length % kPage == 0,
                "an impossible extent was accepted");
        last = extent.address + extent.length;
        require(last >= extent.address, "an extent wraps around");
        size += extent.length;
        add(&extent.address, sizeof extent.address);
    }
    require(size == reader.summary().content, "the sum of the extents is wrong");
    if (size > 32 << 20) return {all.begin(), all.end()};  // right, but it would take too long here
    std::vector<char> memory(size);
    uint64_t at = 0;
    reader.load(
        [&](const image::Extent& extent) {
            at += extent.length;
            return memory.data() + at - extent.length;
        },
        1);
    add(memory.data(), memory.size());
    return {all.begin(), all.end()};
}

template <bool kEncrypted>
Bytes meaning(Input input) {
    put(place<kEncrypted>(), input);
    return read_all(place<kEncrypted>());
}

// What all images mean that were written with the key.
std::vector<Bytes>& written() {
    static std::vector<Bytes> all;
    return all;
}

template <bool kEncrypted>
Verdict run(Input input) {
    try {
        Bytes read = meaning<kEncrypted>(input);
        // Checksums that were made right do not make an image of the key's.
        if (kEncrypted)
            require(std::count(written().begin(), written().end(), read) > 0,
                    "an image was accepted that was not written with the key");
        return Verdict::accepted;
    } catch (const Error& error) {
        std::string line = error.what();
        require(line.find(place<kEncrypted>().directory + "/gen-0000") != std::string::npos &&
                    line.find('\n') == std::string::npos,
                "a refusal without the file's name: " + line);
        return Verdict::refused;
    }
}

void seal(Bytes& bytes) {
    if (bytes.size() < kPage) return;
    image::Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.file_size = bytes.size();
    header.index_offset = std::min<uint64_t>(header.index_offset, bytes.size());
    header.index_size = bytes.size() - header.index_offset;
    header.index_checksum = image::checksum_of(bytes.data() + header.index_offset, header.index_size);
    header.checksum = image::checksum_of(&header, offsetof(image::Header, checksum));
    std::memcpy(bytes.data(), &header, sizeof header);
}

template <bool kEncrypted>
std::vector<Bytes> seeds() {
    std::vector<Bytes> all;
    Place& p = place<kEncrypted>();
    for (const char* words :
         {"", "compress=lz4", "compress=zstd", "compress=shuffle-lz4", "compress=shuffle-zstd"}) {
        fs::remove(p.path);
        image::Writer writer(p.path, {11, 2, Rank(0), 1}, options(words, p.key));
        writer.blob("process", "abc", 3);
        writer.blob("empty", "", 0);
        writer.run(kBase + kPage, p.memory.data(), kPage);
        writer.run(kBase + 8 * kPage, p.memory.data() + kPage, 2 * kPage);
        writer.keep(p.content, {{kBase, kBase + kPage}, {kBase + 2 * kPage, kBase + 4 * kPage}});
        writer.finish();
        all.push_back(contents(p.path));
    }
    p.write_with_text();
    all.push_back(contents(p.path));
    all.push_back(contents(p.base));
    if (kEncrypted)
        for (const Bytes& one : all) written().push_back(meaning<true>(one));
    return all;
}

}  // namespace

image::KeyPointer fuzz_key() {
    static image::KeyPointer key = [] {
        char name[] = "/dev/shm/fermata-fuzz-key-XXXXXX";
        int fd = ::mkstemp(name);
        std::string digits(64, '7');
        if (fd < 0 || ::write(fd, digits.data(), digits.size()) != 64) throw std::runtime_error("no key");
        ::close(fd);
        image::KeyPointer made = image::Key::from_file(name);
        ::unlink(name);
        return made;
    }();
    return key;
}

const Target image{"image", run<false>, seal, seeds<false>, meaning<false>};
const Target encrypted_image{"encrypted_image", run<true>, seal, seeds<true>, meaning<true>};

}  // namespace fermata::fuzz
