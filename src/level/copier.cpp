#include "level/copier.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "files/kept.h"
#include "image/image.h"
#include "level/memory.h"
#include "store/store.h"

namespace fermata::level {
namespace {

constexpr size_t kPart = 4 << 20;
constexpr double kLongestNap = 0.05;  // s; so that a new limit is heard

}  // namespace

Copier::Copier() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!event_) fail_errno("cannot create an eventfd");
}

Copier::~Copier() {
    given_up_ = true;
    if (thread_.joinable()) thread_.join();
}

void Copier::start(Order order, uint64_t bytes_per_second) {
    order_ = std::move(order);
    result_ = {order_.number, 0, ""};
    limit_ = bytes_per_second;
    done_ = false;
    thread_ = std::thread([this] {
        work();
        done_ = true;
        const uint64_t one = 1;
        [[maybe_unused]] ssize_t n = ::write(event_.get(), &one, sizeof one);
    });
}

std::optional<Copier::Result> Copier::take() {
    if (!thread_.joinable() || !done_) return {};
    thread_.join();
    uint64_t count;
    [[maybe_unused]] ssize_t n = ::read(event_.get(), &count, sizeof count);
    return std::move(result_);
}

void Copier::work() try {
    for (auto& [generation, from] : order_.from) {
        const std::string directory = order_.to + "/" + generation.name();
        copy_generation(from, store::open_pending(directory, order_.job, generation.number()));
    }
} catch (const std::exception& error) {
    result_.error = error.what();
}

void Copier::copy_generation(const files::Folder& from, const files::Folder& to) {
    for (const std::string& name : from.names()) {
        if (rank_of_image(name)) copy_file(from, name, to, false);
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
        keep_to_limit(static_cast<uint64_t>(n));
    }
    sync_file(out->get(), to.path_of(name));
}

// After each part; a limit that changes counts from then on.
void Copier::keep_to_limit(uint64_t bytes) {
    result_.bytes += bytes;
    const double begin = monotonic_s();
    for (;;) {
        const uint64_t limit = limit_;
        if (limit == 0 || given_up_) return;
        const double left = begin + static_cast<double>(bytes) / static_cast<double>(limit) - monotonic_s();
        if (left <= 0) return;
        ::usleep(static_cast<useconds_t>(std::min(left, kLongestNap) * 1e6));
    }
}

}  // namespace fermata::level
