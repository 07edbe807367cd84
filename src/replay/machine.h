// Machine: the message log of one rank, in the upper memory of its process. Leader and replica run the same
// code on it.
//
// A pure state machine: calls in, what to do comes out. No MPI, no I/O, no clock, no thread, no libc malloc,
// no exceptions. docs/internals/message-log.md explains the protocol and how wrappers call this; the rules
// that it names are those of rules.h.
#pragma once

#include <span>
#include <utility>

#include "replay/channels.h"
#include "replay/communicator.h"
#include "replay/digest.h"
#include "replay/requests.h"
#include "replay/stream.h"

namespace fermata::replay {

// The program's memory, which the machine does not know. All must be set.
struct Buffers {
    void* self;
    // Appends what a send carries, what a collective's member contributes.
    void (*contribution)(void* self, const Request&, Bytes*);
    // Appends what a receive or a collective has got.
    void (*arrived)(void* self, const Request&, Bytes*);
    // Puts it there: from the queue, or from the stream.
    void (*deliver)(void* self, const Request&, const Bytes&);
    // Says that the program is about to hear of it: status and handle are written now.
    void (*told)(void* self, const Request&);
};

struct Options {
    uint64_t log_bytes = uint64_t{256} << 20;  // in memory; beyond it entries are spilled
    Rules rules;
};

enum class Mode : uint8_t {
    live,    // calls go to the library
    follow,  // ... take what the leader's said
    play,    // promoted: the rest of the stream first
};

// A receiver's word on a channel: so many messages need not be kept, so many a receive has taken.
struct Receipt {
    Channel channel;
    MessageNo count, taken;
};

// Pulled by a drain, not asked for by the program yet.
struct Queued {
    Uid comm;
    Envelope from;
    Bytes bytes;
};

// Actions: what the new lower half is given, one after the other.
struct SendOpen {
    RequestNo request;
};
struct SendLogged {
    Channel channel;
    MessageNo number;
};
struct CallLogged {  // an entry of the log, no action
    Uid comm;
    Instance instance;
};
struct Post {
    RequestNo request;
};
struct Take {  // part in a collective
    RequestNo request;
    Way way;
    Rank from;  // of `from_result`
};
struct Pay {  // a debt: from the log, the result to nowhere
    Uid comm;
    Instance instance;
    Way way;
    Rank from;
};
using Action = std::variant<SendOpen, SendLogged, Post, Take, Pay>;

class Machine {
  public:
    Machine(Rank me, const Buffers& buffers, const Options& options);
    Machine(const Machine&) = default;  // as fork does it
    Machine& operator=(const Machine&) = default;

    // Makes a follower of the copy of a leader's memory.
    void follow();

    Rank me() const { return me_; }
    Mode mode() const { return mode_; }
    Epoch epoch() const { return epoch_; }
    const Stream& stream() const { return stream_; }
    const Rules& rules() const { return options_.rules; }
    void buffers(const Buffers& buffers) { buffers_ = buffers; }  // of a copy, in tests
    // MPI_COMM_WORLD, in MPI_Init.
    void world(Uid uid, std::span<const Rank> members);
    const Communicator* find(Uid uid) const { return const_cast<Machine*>(this)->comm(uid); }

    // ---- calls of the program: starts

    void enter() { ++call_; }  // each MPI call
    CallNo call() const { return call_; }
    // True once whatever led here is stable: nothing leaves the rank before.
    bool may_send() const;
    bool may_start_collective() const;
    bool may_finalize() const;
    // Gives it its number. `outside`: hand it to the library (in mode live), then say issued(); `complete`:
    // it needs none.
    const Request& start_send(const Channel& channel, bool synchronous);
    const Request& start_receive(const Pattern& pattern);
    // `way` is set in mode live unless the call passes.
    const Request& start_collective(Uid comm, const Arguments& arguments, std::optional<Take>* way);
    const Request* request(RequestNo no) const { return requests_.find(no); }
    // The input of a collective: kept apart, if its call overwrites it.
    void input_of(RequestNo no, Bytes* input) const;

    // ---- what the library says

    void issued(RequestNo no);
    void completed(RequestNo no, std::optional<Made> made = {});  // a send, a collective
    void received(RequestNo no, Envelope from);
    void sent_from_log(const Channel& channel, MessageNo number);  // such a send is complete
    void paid(Uid comm, Instance instance);

    // ---- calls of the program: ends

    // Which request keeps this one from being told (perhaps itself)? The caller asks the library for that
    // one: a Test says no if it is not complete, a wait goes on.
    std::optional<RequestNo> missing(RequestNo no) const;
    std::optional<RequestNo> missing_for_probe(Uid comm, const Envelope& found) const;
    const Queued* queued(const Pattern& pattern) const;
    // Bytes that must be spilled before so many more fit.
    uint64_t log_lacks(uint64_t bytes) const;
    // Until Go of the newest epoch nothing is told.
    bool may_tell() const { return went_ || !rules().have(Rule::nothing_before_go); }
    // The call's record is written before the call returns; without a copy nobody needs it.
    Record tell(Outcome outcome);
    // MPI_Request_free of a send that is not complete, local in both copies: it is logged now.
    void free_send(RequestNo no);
    bool can_harvest() const;
    Record harvest();

    // ---- a copy that follows or plays

    // Compares it with the present call. False: the copies have parted.
    bool fits(const Record& record, CallKind kind) const;
    // True: the call has its outcome. False: it was a harvest, and the call wants the next one.
    bool take(const Record& record);
    // True: this copy has handed other data to its library than the leader: they have parted.
    bool parted() const { return parted_; }

