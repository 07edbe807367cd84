#include "cli/watch.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/text.h"
#include "journal/ranks.h"
#include "journal/reader.h"
#include "tree/channel.h"

namespace fermata::cli {
namespace {

constexpr size_t kNewest = 40;       // events to begin with
constexpr double kShortPhase = 0.5;  // seconds: the checkpoint's line is enough
constexpr int kLookUs = 100'000;
constexpr int64_t kGoneMs = 1000;  // nobody reachable, nothing new: it is over
constexpr double kNextLife = 30;   // seconds after its pause, for a supervisor to begin another life

bool shown(const journal::Event& event) {
    if (event.kind == journal::Kind::ranks) {
        const journal::RanksTook took = journal::ranks_took(event);
        const journal::RanksTook::Phase* longest = took.longest_wait();
        return longest != nullptr && longest->excess() >= kShortPhase;
    }
    return event.kind != journal::Kind::phase || journal::number_in(event, "seconds") >= kShortPhase;
}

void print(const journal::Event& event, bool as_json) {
    if (as_json) {
        std::fputs(journal::to_line(event).c_str(), stdout);
    } else if (shown(event)) {
        std::string when = local_time_text(static_cast<time_t>(event.time_ms / 1000));
        std::printf("%s  %s\n", when.c_str(), journal::sentence(event).c_str());
    }
    std::fflush(stdout);
}

}  // namespace

void watch(const std::string& ckpt_dir, uint64_t job, bool as_json, const std::function<bool()>& running) {
    journal::Follower follower(ckpt_dir);
    std::optional<journal::Event> last;
    for (int64_t heard = tree::now_ms();;) {
        for (const journal::Event& event : follower.more(kNewest)) {
            if (event.job != job) continue;
            print(event, as_json);
            last = event;
            heard = tree::now_ms();
        }
        const bool again = last && last->kind == journal::Kind::restart;
        const double patience = again ? journal::number_in(*last, "pause") + kNextLife : 0;
        if (running())
            heard = tree::now_ms();
        else if (tree::now_ms() - heard > kGoneMs + static_cast<int64_t>(patience * 1000))
            return;
        ::usleep(kLookUs);
    }
}

}  // namespace fermata::cli
