// A whole job in one thread: simulated MPI, application threads, agents, node daemons and root, all driven in
// random order from one seed. The clock classes are the production ones; everything else is a model.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clock/clock.h"
#include "clock/tree.h"
#include "program.h"

namespace fermata::clock::test {

struct Plan {
    int checkpoints = 3;
    bool early_return =
        true;       // broadcasts and reductions complete when MPI allows it, not when all have come
    int nodes = 1;  // node daemons between agents and root; 0 = none
    bool check_minimal = true;
    bool aborts = true, restarts = true;
    Protocol protocol = Protocol::cc_d;
    uint64_t demand_delay_ns = 20'000;
    // Per checkpoint. Where a guess about threads decides who goes on it takes luck, hence many steps: seeds
    // 288169 and 295462 need more than a million.
    uint64_t step_limit = 4'000'000;
    // Deliberate faults: each must be noticed by the checks below.
    bool fault_open_gate = false;    // no freeze between report and targets
    bool fault_any_version = false;  // SAFE reports without versions
    bool fault_no_demand = false;
    bool fault_reorder = false;  // channels to the root are not FIFO
    bool fault_park_at_exit = false;
    bool fault_count_at_start = false;  // non-blocking collectives oblige when started
};

// What one run showed.
struct Outcome {
    std::string fault;  // empty = all checks held
    int checkpoints = 0, aborted = 0, restarts = 0;
    uint64_t steps = 0;
    uint64_t extra = 0;  // collectives let through beyond the first targets
    uint64_t raises = 0, demands = 0, licences = 0;
};

class World {
  public:
    World(const Program& program, const Plan& plan, uint64_t seed);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Random execution with `plan.checkpoints` checkpoints at random moments; then on to the end of the
    // program.
    Outcome run();

  private:
    struct Message {
        int from, tag;
        bool sync;
        int send_thread;   // who waits for a synchronous send
        int send_request;  // -1 = blocking send
        uint64_t serial;
    };
    struct Posted {
        int from, tag, thread, request;
    };
    struct Process {
        RankClock* clock = nullptr;
        std::vector<Comm*> comms;
        std::deque<Message> arrived, queue;  // unexpected in MPI; pulled by Fermata
        std::vector<Posted> posted;
        std::vector<int> uncounted;            // sources of messages MPI has matched with posted receives
        std::map<int, int> flags;              // signals
        std::vector<uint64_t> begun, obliged;  // by comm: really begun, really owed
        std::vector<bool> freed;
        int inside = 0;
        bool resumed = true;
    };
    struct Call {  // a started collective
        int comm = -1;
        Instance k = 0;
        Flow flow = Flow::all;
        int root = -1;
    };
    struct Thread {
        int rank = 0, index = 0;
        size_t pc = 0;
        int phase = 0;
        Instance k = 0;
        GateSite gate;
        WaitSite wait;
        std::map<int, Call> calls;  // by request; anonymous ones by negative numbers
        int anonymous = 0;
        std::map<int, bool> requests;  // sends and receives: complete?
        bool counted = false;
        uint64_t done_ops = 0;  // over all rounds of a loop
    };
    struct Link {
        std::deque<Bytes> up, down;
    };

    uint64_t pick(uint64_t below) { return random_() % below; }
    bool chance(uint64_t one_in) { return pick(one_in) == 0; }
    void fail(const std::string& what);
    uint64_t uid(int comm) const { return uint64_t(comm) + 1; }

    void make_tree();
    void make_agents_links();
    bool step();
    void step_thread(Thread& t);
    bool finished(const Thread& t) const;
    const Op& op(const Thread& t) const { return program_.threads[size_t(t.index)].ops[t.pc]; }
    void next(Thread& t);
    bool pass_gate(Thread& t, Comm& c, Instance k, Gate kind, Verdict* verdict);
    void step_collective(Thread& t, const Op& o);
    void step_finish(Thread& t, const Op& o);
    static int request_of(const Thread& t, const Op& o);
    bool complete(const Process& p, int rank, const Call& call) const;
    bool try_match(Process& p, Thread& t, int from, int tag);
    void match_arrival(Process& p, int rank, const Message& m);
    void send_done(const Message& m, int from_rank);
    void pull(int rank);
    void wait_for_message(Thread& t, int from, int tag);
    void deliver(int from, int to);
    void step_agent(int rank);
    bool step_links();
    void drain_node(size_t node);
    void send_down(const Bytes& message, size_t child);
    void begin_checkpoint();
    void end_checkpoint(bool restart);
    bool all_frozen() const;
    void check_declared();
    void check_frozen();
    void drain();
    void note_snapshot(int rank);
    void closure();
    void check_minimal(const Thread& t, int comm, Instance k);
    uint64_t progress_stamp() const;

    static void env_pull(void* self);
    static void env_nothing(void* self);
    static void env_fence(void* self);
    static void env_nap(void* self, std::atomic<uint32_t>*, uint32_t, uint32_t);

    struct Handle {
        World* world;
        int rank;
    };

    const Program& program_;
    Plan plan_;
    std::mt19937_64 random_;
    uint64_t now_ = 1;
    Outcome out_;

    std::vector<void*> memory_;
    std::vector<Handle> handles_;
    std::vector<Process> processes_;
    std::vector<Thread> threads_;
    std::map<std::pair<int, int>, std::deque<Message>> net_;
    uint64_t serial_ = 0;

    std::unique_ptr<Root> root_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<int> node_of_;      // by rank, -1 = the root itself
    std::vector<size_t> child_of_;  // by rank: index among its parent's children
    std::vector<Link> agent_links_, node_links_;

    enum class Stage { running, converging, freezing } stage_ = Stage::running;
    Epoch epoch_ = 0;
    bool in_fence_ = false;
    std::vector<int> speed_;  // by thread: one in so many steps
    // For the minimality check: where each thread was at its rank's snapshot, and how far it must go.
    bool minimal_ = false, closed_ = false;
    std::vector<bool> snapped_;
    std::vector<size_t> pc_at_snap_;
    std::vector<std::vector<Instance>> begun_at_snap_;
    std::vector<std::vector<uint64_t>> sent_at_snap_;
    std::vector<Instance> first_targets_;
    std::vector<size_t> must_reach_;
    std::vector<Instance> closure_target_;
};

}  // namespace fermata::clock::test
