// The stages of a rank as its agent knows them, and what each event does in each stage. A pure table: no MPI,
// no I/O, no state. The agent (agent.h) looks a row up, enters the row's stage and does the row's action.
#pragma once

#include <cstdint>
#include <optional>

namespace fermata::lower {

enum class Stage : uint8_t {
    // A restart until it goes on.
    restoring,  // the main thread brings back memory, threads and process state
    telling,    // with a message log: it says its own, and stands until it has heard of the others'
    rebuilt,    // this rank has said whether its MPI objects are back, and stands until Go
    // Between checkpoints.
    running,
    asked,  // a checkpoint waits: for the front, for all memory, for helper commands to end
    // A checkpoint.
    converging,
    calming,   // frozen for new MPI calls; helper commands run on before the threads are stopped
    stopping,  // the threads have been asked to stand
    frozen,    // all threads stand
    ordered,   // with a message log: ... and the rank knows what a new lower half is to be given
    draining,
    meeting,         // told to save; stands until it knows whether all ranks were told
    given_up,        // Cancel came in the meeting, which must be over first
    given_up_asked,  // likewise, and the next checkpoint has been asked for
    called_off,      // some rank stayed away from the meeting: nobody saves; stands until Cancel
    capturing,       // within one step of the agent: what the image holds is being decided, or written
    placing,         // captured; stands until it knows its place in the file of all ranks
    writing,         // a child writes, the program stands
    written,         // has said Saved (good or not), stands
    behind,          // the program goes on, a child writes
    leaving,         // stands until the launcher ends it
    // The node daemon is gone: no more checkpoints.
    meeting_alone,  // ... in the meeting, which must be over first
    alone,
};
inline constexpr int kStages = static_cast<int>(Stage::alone) + 1;

enum class Event : uint8_t {
    // Told by the tree. Those of another epoch than the checkpoint's do not come here.
    begin,
    clock,
    freeze,
    take,
    drain,
    ask_log,  // with a message log: what this rank has to say
    orders,   // what the exchange of the message logs says
    save,
    placed,
    resume,
    cancel,
    leave,
    go,
    daemon_lost,
    // Found out by the agent.
    restored,      // the main thread has done its part of a restart
    logs_first,    // ... and other ranks' message logs have to be heard of
    ready,         // the checkpoint that was asked for can begin
    at_once,       // ... or the rank may stand where it is
    refused,       // it cannot be taken in the state the program is in
    calm,          // helper commands have ended
    stand,         // all threads stand
    met,           // the meeting is over: every rank saves
    away,          // the meeting is over: some rank does not
    sized,         // captured, and the image goes into the file of all ranks
    child_writes,  // captured, and a child writes it
    ended,         // nobody writes any more: the image is complete, or an error is noted
};
inline constexpr int kEvents = static_cast<int>(Event::ended) + 1;

enum class Action : uint8_t {
    nothing,
    // Restart.
    rebuild,
    await_logs,
    go,
    end_with_launcher,  // the restart is refused
    end_before_go,      // others may have been told to go on, and wait for this rank in vain
    // Asked for a checkpoint.
    note_begin,  // and look whether it can begin
    keep_clock,
    refuse,
    begin,
    begin_at_once,  // and close
    forget_begin,
    forget_begin_and_answer,
    // Taking part.
    hear_clock,
    close,
    take,
    ask_to_stop,
    say_frozen,
    drain,
    say_log,
    keep_orders,
    hop,
    save_alone,  // without a meeting: the library may be in any state
    meet,
    capture,
    say_size,
    write,
    conclude,
    leave,
    end_left,
    // Out of it.
    answer,         // Resumed: the program runs already
    go_on,          // what is left of the checkpoint is dropped
    go_on_writing,  // ... but for the child that writes
    drop_image,     // the program runs already
    help_and_go_on,
    // Out of it without a daemon.
    stay_alone,  // the program runs already
    go_on_alone,
    help_and_go_on_alone,
    stay_away_and_go_on_alone,
};

struct Step {
    Action action;
    Stage next;
};

// Says what the event does in the stage; nothing: it cannot come there (why_never() says why).
std::optional<Step> step(Stage stage, Event event);
// Why the event cannot come in the stage; null: it can.
const char* why_never(Stage stage, Event event);

// How often the agent looks by itself when nobody rings.
enum class Pace : uint8_t {
    rest,     // only to notice threads that have ended
    helpers,  // a checkpoint waits for helper commands to end
    behind,   // a child writes beside the program: memory may run short
    busy,     // threads ring for most events, not for all
    alone,    // all threads stand, and no checkpoint waits
};

struct StageFacts {
    const char* word;
    Pace pace;
    // The agent takes part in a checkpoint: the clock's messages go out, and it may have to be given up.
    bool in_checkpoint;
    // The program may be outside a checkpoint: threads that have ended are collected.
    bool at_rest;
    // Others may still do collectively what this rank has done its part of (rebuilding, files and windows
    // before a save): a message that the library has taken from this rank may need it to move (UCX while it
    // connects). No thread of the application is in the library then.
    bool moves_library;
};
const StageFacts& facts_of(Stage stage);
// True where a rank stands until all have met.
bool is_meeting(Stage stage);
const char* word_of(Event event);

}  // namespace fermata::lower
