// The collective clock above the ranks: nodes merge upwards and forward downwards, the root decides.
// noded::Node (src/noded) has a clock::Node, root::Root (src/root) a clock::Root, for each checkpoint a new
// one.
//
// Pure state machines with std containers for the node daemon and the job's root. They need what the wire
// gives: every channel is FIFO and loses nothing. A child is a rank's agent or another node: both speak the
// same messages, so trees of any depth are made of one class. Not thread-safe; one caller each.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "clock/messages.h"
#include "clock/types.h"

namespace fermata::clock {

using Bytes = std::vector<uint8_t>;
using ByteSpan = std::span<const uint8_t>;
using Runs = std::vector<Run>;  // part of a member list

// One communicator as several reports describe it.
struct Row {
    Instance target = 0;
    Instance least_obliged = UINT64_MAX;
    Instance least_entered = UINT64_MAX;
    uint32_t ranks = 0;
    uint32_t size = 0;
    std::set<std::vector<int32_t>> runs;  // parts of the member list: first, count, first, count ...

    // Every member has reported, all are obliged alike and nobody lags: it needs no target, since each
    // member's own snapshot is the target already. (Equal obligations matter: otherwise some member would
    // take its smaller one for the target and issue again, at restart, what others have been told is
    // complete.)
    bool settled() const { return ranks == size && least_entered >= target && least_obliged == target; }
};

// Reports of all children put together; shared by Node and Root.
class Merge {
  public:
    void begin(size_t children);
    // One part of one child's report. False: not acceptable.
    bool add(size_t child, Reader& r);
    bool complete() const { return missing_ == 0; }
    uint32_t flags() const { return flags_; }
    std::unordered_map<uint64_t, Row>& rows() { return rows_; }

  private:
    std::unordered_map<uint64_t, Row> rows_;
    std::vector<bool> done_;
    size_t missing_ = 0;
    uint32_t flags_ = 0;
};

// The newest demand of one rank from another: lets through what asks for more.
struct Demanded {
    uint64_t number = 0;
    Labels labels = 0;
    bool fresh(uint64_t n, Labels wanted);
};

// Lets a raise through once per instance (once per part of its member list, when it carries one).
class RaiseFilter {
  public:
    void clear() { seen_.clear(); }
    bool fresh(const Entry& e);  // also notes it
    // Targets and news that came from above (or went down).
    void note(Uid uid, Instance k, const std::set<std::vector<int32_t>>& parts = {});

  private:
    struct Seen {
        Instance instance = 0;
        std::set<std::vector<int32_t>> parts;
    };
    std::unordered_map<uint64_t, Seen> seen_;
};

// One node daemon. Feed it every clock message from its children and from its parent, send what it gives out.
class Node {
  public:
    explicit Node(size_t children) : children_(children) {}

    // False: the message was not acceptable (a bug or a stranger): give up the epoch. `error()` says why.
    bool from_child(size_t child, ByteSpan message);
    bool from_parent(ByteSpan message);
    // Next message for the parent, and for all children; false when there is none.
    bool next_up(Bytes* message);
    bool next_down(Bytes* message);
    const std::string& error() const { return error_; }

  private:
    bool refuse(const char* reason);
    void forward_report();
    void forward_targets(Reader& r, Header h);
    void forward_safe();

    size_t children_;
    Epoch epoch_ = 0;
    bool reported_ = false;
    Merge merge_;
    std::unordered_set<uint64_t> below_;  // uids some child has reported
    RaiseFilter raises_;
    std::map<std::pair<Rank, Rank>, Demanded> demands_;
    std::vector<int64_t> safe_;  // newest version each child was safe at, -1 = none
    Version version_ = 0;        // of the news forwarded
    int64_t safe_sent_ = -1;
    std::deque<Bytes> up_, down_;
    std::string error_;
};

struct RootOptions {
    // Nothing has moved for this long: something outside MPI (a lock, a file) may hold the job up. All parked
    // ranks get a short licence, and `fermata status` says who was waiting for what. The last resort; 0 =
    // never.
    uint64_t stuck_ns = 10'000'000'000;
    uint64_t licence_ns = 50'000'000;  // how long that licence lasts
    // Deliberate fault for the tests: take SAFE reports of any version.
    bool fault_any_version = false;
};

// The one root of a job.
class Root {
  public:
    enum class Phase { idle, request, converge, declared };

    explicit Root(size_t children, RootOptions options = {}) : options_(options), children_(children) {}

    // Begins an epoch (greater than all before): request. The ranks' gates close.
    void begin(Epoch epoch, uint64_t now_ns);
    bool from_child(size_t child, ByteSpan message, uint64_t now_ns);
    // Once every few milliseconds while converging.
    void poll(uint64_t now_ns);
    // Next message for all children; false when there is none. Call it after a batch of from_child: all news
    // of the batch travels in one message.
    bool next_down(Bytes* message);
    // The safe state is found. The FREEZE message for the ranks is in next_down; drain, save and resume are
    // the job's business, after which end() closes the epoch.
    bool declared() const { return phase_ == Phase::declared; }
    // Does this job send in synchronous mode? Known from `converge` on.
    bool synchronous_sends() const { return (merge_.flags() & kSynchronousSends) != 0; }
    // Over: committed, or given up. The job tells the ranks (UpperServices::resume).
    void end() { phase_ = Phase::idle; }

    Phase phase() const { return phase_; }
    Version version() const { return version_; }
    size_t waiting_for() const;  // children not yet safe at the newest version (or yet to report)
    bool waiting_for(size_t child) const;
    uint32_t last_resorts() const { return resorts_; }
    const std::string& error() const { return error_; }

    struct Counts {
        uint64_t in = 0, in_bytes = 0, out = 0, out_bytes = 0, raises = 0, demands = 0, licences = 0,
                 rows = 0;
    };
    const Counts& counts() const { return counts_; }

  private:
    struct Item {
        News what;
        Entry entry;
        std::vector<int32_t> runs;
        Rank from = 0, to = 0;
        uint64_t number = 0;
        Labels wanted = 0;
    };
    bool refuse(const char* reason);
    void send_targets();
    void send_news();
    void look_for_safe();
    void push(Bytes message);

    RootOptions options_;
    size_t children_;
    Phase phase_ = Phase::idle;
    Epoch epoch_ = 0;
    Merge merge_;
    std::unordered_map<uint64_t, Instance> targets_;
    RaiseFilter raises_;
    std::map<std::pair<Rank, Rank>, Demanded> channels_;
    std::vector<Item> news_;  // not yet sent
    Version version_ = 0;
    std::vector<int64_t> safe_;
    uint64_t changed_ns_ = 0, licence_since_ = 0, patience_ = 0;
    bool licence_out_ = false;
    uint32_t resorts_ = 0, credit_ = 0;
    std::deque<Bytes> down_;
    Counts counts_;
    std::string error_;
};

}  // namespace fermata::clock
