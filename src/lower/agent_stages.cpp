#include "lower/agent_stages.h"

#include "base/invariant.h"

namespace fermata::lower {
namespace {

struct Row {
    Stage stage;
    Event event;
    Action action;
    Stage next;
};

using S = Stage;
using E = Event;
using A = Action;

// clang-format off
constexpr Row kRows[] = {
    {S::restoring,      E::restored,     A::rebuild,                   S::rebuilt},
    {S::restoring,      E::logs_first,   A::await_logs,                S::telling},
    {S::restoring,      E::daemon_lost,  A::end_before_go,             S::restoring},
    {S::restoring,      E::leave,        A::end_with_launcher,         S::restoring},
    {S::telling,        E::ask_log,      A::say_log,                   S::telling},
    {S::telling,        E::orders,       A::rebuild,                   S::rebuilt},
    {S::telling,        E::leave,        A::end_with_launcher,         S::telling},
    {S::telling,        E::daemon_lost,  A::end_before_go,             S::telling},
    {S::rebuilt,        E::go,           A::go,                        S::running},
    {S::rebuilt,        E::leave,        A::end_with_launcher,         S::rebuilt},
    {S::rebuilt,        E::daemon_lost,  A::end_before_go,             S::rebuilt},

    {S::running,        E::begin,        A::note_begin,                 S::asked},
    {S::running,        E::clock,        A::nothing,                   S::running},  // of one it has refused
    {S::running,        E::resume,       A::answer,                    S::running},  // told twice
    {S::running,        E::cancel,       A::answer,                    S::running},  // of one it has refused
    {S::running,        E::daemon_lost,  A::stay_alone,                S::alone},

    {S::asked,          E::clock,        A::keep_clock,                S::asked},
    {S::asked,          E::ready,        A::begin,                     S::converging},
    {S::asked,          E::at_once,      A::begin_at_once,             S::calming},
    {S::asked,          E::refused,      A::refuse,                    S::running},
    {S::asked,          E::cancel,       A::forget_begin_and_answer,   S::running},
    {S::asked,          E::daemon_lost,  A::stay_alone,                S::alone},

    {S::converging,     E::clock,        A::hear_clock,                S::converging},
    {S::converging,     E::freeze,       A::close,                     S::calming},
    {S::converging,     E::resume,       A::go_on,                     S::running},
    {S::converging,     E::cancel,       A::go_on,                     S::running},
    {S::converging,     E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::calming,        E::clock,        A::hear_clock,                S::calming},
    {S::calming,        E::take,         A::take,                      S::calming},
    {S::calming,        E::calm,         A::ask_to_stop,               S::stopping},
    {S::calming,        E::resume,       A::go_on,                     S::running},
    {S::calming,        E::cancel,       A::go_on,                     S::running},
    {S::calming,        E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::stopping,       E::clock,        A::hear_clock,                S::stopping},
    {S::stopping,       E::take,         A::take,                      S::stopping},
    {S::stopping,       E::stand,        A::say_frozen,                S::frozen},
    {S::stopping,       E::resume,       A::go_on,                     S::running},
    {S::stopping,       E::cancel,       A::go_on,                     S::running},
    {S::stopping,       E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::frozen,         E::clock,        A::hear_clock,                S::frozen},
    {S::frozen,         E::take,         A::take,                      S::frozen},
    {S::frozen,         E::drain,        A::drain,                     S::draining},
    {S::frozen,         E::ask_log,      A::say_log,                   S::frozen},
    {S::frozen,         E::orders,       A::keep_orders,               S::ordered},
    {S::frozen,         E::save,         A::save_alone,                S::capturing},
    {S::frozen,         E::resume,       A::go_on,                     S::running},
    {S::frozen,         E::cancel,       A::go_on,                     S::running},
    {S::frozen,         E::daemon_lost,  A::go_on_alone,               S::alone},

    // Nobody is needed for what follows: each rank makes its child for itself.
    {S::ordered,        E::save,         A::hop,                       S::capturing},
    {S::ordered,        E::resume,       A::go_on,                     S::running},
    {S::ordered,        E::cancel,       A::go_on,                     S::running},
    {S::ordered,        E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::draining,       E::clock,        A::hear_clock,                S::draining},
    {S::draining,       E::drain,        A::drain,                     S::draining},
    {S::draining,       E::save,         A::meet,                      S::meeting},
    {S::draining,       E::resume,       A::go_on,                     S::running},
    {S::draining,       E::cancel,       A::go_on,                     S::running},
    // Others may have been told to save, and wait for this rank's word.
    {S::draining,       E::daemon_lost,  A::stay_away_and_go_on_alone, S::alone},

    {S::meeting,        E::clock,        A::hear_clock,                S::meeting},
    {S::meeting,        E::met,          A::capture,                   S::capturing},
    {S::meeting,        E::away,         A::nothing,                   S::called_off},
    {S::meeting,        E::ended,        A::conclude,                  S::written},  // none could begin
    {S::meeting,        E::cancel,       A::nothing,                   S::given_up},
    {S::meeting,        E::daemon_lost,  A::nothing,                   S::meeting_alone},

    // Some are in the save and need this rank, whatever it has heard meanwhile.
    {S::given_up,       E::clock,        A::hear_clock,                S::given_up},
    {S::given_up,       E::begin,        A::note_begin,                 S::given_up_asked},
    {S::given_up,       E::met,          A::help_and_go_on,            S::running},
    {S::given_up,       E::away,         A::go_on,                     S::running},
    {S::given_up,       E::cancel,       A::nothing,                   S::given_up},
    {S::given_up,       E::daemon_lost,  A::nothing,                   S::meeting_alone},

    {S::given_up_asked, E::clock,        A::keep_clock,                S::given_up_asked},
    {S::given_up_asked, E::met,          A::help_and_go_on,            S::asked},
    {S::given_up_asked, E::away,         A::go_on,                     S::asked},
    {S::given_up_asked, E::cancel,       A::forget_begin,              S::given_up},
    {S::given_up_asked, E::daemon_lost,  A::forget_begin,              S::meeting_alone},

    // A rank that stayed away has lost its daemon, and the root with it: Cancel follows.
    {S::called_off,     E::clock,        A::hear_clock,                S::called_off},
    {S::called_off,     E::resume,       A::go_on,                     S::running},
    {S::called_off,     E::cancel,       A::go_on,                     S::running},
    {S::called_off,     E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::capturing,      E::sized,        A::say_size,                  S::placing},
    {S::capturing,      E::child_writes, A::nothing,                   S::writing},
    {S::capturing,      E::ended,        A::conclude,                  S::written},

    {S::placing,        E::clock,        A::hear_clock,                S::placing},
    {S::placing,        E::placed,       A::write,                     S::capturing},
    {S::placing,        E::cancel,       A::go_on,                     S::running},
    {S::placing,        E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::writing,        E::clock,        A::hear_clock,                S::writing},
    {S::writing,        E::ended,        A::conclude,                  S::written},
    {S::writing,        E::resume,       A::go_on_writing,             S::behind},
    {S::writing,        E::cancel,       A::go_on,                     S::running},
    {S::writing,        E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::written,        E::clock,        A::hear_clock,                S::written},
    {S::written,        E::resume,       A::go_on,                     S::running},
    {S::written,        E::cancel,       A::go_on,                     S::running},
    {S::written,        E::leave,        A::leave,                     S::leaving},
    {S::written,        E::daemon_lost,  A::go_on_alone,               S::alone},

    {S::behind,         E::clock,        A::nothing,                   S::behind},
    {S::behind,         E::ended,        A::conclude,                  S::running},
    {S::behind,         E::resume,       A::answer,                    S::behind},  // told twice
    {S::behind,         E::cancel,       A::drop_image,                S::running},
    {S::behind,         E::daemon_lost,  A::stay_alone,                S::alone},

    {S::leaving,        E::clock,        A::hear_clock,                S::leaving},
    // Anything the program did now would be done again after the restart.
    {S::leaving,        E::daemon_lost,  A::end_left,                  S::leaving},

    {S::meeting_alone,  E::met,          A::help_and_go_on_alone,      S::alone},
    {S::meeting_alone,  E::away,         A::go_on_alone,               S::alone},
};

constexpr uint32_t set_of(std::initializer_list<Stage> stages) {
    uint32_t set = 0;
    for (Stage stage : stages) set |= uint32_t{1} << static_cast<int>(stage);
    return set;
}
static_assert(kStages <= 32);

constexpr uint32_t kBeforeGo = set_of({S::restoring, S::telling, S::rebuilt});
constexpr uint32_t kLoading = set_of({S::restoring, S::rebuilt});
constexpr uint32_t kNoDaemon = set_of({S::meeting_alone, S::alone});
constexpr uint32_t kNoSave =
    set_of({S::running, S::asked, S::converging, S::calming, S::stopping});

struct Never {
    Event event;
    uint32_t stages;
    const char* why;
};

// Every pair without a row is here once (tests/unit/lower).
constexpr Never kNever[] = {
    {E::begin, kBeforeGo, "a checkpoint begins when every rank has been told to go"},
    {E::begin, set_of({S::asked, S::converging, S::calming, S::stopping, S::frozen, S::ordered, S::draining,
                       S::meeting, S::given_up_asked, S::called_off, S::placing, S::writing, S::written,
                       S::behind}),
     "the last checkpoint ends with Resume or Cancel, and with Saved of every rank, before the next begins"},
    {E::clock, kBeforeGo, "the clock speaks in checkpoints, which begin when every rank has been told to go"},
    {E::freeze, set_of({S::running, S::asked, S::given_up_asked}),
     "a rank that has not reported cannot be safe"},
    {E::freeze, kBeforeGo, "a checkpoint begins when every rank has been told to go"},
    {E::clock, set_of({S::ordered}), "nobody counts collectives in a job with a message log"},
    {E::freeze, set_of({S::ordered}), "with a message log ranks stand without being told again"},
    {E::freeze, set_of({S::calming, S::stopping, S::frozen, S::draining, S::meeting, S::given_up,
                        S::called_off, S::placing, S::writing, S::written, S::behind}),
     "the safe state is declared once"},
    {E::take, kBeforeGo | set_of({S::running, S::asked, S::converging, S::given_up_asked}),
     "every rank has closed before the root says Take"},
    {E::take, set_of({S::ordered, S::draining, S::meeting, S::given_up, S::called_off, S::placing, S::writing, S::written,
                      S::behind}),
     "Take comes before any rank is told to drain"},
    {E::drain, kBeforeGo | set_of({S::running, S::asked, S::converging, S::calming, S::stopping,
                                   S::given_up_asked}),
     "every rank stands before the root says Drain"},
    {E::drain, set_of({S::ordered}), "with a message log nothing is drained"},
    {E::ask_log, kLoading | set_of({S::running, S::asked, S::converging, S::calming, S::stopping,
                                     S::given_up_asked}),
     "the root asks ranks that stand, or whose images are loaded"},
    {E::ask_log, set_of({S::ordered, S::draining, S::meeting, S::given_up, S::called_off, S::placing,
                         S::writing, S::written, S::behind}),
     "the root asks before it says Save"},
    {E::orders, kLoading | set_of({S::running, S::asked, S::converging, S::calming, S::stopping,
                                    S::given_up_asked}),
     "every rank has said what its log counts before the root gives orders"},
    {E::orders, set_of({S::ordered, S::draining, S::meeting, S::given_up, S::called_off, S::placing,
                        S::writing, S::written, S::behind}),
     "orders come once, and to ranks that do not drain"},
    {E::drain, set_of({S::meeting, S::given_up, S::called_off, S::placing, S::writing, S::written,
                       S::behind}),
     "the drain is over before the root says Save"},
    {E::save, kBeforeGo | kNoSave | set_of({S::given_up_asked}),
     "every rank stands before the root says Save"},
    {E::save, set_of({S::meeting, S::given_up, S::called_off, S::placing, S::writing, S::written, S::behind}),
     "the root says Save once"},
    {E::placed, kBeforeGo | kNoSave | set_of({S::frozen, S::ordered, S::draining, S::meeting, S::given_up, S::given_up_asked,
                                              S::called_off}),
     "places are given when every rank has said its size"},
    {E::placed, set_of({S::writing, S::written, S::behind}),
     "a rank that has written had its place, or none"},
    {E::resume, kBeforeGo, "there is no checkpoint to be over"},
    {E::resume, set_of({S::asked, S::meeting, S::given_up, S::given_up_asked, S::placing}),
     "the root says Resume when every rank is captured; a checkpoint that is given up ends with Cancel"},
    {E::cancel, kBeforeGo, "there is no checkpoint to be given up"},
    {E::leave, kNoSave | set_of({S::frozen, S::ordered, S::draining, S::meeting, S::given_up, S::given_up_asked,
                                             S::called_off, S::placing, S::writing}),
     "every rank has saved before the root says Leave"},
    {E::leave, set_of({S::behind}), "no child writes where the job stops"},
    {E::go, set_of({S::restoring, S::telling}), "every rank has said Restored before the root says Go"},
    {E::go, kNoSave | set_of({S::frozen, S::ordered, S::draining, S::meeting, S::given_up, S::given_up_asked, S::called_off,
                              S::placing, S::writing, S::written, S::behind, S::leaving}),
     "the root says Go once, after a restart"},
    {E::begin, set_of({S::leaving}), "the job ends"},
    {E::freeze, set_of({S::leaving}), "the job ends"},
    {E::take, set_of({S::leaving}), "the job ends"},
    {E::drain, set_of({S::leaving}), "the job ends"},
    {E::ask_log, set_of({S::leaving}), "the job ends"},
    {E::orders, set_of({S::leaving}), "the job ends"},
    {E::save, set_of({S::leaving}), "the job ends"},
    {E::placed, set_of({S::leaving}), "the job ends"},
    {E::resume, set_of({S::leaving}), "the job ends"},
    {E::cancel, set_of({S::leaving}), "the generation is committed: it is not given up"},
    {E::leave, set_of({S::leaving}), "the root says Leave once"},
};

// Nobody speaks to a rank without a daemon, and the agent does not listen in the middle of a step.
constexpr bool from_tree(Event event) { return event <= E::daemon_lost; }

// Where the agent looks for what it finds out itself.
constexpr uint32_t looked_for_in(Event event) {
    switch (event) {
        case E::restored:
        case E::logs_first:
            return set_of({S::restoring});
        case E::ready:
        case E::at_once:
        case E::refused:
            return set_of({S::asked});
        case E::calm:
            return set_of({S::calming});
        case E::stand:
            return set_of({S::stopping});
        case E::met:
        case E::away:
            return set_of({S::meeting, S::given_up, S::given_up_asked, S::meeting_alone});
        case E::sized:
        case E::child_writes:
            return set_of({S::capturing});
        case E::ended:
            return set_of({S::meeting, S::capturing, S::writing, S::behind});
        default:
            return ~uint32_t{0};
    }
}

// Why no event of a kind comes in the stage; null: there is no such reason.
constexpr const char* why_elsewhere(Stage stage, Event event) {
    uint32_t here = set_of({stage});
    if (from_tree(event) && (kNoDaemon & here)) return "the daemon is gone: nobody speaks to this rank";
    if (from_tree(event) && stage == S::capturing) return "the agent does not listen in the middle of a step";
    if (!(looked_for_in(event) & here)) return "the agent does not look for it in this stage";
    return nullptr;
}

// Each pair is in one of both lists, and once.
constexpr bool each_pair_once() {
    for (int stage = 0; stage < kStages; ++stage)
        for (int event = 0; event < kEvents; ++event) {
            int rows = 0, nevers = 0;
            for (const Row& row : kRows)
                rows += row.stage == static_cast<Stage>(stage) && row.event == static_cast<Event>(event);
            for (const Never& never : kNever)
                nevers += never.event == static_cast<Event>(event) && (never.stages >> stage & 1);
            bool elsewhere = why_elsewhere(static_cast<Stage>(stage), static_cast<Event>(event)) != nullptr;
            if (rows + nevers + elsewhere != 1) return false;
        }
    return true;
}
static_assert(each_pair_once(),
              "a pair of stage and event is handled twice, or neither handled nor impossible");

constexpr StageFacts kFacts[kStages] = {
    // word, pace, in_checkpoint, at_rest, moves_library
    {"restoring",                     Pace::rest,    false, true,  false},
    {"telling its message log",       Pace::busy,    false, true,  true},
    {"rebuilt",                       Pace::busy,    false, true,  true},
    {"running",                       Pace::rest,    false, true,  false},
    {"asked",                         Pace::helpers, false, true,  false},
    {"converging",                    Pace::busy,    true,  false, false},
    {"calming",                       Pace::busy,    true,  false, false},
    {"stopping",                      Pace::busy,    true,  false, false},
    {"frozen",                        Pace::busy,    true,  false, false},
    {"ordered",                       Pace::busy,    true,  false, false},
    {"draining",                      Pace::busy,    true,  false, false},
    {"meeting",                       Pace::busy,    true,  false, true},
    {"given up in the meeting",       Pace::busy,    true,  false, true},
    {"given up, and asked",           Pace::busy,    true,  false, true},
    {"called off",                    Pace::busy,    true,  false, true},
    {"capturing",                     Pace::busy,    true,  false, true},
    {"placing",                       Pace::busy,    true,  false, true},
    {"writing",                       Pace::busy,    true,  false, true},
    {"written",                       Pace::busy,    true,  false, true},
    {"writing beside the program",    Pace::behind,  false, true,  false},
    {"leaving",                       Pace::busy,    true,  false, true},
    {"without a daemon, meeting",     Pace::alone,   false, false, true},
    {"without a daemon",              Pace::rest,    false, true,  false},
};
constexpr const char* kWords[kEvents] = {
    "Begin", "Clock", "Freeze", "Take", "Drain", "AskLog", "LogOrder", "Save", "Placed", "Resume", "Cancel", "Leave", "Go",
    "loss of the daemon", "restored", "logs first", "ready", "at once", "refused", "calm", "stand", "met", "away", "sized",
    "child writes", "ended",
};
// clang-format on

}  // namespace

std::optional<Step> step(Stage stage, Event event) {
    for (const Row& row : kRows)
        if (row.stage == stage && row.event == event) return Step{row.action, row.next};
    return {};
}

const char* why_never(Stage stage, Event event) {
    if (step(stage, event)) return nullptr;
    uint32_t here = set_of({stage});
    for (const Never& never : kNever)
        if (never.event == event && (never.stages & here)) return never.why;
    return why_elsewhere(stage, event);
}

const StageFacts& facts_of(Stage stage) {
    always(static_cast<int>(stage) < kStages, "a stage that the agent does not have");
    return kFacts[static_cast<int>(stage)];
}
bool is_meeting(Stage stage) { return (looked_for_in(Event::met) & set_of({stage})) != 0; }
const char* word_of(Event event) {
    always(static_cast<int>(event) < kEvents, "an event that the agent does not know");
    return kWords[static_cast<int>(event)];
}

}  // namespace fermata::lower
