// The state of the log in this room: the machine and which requests of the front its numbers are.
#pragma once

#include <optional>

#include "front/logged/log.h"
#include "front/logged/ring.h"
#include "front/logged/spill_files.h"

namespace fermata::front::logged {

inline replay::RequestNo number_of(const RequestObject* r) noexcept {
    return static_cast<replay::RequestNo>(r->posted);
}
inline replay::Uid uid_of(const CommObject& comm) noexcept { return static_cast<replay::Uid>(comm.uid); }
inline Rank rank_of(int32_t world) noexcept { return Rank(static_cast<uint32_t>(world)); }
inline replay::Tag tag_of(int32_t tag) noexcept { return static_cast<replay::Tag>(tag); }

// Ends the job when another thread is in a call of the log, too: nothing here is made for two at once.
class OneThread {
  public:
    explicit OneThread(const Call& call) noexcept
        : before_(__atomic_exchange_n(&inside_, call.record(), __ATOMIC_RELAXED)) {
        if (__builtin_expect(before_ != nullptr && before_ != call.record(), 0))
            refuse("MPI calls of two threads at once (MPI_Init_thread has provided MPI_THREAD_SERIALIZED)");
    }
    ~OneThread() { __atomic_store_n(&inside_, before_, __ATOMIC_RELAXED); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

  private:
    static inline split::ThreadRecord* inside_ = nullptr;
    split::ThreadRecord* before_;
};

// A part in a collective that the program was told: others may need it still.
struct Kept {
    replay::Uid comm;
    replay::Instance instance;
    Part* part;
    CommObject* on;  // holds a reference
};
// One that the library works on now.
struct Debt {
    replay::Uid comm;
    replay::Instance instance;
    mpi::RealRequest real;
};
// A message that the library sends once more from the log.
struct Again {
    replay::Channel channel;
    replay::MessageNo number;
    mpi::RealRequest real;
};

// A record on its way to another node: where it ends in the ring, and in the stream.
struct OnWay {
    uint64_t end;
    replay::Position position;
};

// The bound of the log's memory (room.cpp).
struct Bound {
    uint64_t patience = 50'000'000;  // ns for receipts, once the log is full; shorter where none come
    uint64_t ask_next = 0;           // when others may be asked again
    bool failed = false;
    bool said = false, said_failed = false;
    const char* place = "";  // of its files; lower half's string
};

// An operation that the library says it is through with, though it has lost connections since: nobody knows
// whether that is so (failing.cpp).
struct Held {
    RequestObject* request;
    mpi::Status status;
};

// A call that the library has failed, though nobody made a mistake (failing.cpp).
struct Failing {
    uint64_t since = 0;  // ns; 0: there is none
    const char* call = "";
    int rc = 0;
};

struct Log {
    explicit Log(const replay::Buffers& buffers) noexcept : machine(own_rank(), buffers, replay::Options{}) {}

    replay::Machine machine;
    Vec<RequestObject*> open;           // those that the machine has numbered and nobody was told, ascending
    RequestObject* starting = nullptr;  // gets its number now
    Vec<RequestObject*> left;           // freed by the program: the library works on them still
    Vec<Kept> kept;
    Vec<Debt> debts;
    Vec<Again> again;
    replay::Orders orders{};
    bool ordered = false;
    bool loaded = false;   // from an image, to follow
    Ring* ring = nullptr;  // of the copy that follows this one, or of the leader that it follows
    Vec<OnWay> on_way{};   // ascending
    std::optional<replay::Record> heard{};  // taken out of it, not applied yet
    uint64_t consumed = 0;                  // calls that have told of messages since the last receipts
    uint64_t consumed_bytes = 0;            // ... of so many bytes
    bool asked = false;                     // somebody waits for receipts
    Failing failing{};
    Vec<Held> held;        // in the order in which the library gave them back
    uint32_t doubted = 0;  // lost connections of which the agent was told
    SpillFiles files;
    Bound bound;
    uint64_t told = 0, words = 0;  // calls, words of others: for the pace of receipts
    uint32_t refusals = 0;         // tests that have found nothing: for the pace of harvests
    Part* creating = nullptr;      // of the creation that is under way
    CommObject* made = nullptr;    // by it, once told
};
constexpr uint32_t kHarvestEvery = 64;  // turns of a wait, tests that find nothing
Log& the_log() noexcept;
inline replay::Machine& machine() noexcept { return the_log().machine; }

RequestObject* find(replay::RequestNo no) noexcept;
CommObject* find(replay::Uid uid) noexcept;
// A request's number is known now.
void enter_open(RequestObject* r, replay::RequestNo no) noexcept;
// The rank in the communicator of a process.
int rank_in(const CommObject& comm, Rank rank) noexcept;

// ---- the library

// Hands a send or a receive to the library, which may fail it; and gives an error class.
void hand_to_library(RequestObject* r) noexcept;
int issue_message(RequestObject* r) noexcept;
// A collective, in the form that its part says.
int issue_call(RequestObject* r) noexcept;
// Asks the library once; true: the machine knows something new.
bool look_at(replay::RequestNo no) noexcept;
// The library is through with it; with a collective. False: it has failed it, or may have.
bool note_ended(RequestObject* r, const mpi::Status& status, int rc) noexcept;
void accept(RequestObject* r, const mpi::Status& status, int rc) noexcept;
void call_ended(RequestObject* r, int rc) noexcept;

// ---- failing.cpp

// True: it is not the program's mistake. The operation is open still: a new library gets it.
bool library_fails(const char* call, int rc) noexcept;
// The library has lost connections, and nobody has said yet that all ranks live. The agent sees to it that
// this ends.
bool is_in_doubt() noexcept;
// Takes what the library has given back: at once, or when the doubt is over; false: not now.
bool believe(RequestObject* r, const mpi::Status& status) noexcept;
void believe_held() noexcept;
void forget_held(const RequestObject* r) noexcept;
// Ends the job when none comes.
void see_whether_it_was_replaced() noexcept;

// ---- forms on bytes (redo.cpp)

int issue_on_bytes(Part& part, const CommObject& comm, const replay::Bytes& result,
                   mpi::RealRequest* real) noexcept;
// True of a collective that goes to the library in that form now.
bool goes_on_bytes(const Part& part) noexcept;
// Debts.
void owe(const replay::Pay& pay) noexcept;

// ---- creation.cpp

// Learns, from what all members have asked for, which communicator the rank is in.
void made_by_plan(RequestObject* r) noexcept;
// A communicator of such members, which has no real one yet.
CommObject* with_members(const replay::Vec<Rank>& ranks) noexcept;
void forget_made(Part& part) noexcept;
replay::Made made_of(const RequestObject* r) noexcept;

// ---- waits.cpp

// One round of a wait: a stop point, progress, the turn of others.
class Rounds {
  public:
    explicit Rounds(Call& call) noexcept : call_(call) {}
    void next() noexcept;
    uint32_t turns() const noexcept { return turns_; }

