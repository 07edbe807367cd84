#include "life/supervisor.h"

#include <signal.h>
#include <time.h>

#include <algorithm>

#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "files/folder.h"
#include "life/choose.h"
#include "life/progress.h"
#include "life/recovery.h"
#include "life/standby.h"
#include "tree/channel.h"

namespace fermata::life {
namespace {

// A signal to end that comes within so many whole seconds; 0 = none. All are blocked, by the root before.
int signal_within(double seconds) {
    sigset_t set = signal_set({SIGTERM, SIGINT, SIGHUP});
    timespec time{static_cast<time_t>(seconds), 0};
    return std::max(0, ::sigtimedwait(&set, nullptr, &time));
}

// One life, and how it went. Only the first one may fail to begin: what keeps a later one from it may pass.
Life live_once(const Submission& what, bool first, Standby* standby, Ended& ended) {
    Life life;
    life.began = local_time_text(::time(nullptr));
    life.from = what.from ? Generation(what.from->number) : Generation();
    const int64_t start = tree::now_ms();
    try {
        ended = live(what, standby);
    } catch (const Error& error) {
        if (first) throw;
        ended = {};
        ended.code = static_cast<int>(error.code());
        ended.why = error.what();
    }
    life.seconds = static_cast<double>(tree::now_ms() - start) / 1000;
    life.code = ended.code;
    life.why = ended.why;
    life.rank = ended.rank;
    // What was committed before is there as well.
    life.newest =
        std::max(ended.newest, life.from, [](Generation a, Generation b) { return a.number() < b.number(); });
    return life;
}

class Supervisor {
  public:
    explicit Supervisor(Submission what)
        : what_(std::move(what)),
          moved_(what_.options.moved),
          first_(what_.from ? Generation(what_.from->number) : Generation()),
          recovery_(what_.options.max_restarts, first_) {
        what_.began = tree::now_ms();
        what_.goes_on = [this](int code, int rank, Generation newest) {
            return goes_on_after(code, rank, newest);
        };
        what_.journal = std::make_shared<journal::Writer>(what_.ckpt_dir, what_.job_number);
        if (progress_wanted(what_.options.verbose))
            what_.journal->also_tell(
                [progress = Progress()](const journal::Event& event) mutable { progress.show(event); });
        if (what_.options.metrics.empty()) return;
        what_.metrics = std::make_shared<metrics::Metrics>(what_.options.metrics);
        what_.journal->also_tell(
            [metrics = what_.metrics](const journal::Event& event) { metrics->hear(event); });
    }

    int run() {
        if (what_.options.of_own.standby) standby_.emplace();
        for (bool first = true;; first = false) {
            what_.may_restart = recovery_.restarts() < what_.options.max_restarts;
            Ended ended;
            Life life = live_once(what_, first, standby_ ? &*standby_ : nullptr, ended);
            newest_ = std::max(newest_, life.newest,
                               [](Generation a, Generation b) { return a.number() < b.number(); });
            life.newest = newest_;
            note_own_state(ended, life);
            if (life.code == 0 || ended.asked_to || life.code == static_cast<int>(ExitCode::to_be_continued))
                return life.code;
            const Recovery::Next next = recovery_.after(life);
            if (next.what == Recovery::Next::What::give_up) return give_up(life, next.why);
            std::string why_not = next.what == Recovery::Next::What::anew
                                      ? begin_anew()
                                      : choose(next.what == Recovery::Next::What::earlier);
            if (!why_not.empty()) return give_up(life, why_not);
            // Its ranks are on the same nodes, and may not know yet.
            if (standby_ && ended.node_lost) standby_->dismiss();
            if (auto code = pause(life, next)) return *code;
            what_.again = true;
            // For good: each is asked before each life, and one that answers again is used again.
            for (std::string& host : ended.lost_nodes)
                if (std::find(what_.suspects.begin(), what_.suspects.end(), host) == what_.suspects.end())
                    what_.suspects.push_back(std::move(host));
        }
    }

