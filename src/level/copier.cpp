#include "level/copier.h"

#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/error.h"
#include "files/kept.h"
#include "image/image.h"
#include "level/memory.h"
#include "store/store.h"

namespace fermata::level {
namespace {

constexpr size_t kPart = 4 << 20;

}  // namespace

void Copier::start(Order order, uint64_t bytes_per_second) {
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
            copy_generation(from, store::open_pending(directory, order_.job, generation.number()));
        }
    } catch (const std::exception& why) {
        error = why.what();
    }
    return {order_.number, bytes_, error};
}

void Copier::copy_generation(const files::Folder& from, const files::Folder& to) {
    for (const std::string& name : from.names()) {
        if (auto rank = rank_of_image(name); rank && order_.ranks.count(rank->number()))
            copy_file(from, name, to, false);
        if (image::is_text_name(name)) copy_file(from, name, to, true);
    }
    auto kept = from.find(files::kKeptFolder);
    if (!kept) return;
    auto made = to.make(files::kKeptFolder);
    if (!made) made = to.below(files::kKeptFolder);  // another node was faster
    for (const std::string& name : kept->names())
        if (files::is_kept_name(name)) copy_file(*kept, name, *made, true);
}

// `shared`: other nodes have the same file, and the first one writes it; if that fails, the whole copy does.
void Copier::copy_file(const files::Folder& from, const std::string& name, const files::Folder& to,
                       bool shared) {
    Fd in = from.read(name);
    std::optional<Fd> out = to.try_create(name);
    if (!out && shared) return;
    if (!out) fail("{} is in the way", to.path_of(name));
    auto buffer = std::make_unique<char[]>(kPart);
    for (;;) {
        if (given_up_) fail("copying {} was given up", to.path_of(name));
        const ssize_t n = ::read(in.get(), buffer.get(), kPart);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno("cannot read {}", from.path_of(name));
        if (n == 0) break;
        write_all(out->get(), buffer.get(), static_cast<size_t>(n), to.path_of(name));
        bytes_ += static_cast<uint64_t>(n);
        throttle_.spend(static_cast<uint64_t>(n), [this] { return given_up_.load(); });
    }
    sync_file(out->get(), to.path_of(name));
}

}  // namespace fermata::level
