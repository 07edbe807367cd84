#include "level/repair.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "erasure/names.h"
#include "files/kept.h"
#include "image/file_checksum.h"
#include "image/hash.h"
#include "level/place.h"
#include "store/remove.h"

namespace fermata::level {
namespace {

constexpr size_t kPart = 4 << 20;

// Copies, and sums up all that could be read.
image::Checksum copy_content(int from, int to, const std::string& from_path, const std::string& to_path) {
    auto buffer = std::make_unique<char[]>(kPart);
    image::Hash hash;
    for (;;) {
        const ssize_t n = ::read(from, buffer.get(), kPart);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot read {}", from_path);
        if (n == 0) return hash.sum();
        hash.add(buffer.get(), static_cast<size_t>(n));
        write_all(to, buffer.get(), static_cast<size_t>(n), to_path);
    }
}

bool are_same(const files::Folder& one, const files::Folder& other, const std::string& name) {
    const auto bytes = one.size_of(name);
    return bytes && bytes == other.size_of(name) &&
           image::checksum_of_file(one, name, *bytes) == image::checksum_of_file(other, name, *bytes);
}

}  // namespace

Repair::Repair(Copies& copies, const ParityHere& parity) : copies_(copies), parity_(parity) {}

void Repair::note(const std::string& path, const std::string& from, const std::string& why) {
    report_.mended.push_back(fmt::format("{} from {}: {}", path, from, why));
}

// Nothing of other users' is written to: what is made would be this user's.
void Repair::check_mine(const Shelf& shelf) const {
    if (shelf.folder.owner() != ::geteuid()) fail("{} is another user's", shelf.folder.path());
    if (shelf.in_files() && !shelf.folder.has(store::kManifest))
        fail("{} was removed meanwhile", shelf.folder.path());
}

Repair::Report Repair::run() {
    for (const Shelf& shelf : copies_.shelves())
        if (!shelf.marked) mend_marker(shelf);
    for (const store::ImageEntry& entry : copies_.info().manifest->images)
        for (size_t i = 0; i < copies_.shelves().size(); ++i)
            if (copies_.state(i, entry.rank) == Copies::State::damaged) mend_image(i, entry);
    for (const ParityHere::Damage& one : parity_.damage()) try {
            check_mine(*one.shelf);
            parity_.encode(*one.shelf);
            note(one.shelf->folder.path_of(erasure::kParityFile), "the images of its group", one.why);
        } catch (const Error& error) {
            report_.left.push_back(fmt::format("{}; not to be made again here: {}", one.why, error.what()));
        }
    copies_.look();
    return report_;
}

void Repair::mend_marker(const Shelf& shelf) {
    const std::string path = shelf.folder.path_of(store::kMarker), why = "it was damaged";
    try {
        check_mine(shelf);
        store::mend_marker(shelf.folder, {copies_.info().manifest->job, copies_.info().number});
        note(path, "the manifest", why);
    } catch (const Error& error) {
        report_.left.push_back(fmt::format("{} is damaged: {}", path, error.what()));
    }
}

// An image that came earlier may have mended this one, too: text is in common.
void Repair::mend_image(size_t at, const store::ImageEntry& entry) {
    always(at < copies_.shelves().size(), "an image that is mended in no place");
    const Shelf& to = copies_.shelves()[at];
    const std::string why = copies_.why(at, entry.rank);
    std::string trouble = "no other copy of it is here";
    try {
        copies_.check(image::Place(to.folder, Copies::name_on(to, entry)), entry);
        return;
    } catch (const Error&) {
        // As was said.
    }
    try {
        check_mine(to);
        if (copies_.info().manifest->layout.together()) fail("images that share a file are not mended");
        if (const Shelf* from = copies_.intact(entry.rank)) return from_copy(to, *from, entry, why);
        if (to.in_memory()) return from_parity(to, entry, why);
    } catch (const Error& error) {
        trouble = error.what();
    }
    if (const std::string line = fmt::format("{}; {}", why, trouble);
        std::count(report_.left.begin(), report_.left.end(), line) == 0)
        report_.left.push_back(line);
}

// Everything that goes with the image comes before it. Whatever of that is right here stays.
void Repair::from_copy(const Shelf& to, const Shelf& from, const store::ImageEntry& entry,
                       const std::string& why) {
    always(&to != &from, "a damaged image that is mended from itself");
    const std::string name = Copies::name_on(to, entry), source = from.text();
    const image::Place wanted(from.folder, Copies::name_on(from, entry));
    // Once more: only what is intact now is taken.
    const std::vector<KeptFile> kept = copies_.check(wanted, entry);
    const image::Reader reader(wanted, copies_.key());
    const auto damaged = [&] {
        try {
            copies_.check(image::Place(to.folder, name), entry);
            return false;
        } catch (const Error&) {
            return true;
        }
    };
    for (const image::Reference& reference : reader.references()) {
        const std::string text = image::text_name(reference.checksum);
        if (reference.kind != image::ReferenceKind::text || reference.generation != copies_.info().number ||
            are_same(from.folder, to.folder, text))
            continue;
        bring(to, to.folder, from.folder, text, [](const std::string&) {});
        note(to.folder.path_of(text), source, why);
    }
    for (const KeptFile& file : kept) {
        if (is_right(to.folder, file)) continue;
        auto into = to.folder.make(files::kKeptFolder);
        if (!into) into = to.folder.below(files::kKeptFolder);
        bring(to, *into, from.folder.below(files::kKeptFolder), file.name, [](const std::string&) {});
        note(into->path_of(file.name), source, why);
    }
    if (!damaged()) return;
    if (to.folder.has(name) && are_same(from.folder, to.folder, name))
        fail("what it refers to is damaged, and not this image");
    bring(to, to.folder, from.folder, name,
          [&](const std::string& unfinished) { copies_.check(image::Place(to.folder, unfinished), entry); });
    note(to.folder.path_of(name), source, why);
}

void Repair::from_parity(const Shelf& to, const store::ImageEntry& entry, const std::string& why) {
    for (const std::string& made :
         parity_.rebuild(to, entry.rank, [&](const files::Folder&folder, const std::string&unfinished) {
             copies_.check(image::Place(folder, unfinished), entry);
         }))
        note(to.folder.path_of(made), "parity", why);
}

// Whole and as it is there, or not at all.
void Repair::bring(const Shelf& to, const files::Folder& into, const files::Folder& from,
                   const std::string& name, const std::function<void(const std::string& unfinished)>& check) {
    const uint64_t bytes = from.size_of(name).value_or(0);
    if (to.place)
        if (const uint64_t room = room_in(to.place->medium, to.folder); room < bytes)
            fail("{} {} for {}", human_size(room), to.in_memory() ? "of memory" : "free", human_size(bytes));
    // A name of its own: another one may be at work.
    const std::string unfinished = fmt::format("{}{}-{}", store::kOnItsWay, name, ::getpid());
    into.remove_file(unfinished);
    try {
        image::Checksum sum;
        {
            const Fd in = from.read(name), out = into.create(unfinished);
            sum = copy_content(in.get(), out.get(), from.path_of(name), into.path_of(unfinished));
            if (!to.in_memory()) sync_file(out.get(), into.path_of(unfinished));
        }
        if (into.size_of(unfinished) != bytes || image::checksum_of_file(into, unfinished, bytes) != sum)
            fail("{} is not what was written to it", into.path_of(unfinished));
        check(unfinished);
        check_mine(to);
        if (!into.rename(unfinished, name)) fail_errno("cannot rename {}", into.path_of(unfinished));
        if (!to.in_memory()) into.sync();
    } catch (...) {
        into.remove_file(unfinished);
        throw;
    }
}

}  // namespace fermata::level
