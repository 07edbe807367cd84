// A generation that refers to earlier ones, made to stand alone. It is written whole under another name and
// then takes the place of the old one in a single step of the file system: whoever looks finds the one or the
// other.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/invariant.h"
#include "files/kept.h"
#include "image/pages.h"
#include "image/shared.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::store {
namespace {

bool is_text(const image::Reader& reader, uint32_t source) {
    return source != 0 && reader.references()[source - 1].kind == image::ReferenceKind::text;
}

// The text of an image, as it is once its files lie in generation `number`.
struct Text {
    image::Content content;
    std::vector<Range> ranges;
};
Text text_of(const image::Reader& reader, uint32_t number) {
    Text text{{reader.references(), reader.blocks(), {}}, {}};
    for (image::Reference& reference : text.content.references) reference.generation = number;
    for (const image::Extent& extent : reader.extents()) {
        if (!is_text(reader, reader.blocks()[extent.block].source)) continue;
        text.content.extents.push_back(extent);
        text.ranges.push_back(memory_of(extent));
    }
    return text;
}

void copy_file(const files::Folder& from, const std::string& name, const files::Folder& to) {
    Fd in = from.read(name), out = to.create(name);
    char buffer[1 << 16];
    for (;;) {
        ssize_t n = ::read(in.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot read {}", from.path_of(name));
        if (n == 0) break;
        write_all(out.get(), buffer, static_cast<size_t>(n), to.path_of(name));
    }
    sync_file(out.get(), to.path_of(name));
}

// Its files are the same under the new name, where the file system can do that.
void take_text(const files::Folder& old, const image::Reader& reader, const files::Folder& to) {
    for (const image::Reference& reference : reader.references()) {
        if (reference.kind != image::ReferenceKind::text || to.has(image::text_name(reference.checksum)))
            continue;
        std::string name = image::text_name(reference.checksum);
        files::Folder from = old.beside(Generation(reference.generation).name());
        if (::linkat(from.descriptor(), name.c_str(), to.descriptor(), name.c_str(), 0) != 0)
            copy_file(from, name, to);
    }
}

// The program's files are the same under the new name, too.
void take_files(const files::Folder& old, const files::Folder& to) {
    auto from = old.find(files::kKeptFolder);
    if (!from) return;
    from->check_owner(from->path());
    auto made = to.make(files::kKeptFolder);
    if (!made) fail("{} is in the way, and Fermata did not make it", to.path_of(files::kKeptFolder));
    for (const std::string& name : from->names()) {
        if (!files::is_kept_name(name)) continue;
        if (::linkat(from->descriptor(), name.c_str(), made->descriptor(), name.c_str(), 0) != 0)
            copy_file(*from, name, *made);
    }
    made->sync();
}

// Reads and compares all of `from`, writes it to `to`, but for the text, which has files of its own.
image::Summary copy_whole(const image::Reader& from, image::Writer writer,
                          const std::function<void(image::Writer&)>& place) {
    // In address order.
    image::Pages content(std::max<uint64_t>(from.summary().content, kPage), "for the content of an image");
    char* at = content.data();
    char* const end = at + from.summary().content;
    from.load([&](const image::Extent& extent) {  // called for every extent in turn before anything is read
        char* place = at;
        at += extent.length;
        return place;
    });
    for (const image::Blob& blob : from.blobs()) writer.blob(blob.name, blob.bytes.data(), blob.bytes.size());
    at = content.data();
    for (const image::Extent& extent : from.extents()) {
        // Also zeros: the image said that they are content.
        if (!is_text(from, from.blocks()[extent.block].source))
            writer.run_on_ground(extent.address, at, extent.length);
        at += extent.length;
    }
    always(at == end, "an image that holds more than it says, or less");
    Text text = text_of(from, from.identity().generation);
    writer.keep(text.content, text.ranges);
    writer.prepare();
    place(writer);
    writer.write_first();
    writer.write_rest();
    return writer.conclude();
}

// Files of several images that are written one after the other, in the order of ranks.
class Together {
  public:
    Together(const Manifest& manifest, const files::Folder& folder) {
        for (const FileEntry& file : manifest.files)
            files_.emplace(file.name, File{image::SharedFile(folder, file.name), {}, {}, 0});
        for (const ImageEntry& entry : manifest.images)
            if (manifest.layout.together()) files_.at(entry.file).ranks.push_back(entry.rank);
        for (auto& [name, file] : files_)
            file.end = image::SharedFile::lay_out(std::vector<uint64_t>(file.ranks.size())).at(0);
    }
    // Where this image begins.
    uint64_t next(const ImageEntry& entry) {
        File& file = files_.at(entry.file);
        always(file.begins.size() < file.ranks.size(), "more images in a file than it has ranks");
        file.begins.push_back(image::SharedFile::aligned(file.end));
        return file.begins.back();
    }
    void ends(const ImageEntry& entry, uint64_t end) { files_.at(entry.file).end = end; }
    void finish(Manifest& manifest) {
        for (FileEntry& entry : manifest.files) {
            const File& file = files_.at(entry.name);
            always(file.begins.size() == file.ranks.size(), "a file that lacks the image of a rank");
            file.shared.finish(manifest.job, manifest.generation, file.begins, file.end,
                               manifest.layout.in_groups() ? file.ranks : std::vector<Rank>());
            file.shared.sync();
            entry.bytes = file.end;
        }
    }

  private:
    struct File {
        image::SharedFile shared;
        std::vector<Rank> ranks;
        std::vector<uint64_t> begins;
        uint64_t end = 0;
    };
    std::map<std::string, File> files_;  // by name
};

}  // namespace

bool Store::compact(uint32_t number, const image::WriteOptions& options) {
    image::WriteOptions how = options;
    how.key = key_;
    GenerationInfo old = choose(number, false);
    if (old.manifest->on_nodes())
        throw Error(fmt::format("{} is kept by nodes: only what is in files can be compacted",
                                Generation(number).name()),
                    ExitCode::refused);
    if (old.manifest->needs.empty()) return false;
    for (const GenerationInfo& info : list())
        if (info.manifest && std::count(info.manifest->needs.begin(), info.manifest->needs.end(), number))
            fail("{} cannot be compacted: {} refers to it; compact that one first", Generation(number).name(),
                 Generation(info.number).name());
    uint64_t bytes = 0;
    for (const ImageEntry& entry : old.manifest->images) {
        image::Summary summary = image::Reader(old.place(entry), key_.get()).summary();
        bytes += summary.content + summary.bytes - summary.written;
    }
    check_space(bytes + bytes / 100);

    std::string name = kUnfinished + Generation(number).name();
    if (auto left = folder_.find(name); left && read_marker(*left))  // by a crash
        remove_generation(folder_, name, *left);
    auto made = folder_.make(name);
    if (!made) fail("{} is in the way, and Fermata did not make it", folder_.path_of(name));
    const files::Folder& place = *made;
    write_marker(place, {old.manifest->job, number});
    try {
        Manifest manifest = *old.manifest;
        manifest.needs.clear();
        Together together(manifest, place);
        for (ImageEntry& entry : manifest.images) {
            always(manifest.needs.empty(), "a generation that stands alone, and needs others");
            image::Reader reader(old.place(entry), key_.get());
            if (reader.summary().checksum != entry.checksum)
                throw Error(
                    fmt::format("{}/{} is not the image that the manifest names", old.directory, entry.file),
                    ExitCode::damaged);
            take_text(old.folder, reader, place);
            image::Place to(place, entry.file);
            image::Summary summary;
            if (manifest.layout.together()) {
                entry.offset = together.next(entry);
                summary = copy_whole(reader, image::Writer::in_shared(to, reader.identity(), how),
                                     [&](image::Writer& writer) { writer.place(entry.offset); });
                together.ends(entry, entry.offset + summary.bytes);
            } else {
                summary =
                    copy_whole(reader, image::Writer(to, reader.identity(), how), [](image::Writer&) {});
            }
            entry.bytes = summary.bytes;
            entry.checksum = summary.checksum;
        }
        together.finish(manifest);
        take_files(old.folder, place);
        place.replace(kManifest, to_text(manifest, key_.get()));
        if (!folder_.exchange(name, Generation(number).name()))
            fail_errno(
                "cannot put the compacted {} in its place (the file system must know how to exchange two "
                "names)",
                Generation(number).name());
    } catch (...) {
        remove_generation(folder_, name, place);
        throw;
    }
    folder_.sync();
    remove_generation(folder_, name, old.folder);  // it has the other name now
    return true;
}

}  // namespace fermata::store
