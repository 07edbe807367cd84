#include "erasure/contents.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/invariant.h"
#include "files/kept.h"
#include "image/format.h"
#include "image/image.h"
#include "image/names.h"

namespace fermata::erasure {
namespace {

constexpr char kMagic[8] = {'F', 'E', 'R', 'M', 'R', 'S', 'C', '1'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostHost = 256;
constexpr uint64_t kMostBytes = uint64_t{1} << 56;  // of one member: no sum overflows

std::string text_of(image::Unpacker& in, uint64_t most, const std::string& path) {
    const auto size = in.value<uint64_t>();
    if (size > most) fail("{} is damaged: an impossible length of a name", path);
    return {reinterpret_cast<const char*>(in.take(size)), size};
}

uint64_t pieces_in(uint64_t bytes) { return (bytes + kPiece - 1) / kPiece; }

void add_file(std::vector<File>& all, const files::Folder& folder, const std::string& name,
              const std::string& in_contents) {
    auto size = folder.size_of(name);
    if (!size) fail("{} is not a file", folder.path_of(name));
    all.push_back({in_contents, *size});
}

}  // namespace

uint64_t Contents::bytes() const {
    uint64_t sum = 0;
    for (const File& file : files) sum += file.bytes;
    return sum;
}

uint64_t Contents::begin_of(size_t file) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < file; ++i) sum += files.at(i).bytes;
    return sum;
}

uint64_t Contents::bytes_of_piece(uint64_t piece) const {
    const uint64_t all = bytes(), begin = piece * kPiece;
    return begin >= all ? 0 : std::min(kPiece, all - begin);
}

std::vector<Span> Contents::spans(uint64_t begin, uint64_t bytes) const {
    always(bytes == 0 || (begin < this->bytes() && bytes <= this->bytes() - begin),
           "a part of what a member has behind its end");
    std::vector<Span> found;
    uint64_t at = 0;
    for (size_t i = 0; i < files.size(); at += files[i++].bytes) {
        const uint64_t from = std::max(begin, at), to = std::min(begin + bytes, at + files[i].bytes);
        if (from < to) found.push_back({i, from - at, to - from});
    }
    return found;
}

std::vector<std::byte> Contents::to_bytes() const {
    always(static_cast<bool>(generation), "what a member has of no generation");  // as parse() wants it
    always(pieces.size() == pieces_in(bytes()), "checksums of another number of pieces");
    for (size_t i = 0; i < files.size(); ++i)
        always(is_covered_name(files[i].name) && (i == 0 || files[i - 1].name < files[i].name),
               "files of a member that no reader takes");
    image::Packer out;
    out.value(kMagic);
    out.value(kVersion);
    out.value(generation.number());
    out.value(job);
    out.sized(host.data(), host.size());
    out.value(static_cast<uint64_t>(files.size()));
    for (const File& file : files) {
        out.sized(file.name.data(), file.name.size());
        out.value(file.bytes);
    }
    out.sized(pieces.data(), pieces.size() * sizeof(image::Checksum));
    out.value(image::checksum_of(out.out.data(), out.out.size()));
    return std::move(out.out);
}

Contents Contents::parse(const std::vector<std::byte>& bytes, const std::string& path) {
    image::Checksum checksum;
    if (bytes.size() < sizeof kMagic + sizeof checksum ||
        std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
        fail("{} does not say what a member of a group has", path);
    const size_t end = bytes.size() - sizeof checksum;
    std::memcpy(&checksum, bytes.data() + end, sizeof checksum);
    if (checksum != image::checksum_of(bytes.data(), end)) fail("{} is damaged: its checksum", path);
    const std::vector<std::byte> body(bytes.begin() + sizeof kMagic,
                                      bytes.begin() + static_cast<ptrdiff_t>(end));
    image::Unpacker in(body, path);
    if (auto version = in.value<uint32_t>(); version != kVersion)
        fail("{} has format {}; this Fermata reads {}", path, version, kVersion);
    Contents contents;
    const auto generation = in.value<uint32_t>();
    if (generation == 0 || generation > Generation::kLast) fail("{} is damaged: impossible generation", path);
    contents.generation = Generation(generation);
    contents.job = in.value<uint64_t>();
    contents.host = text_of(in, kMostHost, path);
    uint64_t sum = 0;
    for (uint64_t left = in.count(2 * sizeof(uint64_t)); left > 0; --left) {
        File file;
        file.name = text_of(in, kMostHost, path);
        file.bytes = in.value<uint64_t>();
        if (!is_covered_name(file.name) ||
            (!contents.files.empty() && file.name <= contents.files.back().name))
            fail("{} is damaged: an impossible name of a file", path);
        if (file.bytes > kMostBytes || (sum += file.bytes) > kMostBytes)
            fail("{} is damaged: impossible sizes of files", path);
        contents.files.push_back(std::move(file));
    }
    const auto size = in.value<uint64_t>();
    if (size / sizeof checksum != pieces_in(sum) || size % sizeof checksum != 0)
        fail("{} is damaged: checksums of another number of pieces", path);
    const std::byte* const pieces = in.take(size);
    contents.pieces.resize(size / sizeof checksum);
    if (size > 0) std::memcpy(contents.pieces.data(), pieces, size);
    if (!in.at_end()) fail("{} is damaged: it goes on after its end", path);
    return contents;
}

bool is_there(const files::Folder& folder, const File& file) {
    const std::string name = name_in_folder(file.name);
    auto where = name == file.name ? std::optional(folder) : folder.find(files::kKeptFolder);
    return where && where->size_of(name) == file.bytes;
}

Contents contents_of(const files::Folder& folder, uint64_t job, Generation generation,
                     const std::string& host, const Wanted& wanted) {
    Contents contents{job, generation, host, {}, {}};
    for (const std::string& name : folder.names())
        if (is_covered_name(name) && (!wanted || wanted(name))) add_file(contents.files, folder, name, name);
    if (auto kept = folder.find(files::kKeptFolder))
        for (const std::string& name : kept->names())
            if (files::is_kept_name(name)) add_file(contents.files, *kept, name, kKeptPrefix + name);
    std::sort(contents.files.begin(), contents.files.end(),
              [](const File& a, const File& b) { return a.name < b.name; });

    const auto buffer = std::make_unique<std::byte[]>(kPiece);
    const uint64_t all = contents.bytes();
    size_t open = SIZE_MAX;
    Fd fd;
    for (uint64_t at = 0; at < all; at += kPiece) {
        const uint64_t length = std::min(kPiece, all - at);
        uint64_t filled = 0;
        for (const Span& span : contents.spans(at, length)) {
            const std::string& name = contents.files[span.file].name;
            const files::Folder where = folder_of(folder, name);
            if (open != span.file) fd = where.read(name_in_folder(name));
            open = span.file;
            pread_all(fd.get(), buffer.get() + filled, span.bytes, span.offset,
                      where.path_of(name_in_folder(name)));
            filled += span.bytes;
        }
        always(filled == length, "a piece with a hole");
        contents.pieces.push_back(image::checksum_of(buffer.get(), length));
    }
    return contents;
}

bool is_covered_name(const std::string& name) {
    const std::string prefix = kKeptPrefix;
    if (name.starts_with(prefix)) return files::is_kept_name(name.substr(prefix.size()));
    return image::is_text_name(name) || image::is_image_name(name);
}

files::Folder folder_of(const files::Folder& folder, const std::string& name) {
    return name.starts_with(kKeptPrefix) ? folder.below(files::kKeptFolder) : folder;
}

std::string name_in_folder(const std::string& name) {
    const std::string prefix = kKeptPrefix;
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace fermata::erasure