  private:
    Call& call_;
    uint32_t turns_ = 0;
};
// May the request be told now? Asks the library.
bool ready(RequestObject* r) noexcept;
// Names receives that the library has completed, in a record of their own: their senders may wait to hear
// that a message was taken, while this rank waits for them (MPI-4.0, 3.4, synchronous mode).
void harvest() noexcept;
// The program hears of it now, by one record.
void tell(const replay::Outcome& outcome) noexcept;
// Settles what a call tells the program: in a leader as `decide` finds it (nothing: not yet), in a copy as
// its leader was told. `requests`: those that may be told.
template <typename Decide>
replay::Outcome resolve(Call& call, replay::CallKind kind, RequestObject* const* requests, int count,
                        const Decide& decide) noexcept;
void close_told(const replay::Outcome& outcome, RequestObject* const* requests, int count) noexcept;
void until_may_send(Call& call) noexcept;
void until_may_call(Call& call) noexcept;

// ---- follow.cpp

bool is_live() noexcept;
// The record of a call goes to the copy, if there is one.
void publish(const replay::Record& record) noexcept;
// Asks how much of the stream has reached the copy's node.
void hear_what_is_stable() noexcept;
// A copy's call: what its leader was told; nothing: not yet, or this one is live now.
std::optional<replay::Outcome> follow(replay::CallKind kind) noexcept;
// The next record of the stream, not taken; null: it has not come.
const replay::Record* look_ahead() noexcept;
// Clocks are told to the copy from now on, or heard from the rank (recorded.cpp).
void listen_to_clocks() noexcept;
// A copy whose leader is gone is live once it has heard all.
void see_whether_stream_ended() noexcept;

// ---- recovery.cpp

void act(const replay::Action& action) noexcept;
void forget_library(Log& log) noexcept;
void begin_before_init() noexcept;

// ---- room.cpp

// Before the log takes so many bytes: waits a moment for receipts (and harvests), then spills.
void make_room(uint64_t bytes, bool harvests) noexcept;
void make_room_for(const replay::Outcome& outcome) noexcept;
// Without a wait.
void keep_within_bound() noexcept;
void note_log_use() noexcept;
// Before an action that needs the entry.
void bring_back(const replay::SendLogged& what) noexcept;
void bring_back(const replay::CallLogged& what) noexcept;
void close_spill_files() noexcept;
void spill_anew() noexcept;

// ---- receipts.cpp

void exchange_receipts() noexcept;
// Synchronous senders wait for receipts: before a call that may wait for them, and in each wait now and then.
void say_what_was_consumed(uint32_t turn) noexcept;
// Words of other ranks on what they need no more: a copy hears them by its leader's stream.
struct Receipts {
    enum class Word : uint64_t { receipt, told, everywhere, ask };
    struct Line {
        Word word;
        uint64_t comm;
        int64_t tag;
        uint64_t count, taken;  // of calls: all up to `count`
    };
    static void copy_hears(const Line& line, Rank from) noexcept;  // follow.cpp
    static void hear_as_copy(const Line& line, Rank from) noexcept;
    // Asks the ranks that can shorten this one's log for their words; how many these are.
    static size_t ask() noexcept;
};
void forget_old_parts() noexcept;

template <typename Decide>
replay::Outcome resolve(Call& call, replay::CallKind kind, RequestObject* const* requests, int count,
                        const Decide& decide) noexcept {
    Rounds rounds(call);
    for (;;) {
        std::optional<replay::Outcome> outcome;
        if (is_live()) {
            outcome = decide();
            if (outcome ? !outcome->flag && ++the_log().refusals % kHarvestEvery == 0
                        : rounds.turns() % kHarvestEvery == kHarvestEvery / 2)
                harvest();
            if (outcome) make_room_for(*outcome);
            if (outcome) tell(*outcome);
        } else {
            outcome = follow(kind);
        }
        if (outcome) {
            close_told(*outcome, requests, count);
            return *outcome;
        }
        rounds.next();
    }
}

}  // namespace fermata::front::logged