    // ---- receipts, bounds

    void copy(Copy copy);  // the leader has one, or has lost it
    void became_stable(Position up_to);
    // One for each channel: so much has been consumed for good.
    Vec<Receipt> receipts() const;
    // Those that may say something else than at the last call: programs that take a new tag for each message
    // have a channel for each.
    Vec<Receipt> news();
    size_t channels_heard() const { return in_.size(); }
    void receipt(const Receipt& receipt);
    bool wants(const Receipt& receipt) const;  // it says something new
    // What others may count on: a free only once nothing here is open on its communicator, or needed of its
    // log.
    ToldSet told_for_good(const Communicator& comm) const;
    void everywhere(Uid comm, const ToldSet& told);
    const LogUse& use() const { return use_; }
    void log_bytes(uint64_t bound) { options_.log_bytes = bound; }
    // Carried out by the caller: entries of the log that leave memory for so many bytes; the oldest messages,
    // then inputs of collectives.
    struct Spill {
        std::variant<SendLogged, CallLogged> what;
        uint64_t bytes;
    };
    Vec<Spill> to_spill(uint64_t bytes) const;
    // Ranks whose words would shorten the log.
    Vec<Rank> who_needs_the_log() const;
    void bytes_of(const Spill& what, Bytes* all) const;
    void spilled(const Spill& what, const Spilled& where);
    // Before an action that needs such an entry: its bytes are in memory again.
    void comes_back(const SendLogged& what, Bytes bytes);
    void comes_back(const CallLogged& what, Bytes bytes);
    // Places that are free now.
    Vec<Spilled> take_over() { return std::exchange(use_.over, {}); }
    const Logged* logged(const Channel& channel, MessageNo number);
    const LoggedCall* logged(Uid comm, Instance instance);
    bool logs_empty() const;

    // ---- drain

    void drained(RequestNo receive, Envelope from);
    void pulled(Uid comm, const Envelope& from, Bytes bytes);
    void drained_checkpoint();  // after all of these

    // ---- recovery

    // Counts of a process that stands still. `ring`: what a copy has not taken yet.
    Said said(std::span<const Record> ring) const;
    // Called in the new process. In mode live what the library is to be given; a copy that followed plays
    // from now on.
    Vec<Action> recover(const Orders& orders);
    void go(Epoch epoch) { went_ = went_ || epoch == epoch_; }
    bool went() const { return went_; }
    // A playing copy's stream has no more, and Go was said: it is live.
    Vec<Action> ring_ended();

  private:
    struct Promised {  // to open receives
        Channel channel;
        uint64_t messages = 0;
    };
    struct Pending {  // becomes stable with its record
        Position at;
        std::optional<Consumed> consumed;
        Uid comm;
        Instance instance;
    };

    Communicator* comm(Uid uid);
    void add_comm(const Made& made, Uid parent, Instance made_as);
    Incoming& incoming(Uid comm, const Envelope& from);
    Incoming& touch(const Channel& channel);
    // telling.cpp
    std::optional<RequestNo> closure(Uid comm, const Envelope& of, RequestNo before,
                                     Vec<RequestNo>* all) const;
    void name(Request& receive, Record* record);
    void name_drained(Record* record);
    static void count_item(Incoming& in);
    void count_items(const Record& record, Vec<CommCounts>* comms, ChannelTable<Incoming>* in) const;
    void finish(Request& request, Record* record);
    void digest(const Request& request);
    void log(const Send& send, const Request& request);
    void log(Communicator& on, const Collective& call, const Request& request);
    void commit(Record& record);
    // receipts.cpp
    const ToldSet& stable_told(const Communicator& comm) const;
    ChannelTable<Promised> promises() const;
    std::optional<Receipt> receipt_of(const Incoming& in, const ChannelTable<Promised>& open) const;
    bool is_settled(const Communicator& comm) const;
    bool owes(const Communicator& comm, Instance i) const;
    void cut(Communicator& comm);
    void cut(Outgoing& out) { out.cut(&use_); }
    const Logged* entry_of(const SendLogged& what) const;
    const LoggedCall* entry_of(const CallLogged& what) const;
    void forget_freed();
    // recovery.cpp
    void hear_who_has_forgotten();
    Vec<Action> resume();
    void resume_sends(Vec<Action>* actions);
    void resume_receives(Vec<Action>* actions);
    struct Numbered {
        Instance instance;
        Action action;
    };
    Vec<Numbered> debts(Communicator& comm);
    void resume_collectives(Communicator& comm, Vec<Action>* actions);
    std::optional<Take> way_now(const Communicator& on, const Request& request) const;

    Rank me_;
    Buffers buffers_;
    Options options_;
    Mode mode_ = Mode::live;
    Epoch epoch_{};
    bool went_ = true;  // Go of this epoch was said
    CallNo call_{};
    Ord ord_{};
    Requests requests_;
    ChannelTable<Outgoing> out_;
    ChannelTable<Incoming> in_;
    Vec<Channel> touched_;     // of `in_`
    bool all_touched_ = true;  // what receipts stand on is another
    LogUse use_;
    Vec<Communicator> comms_;
    Vec<Queued> queue_;
    Stream stream_;
    Digest digest_;
    bool parted_ = false;
    Vec<Pending> pending_;
    // Sets of communicators that a copy which follows has not made yet.
    struct Early {
        Uid comm;
        ToldSet everywhere;
    };
    Vec<Early> early_;
    Vec<Uid> remembered_;      // communicators that all members know, by the last exchange
    Vec<CommOrders> orphans_;  // rebuilt, and made here later: their plans are binding, too
};

}  // namespace fermata::replay
