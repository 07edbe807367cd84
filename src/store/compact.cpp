// A generation that refers to earlier ones, made to stand alone. It is written whole under another name and
// then takes the place of the old one in a single step of the file system: whoever looks finds the one or the
// other.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "store/store.h"

namespace fermata::store {
namespace fs = std::filesystem;
namespace {

// The content of one image, in address order.
class Content {
  public:
    explicit Content(const image::Reader& reader)
        : size_(std::max<uint64_t>(reader.summary().content, image::kPage)) {
        void* p = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
        if (p == MAP_FAILED) fail_errno("cannot get {} MiB for the content of an image", size_ >> 20);
        data_ = static_cast<char*>(p);
    }
    ~Content() { ::munmap(data_, size_); }
    Content(const Content&) = delete;
    Content& operator=(const Content&) = delete;
    char* data() { return data_; }

  private:
    uint64_t size_;
    char* data_;
};

// Reads and compares all of `from`, writes it to `to`.
image::Summary copy_whole(const image::Reader& from, const std::string& to, const image::WriteOptions& how) {
    Content content(from);
    char* at = content.data();
    from.load([&](const image::Extent& extent) {  // called for every extent in turn before anything is read
        char* place = at;
        at += extent.length;
        return place;
    });
    image::Writer writer(to, from.identity(), how);
    for (const image::Blob& blob : from.blobs()) writer.blob(blob.name, blob.bytes.data(), blob.bytes.size());
    at = content.data();
    for (const image::Extent& extent : from.extents()) {
        // Also zeros: the image said that they are content.
        writer.run_on_ground(extent.address, at, extent.length);
        at += extent.length;
    }
    return writer.finish();
}

}  // namespace

bool Store::compact(uint32_t number, const image::WriteOptions& how) {
    GenerationInfo old = choose(number, false);
    if (old.manifest->needs.empty()) return false;
    for (const GenerationInfo& info : list())
        if (info.manifest && std::count(info.manifest->needs.begin(), info.manifest->needs.end(), number))
            fail("{} cannot be compacted: {} refers to it; compact that one first", generation_name(number),
                 generation_name(info.number));
    uint64_t bytes = 0;
    for (const ImageEntry& entry : old.manifest->images) {
        image::Summary summary = image::Reader(old.directory + "/" + entry.file).summary();
        bytes += summary.content + summary.bytes - summary.written;
    }
    check_space(bytes + bytes / 100);

    std::string place = directory_ + "/" + kUnfinished + generation_name(number);
    std::error_code ignored;
    fs::remove_all(place, ignored);
    if (::mkdir(place.c_str(), 0700) != 0) fail_errno("cannot create {}", place);
    try {
        Manifest manifest = *old.manifest;
        manifest.needs.clear();
        for (ImageEntry& entry : manifest.images) {
            image::Reader reader(old.directory + "/" + entry.file);
            if (reader.summary().checksum.hex() != entry.checksum)
                throw Error(
                    fmt::format("{}/{} is not the image that the manifest names", old.directory, entry.file),
                    ExitCode::damaged);
            image::Summary summary = copy_whole(reader, place + "/" + entry.file, how);
            entry.bytes = summary.bytes;
            entry.checksum = summary.checksum.hex();
        }
        replace_file(place + "/" + kManifest, to_text(manifest));
        if (::renameat2(AT_FDCWD, place.c_str(), AT_FDCWD, old.directory.c_str(), RENAME_EXCHANGE) != 0)
            fail_errno(
                "cannot put the compacted {} in its place (the file system must know how to exchange two "
                "names)",
                generation_name(number));
    } catch (...) {
        fs::remove_all(place, ignored);
        throw;
    }
    sync_directory(directory_);
    fs::remove_all(place, ignored);  // now the old one
    return true;
}

}  // namespace fermata::store
