#include "root/supervisor.h"

#include <signal.h>

#include <algorithm>

#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "files/folder.h"
#include "root/choose.h"

namespace fermata::root {
namespace {

// A signal to end that comes within so many whole seconds; 0 = none. All are blocked, by the root before.
int signal_within(double seconds) {
    sigset_t set = signal_set({SIGTERM, SIGINT, SIGHUP});
    timespec time{static_cast<time_t>(seconds), 0};
    return std::max(0, ::sigtimedwait(&set, nullptr, &time));
}

}  // namespace

void announce(const store::GenerationInfo& from) {
    const store::Manifest& m = *from.manifest;
    say(fmt::format("restarting from {} of {}: {} ranks, {}, saved {}", Generation(from.number).name(),
                    files::split_path(from.directory).first, m.images.size(), human_size(from.bytes()),
                    m.created));
    if (!m.starter.empty())
        say(fmt::format(
            "{} started the program and is not there any more: what it does after the program is not run",
            m.starter));
}

// A job that fails goes on from its newest generation, as often as the user allows.
int supervise(Submission what) {
    int left = what.options.max_restarts;
    const std::vector<std::string> moved = what.options.moved;
    const uint32_t first = what.from ? what.from->number : 0;
    for (double pause = 1;; pause = std::min(pause * 2, 300.0)) {
        auto [code, asked_to] = live(what);
        if (code == 0 || asked_to || code == static_cast<int>(ExitCode::to_be_continued) || left-- <= 0)
            return code;
        store::Store store = store::Store::for_reading(what.ckpt_dir, what.key);
        try {
            // An older one in the same directory may be another job's work.
            store::GenerationInfo next = choose_generation(store, {}, {what.job_number, true, false});
            // What was saved since the restart has the new places already.
            what.options.moved = next.number > first ? std::vector<std::string>() : moved;
            what.from = std::move(next);
        } catch (const Error& error) {
            say(fmt::format("the job ended with {} and cannot be restarted: {}", code, error.what()));
            return code;
        }
        say(fmt::format("the job ended with {}; going on in {:.0f} s", code, pause));
        if (int signal = signal_within(pause)) {
            say(fmt::format("stopped before it went on from {}{}", Generation(what.from->number).name(),
                            signal == SIGTERM ? ": `fermata restart` continues it" : ""));
            return signal == SIGTERM ? static_cast<int>(ExitCode::to_be_continued) : 128 + signal;
        }
        announce(*what.from);
        what.preferred_mpi = what.from->manifest->mpi;
        ++what.restarts;
    }
}

}  // namespace fermata::root
