#include "level/copier.h"

#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/error.h"
#include "base/invariant.h"
#include "files/kept.h"
#include "image/file_checksum.h"
#include "image/hash.h"
#include "level/image_check.h"
#include "level/kept_files.h"
#include "level/memory.h"
#include "store/store.h"

namespace fermata::level {
namespace {

constexpr size_t kPart = 4 << 20;

}  // namespace

void Copier::start(Order order, uint64_t bytes_per_second) {
    always(!busy(), "a copy to files that begins while one is under way");
    always(!order.to.empty() && order.number > 0, "a copy to files without a directory, or of no order");
    order_ = std::move(order);
    bytes_ = 0;
    throttle_.limit(bytes_per_second);
    work_.start([this] { return work(); });
}

Copier::Result Copier::work() {
    std::string error;
    try {
        for (auto& [generation, from] : order_.from) {
            const std::string directory = order_.to + "/" + generation.name();
            const files::Folder to = store::open_pending(directory, order_.job, generation.number());
            for (const std::string& name : from.names())
                if (auto rank = rank_of_image(name); rank && order_.ranks.count(rank->number()))
                    copy_image(generation, *rank, from, to);
        }
    } catch (const std::exception& why) {
        error = why.what();
    }
    return {order_.number, bytes_, error};
}

// With what belongs to it. It is compared when all of that has been copied: what is intact then was so when
// it was read. A repair may have put another file in its place meanwhile, so what was written is compared,
// too.
void Copier::copy_image(Generation generation, Rank rank, const files::Folder& from,
                        const files::Folder& to) {
    const std::string name = image::image_name(rank);
    std::set<std::string> texts;
    std::vector<KeptFile> kept;
    {
        const image::Reader reader(image::Place(from, name), order_.key.get());
        check_identity(reader, order_.job, generation, rank);
        for (const image::Reference& one : reader.references())
            if (one.kind == image::ReferenceKind::text && one.generation == generation.number())
                texts.insert(image::text_name(one.checksum));
        kept = named_kept_files(reader);
    }
    std::vector<Copied> copied;
    auto image = copy_file(from, name, to);
    if (!image) fail("{} is in the way", to.path_of(name));
    copied.push_back(std::move(*image));
    // Others have the same files: the first one writes them, and compares them; if that fails, the whole copy
    // does.
    for (const std::string& text : texts)
        if (auto done = copy_file(from, text, to)) copied.push_back(std::move(*done));
    if (!kept.empty()) {
        auto made = to.make(files::kKeptFolder);
        if (!made) made = to.below(files::kKeptFolder);
        const files::Folder source = from.below(files::kKeptFolder);
        for (const KeptFile& file : kept)
            if (auto done = copy_file(source, file.name, *made)) copied.push_back(std::move(*done));
    }
    const image::Reader reader(image::Place(from, name), order_.key.get());
    check_identity(reader, order_.job, generation, rank);
    check_content(reader, from, 1);  // ranks compute beside it
    for (const Copied& one : copied)
        if (one.from.size_of(one.name) != one.bytes ||
            image::checksum_of_file(one.from, one.name, one.bytes) != one.checksum)
            fail("{} has changed while it was copied", one.from.path_of(one.name));
}

// Copies a file; none: it is there already.
std::optional<Copier::Copied> Copier::copy_file(const files::Folder& from, const std::string& name,
                                                const files::Folder& to) {
    const Fd in = from.read(name);
    const std::optional<Fd> out = to.try_create(name);
    if (!out) return {};
    always(static_cast<bool>(*out), "a file that is copied to nowhere");
    Copied copied{from, name, 0, {}};
    image::Hash hash;
    auto buffer = std::make_unique<char[]>(kPart);
    for (;;) {
        if (given_up_) fail("copying {} was given up", to.path_of(name));
        const ssize_t n = ::read(in.get(), buffer.get(), kPart);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot read {}", from.path_of(name));
        if (n == 0) break;
        hash.add(buffer.get(), static_cast<size_t>(n));
        write_all(out->get(), buffer.get(), static_cast<size_t>(n), to.path_of(name));
        copied.bytes += static_cast<uint64_t>(n);
        bytes_ += static_cast<uint64_t>(n);
        throttle_.spend(static_cast<uint64_t>(n), [this] { return given_up_.load(); });
    }
    sync_file(out->get(), to.path_of(name));
    copied.checksum = hash.sum();
    return copied;
}

}  // namespace fermata::level
