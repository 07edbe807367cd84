// What an attacker makes who knows the formats: every checksum is right, what it stands for is not.
//
//   forge manifest FILE             standard input with its line of checksum
//   forge header FILE FIELD VALUE   an image of another job, generation, rank, ranks; prints the header's
//   checksum forge process FILE KIND         an image with another process state: nested, strings, text;
//   prints bytes, checksum forge claims FILE BYTES         a page that claims an index of so many bytes,
//   which is a hole
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>

#include "files/owners.h"
#include "image/format.h"
#include "image/image.h"

using namespace fermata;
using namespace fermata::image;

static void put(const char* path, const void* data, size_t size, uint64_t offset) {
    Fd fd = open_file(path, O_WRONLY | O_CREAT, 0600);
    if (::pwrite(fd.get(), data, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
        fail("cannot write {}", path);
}

static void manifest(const char* path) {
    std::string body;
    for (int c; (c = std::getchar()) != EOF;) body += static_cast<char>(c);
    body += "xxh3-128 " + checksum_of(body.data(), body.size()).hex() + "\n";
    ::unlink(path);
    put(path, body.data(), body.size(), 0);
}

static void finish(const char* path, Header& header) {
    header.checksum = checksum_of(&header, offsetof(Header, checksum));
    put(path, &header, sizeof header, 0);
    std::printf("%s\n", header.checksum.hex().c_str());
}

static void header(const char* path, const std::string& field, uint64_t value) {
    Header header;
    pread_all(open_file(path, O_RDONLY).get(), &header, sizeof header, 0, path);
    auto small = static_cast<uint32_t>(value);
    if (field == "job") header.job = value;
    if (field == "generation") header.generation = small;
    if (field == "rank") header.rank = small;
    if (field == "ranks") header.ranks = small;
    finish(path, header);
}

static void process(const char* path, const std::string& kind) {
    std::string state = "no CBOR";
    if (kind == "nested") state = std::string(1 << 20, '\x81') + '\0';
    if (kind == "strings") state = std::string(1 << 20, '\x7f');
    std::string fresh = std::string(path) + ".forged";
    Summary summary;
    {
        Reader reader(Place{path, {}});
        Writer writer(fresh, reader.identity());
        for (const Blob& blob : reader.blobs())
            if (blob.name == "process")
                writer.blob(blob.name, state.data(), state.size());
            else
                writer.blob(blob.name, blob.bytes.data(), blob.bytes.size());
        std::vector<std::unique_ptr<char[]>> content;
        for (const Extent& extent : reader.extents()) {
            content.push_back(std::make_unique<char[]>(kLargestBlock));
            reader.read(reader.blocks()[extent.block], content.back().get());
            writer.run(extent.address, content.back().get() + extent.skip, extent.length);
        }
        summary = writer.finish();
    }
    if (::rename(fresh.c_str(), path) != 0) fail_errno("cannot rename {}", fresh);
    std::printf("%lu %s\n", summary.bytes, summary.checksum.hex().c_str());
}

static void claims(const char* path, uint64_t bytes) {
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kFormatVersion;
    header.page = 4096;
    header.ranks = 1;
    header.index_offset = 4096;
    header.index_size = bytes;
    header.file_size = 4096 + bytes;
    ::unlink(path);
    finish(path, header);
    if (::truncate(path, static_cast<off_t>(header.file_size)) != 0) fail_errno("cannot make {} long", path);
}

int main(int argc, char** argv) {
    fermata::files::believe_everybody();
    std::string verb = argc > 2 ? argv[1] : "";
    try {
        if (verb == "manifest") return manifest(argv[2]), 0;
        if (verb == "header" && argc == 5)
            return header(argv[2], argv[3], std::strtoull(argv[4], nullptr, 0)), 0;
        if (verb == "process" && argc == 4) return process(argv[2], argv[3]), 0;
        if (verb == "claims" && argc == 4) return claims(argv[2], std::strtoull(argv[3], nullptr, 0)), 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 2;
}
