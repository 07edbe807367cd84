// The node daemon: merges what the ranks of one node say, passes down what the root says, and ends what is
// left of them when the job is over. One per job and node; single-threaded, one poll loop.
//
// Other processes of the same user can reach its socket. A process that has not said the job's id is a
// stranger: there are few places for those, for a short time, nobody waits for them, and none of them is
// killed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "clock/tree.h"
#include "noded/branch.h"
#include "noded/crowd.h"
#include "noded/memory_level.h"
#include "noded/neighbours.h"
#include "noded/ranks.h"
#include "tree/agent_link.h"
#include "tree/channel.h"
#include "tree/joined.h"
#include "tree/run_dir.h"
#include "tree/shared_names.h"

namespace fermata::noded {

class Node {
  public:
    Node(tree::AgentConfig config, tree::RunDir dir, Fd listener, tree::Channel root, const wire::Key& key);
    // Ranks will be its children: it is daemon `number` of its launcher's list.
    void start_ranks_as(uint32_t number);
    // Serves until the job is gone from this node.
    void run();

  private:
    struct Agent {
        explicit Agent(tree::Channel c) : channel(std::move(c)) {}
        tree::Channel channel;
        bool ours = false;  // has said the job's id
        int64_t since = 0;  // ms
        int id = 0;         // of this connection, for the tally
        int rank = -1;      // -1: has not said Hello yet
        int called = -1;    // what the launcher calls it, until then
        int loads = -1;     // a restarted rank: which one it is, before it has said Hello
        int child = -1;     // of the clock in this epoch
        pid_t pid = 0;
        Fd process;               // pidfd: ends this process and no other that got its number
        bool rebuilding = false;  // restarted, and has not said Restored yet
        bool diagnosed = false;   // has answered the newest Query
        int32_t code = -1;        // with which it has said to leave
        int follows = -1;         // a copy: of this rank
        bool spoken_to = false;   // in this turn
        bool writes = false;      // waits until it can be written to
    };

    void turn(int timeout_ms);
    void say(Agent& agent, const wire::Message& message);
    void spoke(Agent& agent);
    void write_to_agents();
    void serve_agents();
    void drop_who_left();
    void forget(Agent& agent);
    void plays(Agent& agent, int rank);
    void accept_agents();
    bool make_room();
    bool introduce(Agent& agent, const std::string& job_id);
    bool nobody_here() const;
    void from_agent(Agent& agent, wire::Message message);
    void answer_of(Agent& agent, wire::Message message);
    bool from_stranger(Agent& agent, const wire::Message& message);
    wire::Message checked(const Agent& agent, wire::Message message) const;
    void diagnosis(Agent& agent, const wire::Diagnosis& said);
    void from_root(const wire::Message& message);
    void renew(const wire::Renew& order);
    void refuse_renewal(const std::string& why);
    void moved(Agent& agent, const wire::Moved& moved);
    void stays(Agent& agent, const wire::Stays& message);
    void streams(Agent& agent, const wire::Streams& message);
    void stream_begins(Agent& agent, std::shared_ptr<transfer::StreamMemory> memory);
    void start_copy(const wire::StartCopy& order);
    void serve_copies();
    void no_copy_here(int32_t rank, const std::string& why);
    // node_copies.cpp
    void promoted(Rank rank, pid_t pid, const std::string& how);
    void forget_speaker(Rank rank);
    bool speaks_for(Rank rank);
    void take_place(const wire::TakePlace& order);
    void leader_died(Rank rank, pid_t pid, int status);
    void copy_gone(const wire::CopyGone& said);
    void say_who_lives(const wire::AskLiving& question);
    void hear_who_lives(const wire::Living& said);
    void copy_ended(Rank rank, pid_t pid, const std::string& how);
    void no_copy(const Agent& agent, std::string why);
    void end_copies(const wire::EndCopies& order);
    void inject(const wire::Inject& order);
    Agent* speaker_of(Rank rank);
    void from_below(int child, const wire::Message& message);
    void begin_clock();
    void drop(size_t index);
    void hand_out(const wire::Places& places);
    void hand_out(const wire::LogOrders& all);
    MemoryLevel::Ranks ranks_here(const wire::Message& message) const;
    void leave_directory();
    void broadcast(const wire::Message& message);
    wire::Message filled(wire::Message message) const;
    void refuse_clock(const std::string& from);
    void pump_clock();
    void hand_up();
    void answer_query(bool late);
    void kill_ranks();
    void signal_ranks(int signal);
    uint32_t ranks() const { return here_.ranks; }

    tree::AgentConfig config_;
    const wire::Key key_;
    tree::RunDir dir_;
    tree::SharedNames shared_names_;
    Fd listener_;
    Branch branch_;
    std::unique_ptr<Ranks> ranks_;  // null: a site's launcher starts them
    Neighbours neighbours_;
    transfer::Streams streams_;  // of ranks here, to copies on other nodes
    MemoryLevel memory_;
    std::vector<wire::Cloned> cloned_;  // said once the root has heard all that they wrote before
    std::vector<std::unique_ptr<Agent>> agents_;
    struct {
        Crowd crowd;
        std::vector<Agent*> spoken_to;    // in this turn, and not written to yet
        uint32_t ranks = 0;               // agents that have said Hello
        bool somebody_left = false;       // an agent's connection has ended
        int64_t strangers_looked_at = 0;  // ms
    } here_;                              // of the agents
    std::vector<wire::Hello> joined_;     // not yet told to the root
    std::unique_ptr<clock::Node> clock_;  // of this epoch
    std::map<int, size_t> clock_child_;   // daemon right below -> child of clock_
    int next_id_ = 0;
    bool ending_ = false;    // ranks may leave: finalized, stopped or killed
    int64_t killed_ = 0;     // ms: when; 0 = not
    bool starters_ = false;  // a rank of this node began as a script
    int64_t query_end_ = 0;  // 0 = no query open
    std::set<int> asked_;    // daemons below that have not answered it
    std::string diagnosis_;
    uint32_t diagnosed_ = 0;
    wire::Diagnosis below_;                    // what daemons below have answered, not yet handed up
    std::map<int, wire::Gone> perhaps_gone_;   // ranks whose copies may take their places
    std::map<int, std::string> copies_lines_;  // the last that copies have said, by their ranks
    int64_t closed_til_ = 0;                   // ms: before that, nobody is let in
};

}  // namespace fermata::noded
