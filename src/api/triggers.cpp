#include "api/triggers.h"

#include <signal.h>

#include <atomic>

#include "base/clock.h"
#include "base/error.h"

namespace fermata::api {
namespace {

// Written by the handlers.
std::atomic<unsigned> usr1{0}, term{0};
struct sigaction before_usr1, before_term;

void hear(int signal) { (signal == SIGUSR1 ? usr1 : term).fetch_add(1, std::memory_order_relaxed); }

}  // namespace

Triggers::Triggers(const Options& options, const InJob& job)
    : options_(options), job_(job), opened_(monotonic_s()), last_(opened_) {
    if (!options.signals) return;
    struct sigaction action {};
    action.sa_handler = hear;
    action.sa_flags = SA_RESTART;
    if (::sigaction(SIGUSR1, &action, &before_usr1) != 0 || ::sigaction(SIGTERM, &action, &before_term) != 0)
        fail_errno("cannot hear signals");
    seen_ = usr1.load();
    term.store(0);
    hears_ = true;
}

Triggers::~Triggers() {
    if (!hears_) return;
    ::sigaction(SIGUSR1, &before_usr1, nullptr);
    ::sigaction(SIGTERM, &before_term, nullptr);
}

// Twice what the newest save took, and a fiftieth of the whole, are kept back.
bool Triggers::time_to_exit() const {
    if ((hears_ && term.load() > 0) || job_.wish().exit) return true;
    return options_.walltime > 0 && monotonic_s() - opened_ >= options_.walltime * 0.98 - 2 * cost_;
}

Triggers::Due Triggers::should_checkpoint(const Ranks& ranks) {
    Due due;
    if (ranks.first()) {
        const unsigned asked = usr1.load();
        const uint64_t wish = job_.wish().number;
        due.end = time_to_exit();
        due.save = (hears_ && asked != seen_) || (wish != 0 && wish != answered_) || due.end ||
                   (options_.interval > 0 && monotonic_s() - last_ >= options_.interval);
        seen_ = asked;
    }
    ranks.broadcast(due);
    end_ = due.end;
    return due;
}

bool Triggers::should_exit(const Ranks& ranks) {
    if (end_) return *end_;
    bool yes = ranks.first() && time_to_exit();
    ranks.broadcast(yes);
    return yes;
}

InJob::Wish Triggers::answer() {
    InJob::Wish wish = job_.wish();
    answered_ = wish.number;
    return wish;
}

void Triggers::saved(double seconds) {
    last_ = monotonic_s();
    if (seconds > 0) cost_ = seconds;
}

}  // namespace fermata::api
