#include "metrics/metrics.h"

#include <time.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace fermata::metrics {
namespace {

constexpr int64_t kEveryMs = 10'000;

int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

Metrics::Metrics(const std::string& path) {
    auto [directory, name] = files::split_path(files::absolute_path(path));
    folder_ = files::Folder::at(directory);
    name_ = name;
    written_ = now_ms();
    folder_.publish(name_, "# A job of Fermata starts.\n");
}

void Metrics::try_to_write(int64_t now) noexcept try {
    written_ = now;
    folder_.publish(name_, numbers_.text(now));
    said_ = false;
} catch (const Error& error) {
    if (!std::exchange(said_, true))
        say(fmt::format("{}: --metrics has old numbers meanwhile, the job does not mind", error.what()));
} catch (...) {  // no memory
}

void Metrics::hear(const journal::Event& event) noexcept try {
    numbers_.hear(event);
    // Phases come in rows, before the checkpoint that they belong to.
    if (event.kind != journal::Kind::phase && event.kind != journal::Kind::request &&
        event.kind != journal::Kind::ranks)
        try_to_write(now_ms());
} catch (...) {  // no memory
}

void Metrics::turn() noexcept {
    const int64_t now = now_ms();
    if (now - written_ >= kEveryMs || now < written_) try_to_write(now);
}

}  // namespace fermata::metrics