  private:
    // What the program has saved itself counts from then on, until its processes are saved as a whole. A job
    // that was continued by `fermata restart` has no command that begins anew.
    void note_own_state(const Ended& ended, Life& life) {
        if (ended.newest) own_state_ = false;
        if (ended.own_newest || (ended.own_exists && !newest_)) own_state_ = true;
        life.saves_itself = own_state_ && !what_.parts.empty();
        life.saved_itself = life.saves_itself && ended.own_saved;
    }

    // As it will be decided once the life is over, as far as that can be known before.
    bool goes_on_after(int code, int rank, Generation newest) const {
        Life life;
        life.code = code;
        life.rank = rank;
        life.newest = std::max({newest_, newest, what_.from ? Generation(what_.from->number) : Generation()});
        life.saves_itself = own_state_ && !what_.parts.empty();
        return recovery_.goes_on_after(life);
    }

    // The next life is the program from its beginning.
    std::string begin_anew() {
        what_.from.reset();
        what_.candidates.clear();
        return {};
    }

    // From what the next life goes on: "", or why there is nothing.
    std::string choose(bool earlier) try {
        store::Store store = store::Store::for_reading(what_.ckpt_dir, what_.key);
        // An older one in the same directory may be another job's work.
        Candidates which{what_.job_number, true, false, {}};
        if (earlier) which.below = newest_.number();
        std::vector<store::GenerationInfo> list = choose_generation(store, SubmitOptions(), which);
        const store::GenerationInfo& next = list[0];
        // What was saved since the restart has the new places already.
        what_.options.moved = next.number > first_.number() ? std::vector<std::string>() : moved_;
        what_.go_on_from(std::move(list));
        return {};
    } catch (const Error& error) {
        return earlier ? choose(false) : fmt::format("it cannot be restarted: {}", error.what());
    }

    // None: the pause is over, and the job goes on.
    std::optional<int> pause(const Life& life, const Recovery::Next& next) {
        const Generation from = what_.from ? Generation(what_.from->number) : Generation();
        what_.journal->note(journal::Kind::restart, {{"number", recovery_.restarts()},
                                                     {"from", from.name()},
                                                     {"pause", next.pause},
                                                     {"why", life.why}});
        say(fmt::format("the job ended with {}{}; going on {}{}", life.code,
                        life.why.empty() ? "" : fmt::format(" ({})", life.why),
                        next.pause > 0 ? fmt::format("in {:.0f} s", next.pause) : "at once",
                        from && from.number() < newest_.number()
                            ? fmt::format(", the same having failed twice from {}", newest_.name())
                            : ""));
        if (int signal = signal_within(next.pause)) {
            bool to_be_continued = signal == SIGTERM || signal == SIGINT;
            say(fmt::format("stopped before it went on from {}{}", from ? from.name() : "its own state",
                            !to_be_continued ? ""
                            : from           ? ": `fermata restart` continues it"
                                             : ": the same command line continues it"));
            return to_be_continued ? static_cast<int>(ExitCode::to_be_continued) : 128 + signal;
        }
        ++what_.restarts;
        if (!what_.from) {
            say("the program is started anew, and restores the state that it saved itself (libfermata)");
            return {};
        }
        announce(*what_.from);
        what_.preferred_mpi = what_.from->manifest->mpi;
        return {};
    }

    int give_up(const Life& life, const std::string& why) {
        if (why.empty()) return life.code;  // nobody has asked for restarts
        what_.journal->note(journal::Kind::given_up, {{"why", why}, {"restarts", recovery_.restarts()}});
        say(fmt::format("the job ended with {}{}, and is given up: {}", life.code,
                        life.why.empty() ? "" : fmt::format(" ({})", life.why), why));
        for (const std::string& line : recovery_.report()) say(line);
        return life.code;
    }

    Submission what_;
    const std::vector<std::string> moved_;
    const Generation first_;
    Generation newest_;
    bool own_state_ = false;  // what the program saved itself is the newest there is
    Recovery recovery_;
    std::optional<Standby> standby_;
};

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

int supervise(Submission what) { return Supervisor(std::move(what)).run(); }

}  // namespace fermata::life
