// These messages travel between the root and node daemons that are the parents of their ranks (the launcher
// `own`): what is to be started, output and input, how ranks ended, and what MPI libraries exchange while
// they start. message.h has the rules of all messages.
//
// `node` is the daemon's number in the launcher's list, which stays with it whatever way its messages take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::wire {

struct RankRange {
    uint32_t first = 0, count = 0;
    template <class F>
    void each(F&& f) {
        f(first, count);
    }
};

// ---- downwards

// The next `nodes` * `ranks_per_node` ranks are on `nodes` nodes beginning with `first_node`, in turn.
struct LaunchBlock {
    uint32_t first_node = 0, nodes = 0, ranks_per_node = 0;
    template <class F>
    void each(F&& f) {
        f(first_node, nodes, ranks_per_node);
    }
};

// Ranks that run one program.
struct LaunchPart {
    uint32_t ranks = 0;
    std::vector<std::string> words;        // words[0] is a path
    std::string directory;                 // absolute; where they start
    std::vector<std::string> environment;  // NAME=VALUE, over that of the daemon
    template <class F>
    void each(F&& f) {
        f(ranks, words, directory, environment);
    }
};

// Tells all daemons the world to be started; each starts what is its own.
struct Launch {
    static constexpr uint16_t kType = 33;
    uint32_t epoch = 0;
    std::string mpi;    // "openmpi" or "mpich": what the ranks are served with
    std::string world;  // its name
    std::vector<LaunchBlock> blocks;
    std::vector<LaunchPart> parts;   // their ranks add up to the blocks'
    std::vector<std::string> hosts;  // by node
    uint32_t universe = 0;           // slots of the allocation
    bool bind = false;               // to a core each, where they are enough
    uint64_t window = 0;             // bytes of output that a daemon may have under way
    template <class F>
    void each(F&& f) {
        f(epoch, mpi, world, blocks, parts, hosts, universe, bind, window);
    }
};

// A host whose daemon is number `node` of the launcher's list.
struct HostToStart {
    uint32_t node = 0;
    std::string name;
    template <class F>
    void each(F&& f) {
        f(node, name);
    }
};

// Tells one daemon to start those of these hosts: `words`, the host's name, `command`.
struct StartDaemons {
    static constexpr uint16_t kType = 138;
    std::vector<std::string> words;  // ssh and its options
    std::string command;             // for the shell of the other host
    std::vector<HostToStart> hosts;
    template <class F>
    void each(F&& f) {
        f(words, command, hosts);
    }
};

// A signal for all ranks; `groups`: for all processes of theirs.
struct Signal {
    static constexpr uint16_t kType = 34;
    int32_t number = 0;
    bool groups = false;
    template <class F>
    void each(F&& f) {
        f(number, groups);
    }
};

// Standard input of rank 0, on this node.
struct Input {
    static constexpr uint16_t kType = 35;
    uint32_t node = 0;
    std::string text;
    bool end = false;
    template <class F>
    void each(F&& f) {
        f(node, text, end);
    }
};

// Tells how much of this node's output has been written: as much more may come.
struct OutputTaken {
    static constexpr uint16_t kType = 36;
    uint32_t node = 0;
    uint64_t bytes = 0;
    template <class F>
    void each(F&& f) {
        f(node, bytes);
    }
};

// ---- both ways

// A barrier of ranks that carries data: parts of nodes go up, the result goes down to all nodes
// (src/pmi/fence.h).
struct Fence {
    static constexpr uint16_t kType = 37;
    uint32_t epoch = 0;
    std::vector<RankRange> among;  // empty = the whole world
    uint32_t number = 0;
    uint32_t ranks = 0;
    uint32_t of = 0;
    std::string data;
    std::string fault;
    template <class F>
    void each(F&& f) {
        f(epoch, among, number, ranks, of, data, fault);
    }
};

// Asks directly for what a rank has published: up from the node `from`, down to the node that holds `rank`.
struct AskRank {
    static constexpr uint16_t kType = 38;
    uint32_t epoch = 0;
    uint32_t from = 0;
    uint32_t number = 0;
    uint32_t rank = 0;
    template <class F>
    void each(F&& f) {
        f(epoch, from, number, rank);
    }
};

// Its answer: up, and down to the node `to`.
struct RankAnswer {
    static constexpr uint16_t kType = 39;
    uint32_t epoch = 0;
    uint32_t to = 0;
    uint32_t number = 0;
    std::string data;
    std::string fault;
    template <class F>
    void each(F&& f) {
        f(epoch, to, number, data, fault);
    }
};

// ---- upwards

// The daemon of this node is there and can start ranks.
struct Ready {
    static constexpr uint16_t kType = 100;
    uint32_t node = 0;
    std::string host;
    uint32_t cores = 0;
    int32_t daemon = -1;  // as the root calls it: the sender puts it in
    template <class F>
    void each(F&& f) {
        f(node, host, cores, daemon);
    }
};

// The daemon of this node could not be started by who says this.
struct NotStarted {
    static constexpr uint16_t kType = 139;
    uint32_t node = 0;
    std::string why;
    template <class F>
    void each(F&& f) {
        f(node, why);
    }
};

// Whole lines of a rank, as far as it writes lines.
struct Output {
    static constexpr uint16_t kType = 101;
    uint32_t node = 0;
    int32_t rank = -1;
    bool error = false;  // standard error
    std::string text;
    template <class F>
    void each(F&& f) {
        f(node, rank, error, text);
    }
};

// How a rank came to its end, after its last output.
enum class RankEnd : uint32_t {
    silent = 0,   // MPI was never started
    running = 1,  // MPI was started and not finalized: whatever its exit code, it has died
    finalized = 2,
    failed = 3,  // it broke the protocol of its launcher
};
inline constexpr RankEnd kLastRankEnd = RankEnd::failed;

struct RankEnded {
    static constexpr uint16_t kType = 102;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string host;
    int32_t status = 0;  // as waitpid() has it
    RankEnd stage = RankEnd::silent;
    int32_t daemon = -1;  // as in Ready: where it ended
    template <class F>
    void each(F&& f) {
        f(rank, pid, host, status, stage, daemon);
    }
};

// Tells how much of the input has been taken; `closed`: rank 0 does not read any more.
struct InputTaken {
    static constexpr uint16_t kType = 103;
    uint64_t bytes = 0;
    bool closed = false;
    template <class F>
    void each(F&& f) {
        f(bytes, closed);
    }
};

// A rank called MPI_Abort.
struct Aborted {
    static constexpr uint16_t kType = 104;
    int32_t rank = -1;
    std::string host;
    int32_t code = 0;
    std::string text;
    template <class F>
    void each(F&& f) {
        f(rank, host, code, text);
    }
};

}  // namespace fermata::wire
