// These messages travel in the tree root - node daemon - agent: one struct per message, the same types on
// both hops.
//
// On the way up the node daemon merges what its ranks say (sums, maxima, votes, lists), so that the root sees
// one message per node. Every struct names its fields once, in `each`; frame.h walks that list to write and
// to read. A new field goes to the end and raises kWireVersion: both ends of a hop come from the same build
// or refuse each other. docs/formats/wire.md is the page of this format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "wire/copies.h"
#include "wire/daemons.h"
#include "wire/launch.h"
#include "wire/level.h"
#include "wire/message_log.h"
#include "wire/one_of.h"
#include "wire/program.h"
#include "wire/renewal.h"
#include "wire/times.h"

namespace fermata::wire {

inline constexpr uint16_t kWireVersion = 19;

// Between Bytes and rooms that speak of uint8_t.
inline std::vector<uint8_t> plain(const Bytes& bytes) {
    auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    return {at, at + bytes.size()};
}
inline Bytes packed(const std::vector<uint8_t>& bytes) {
    auto* at = reinterpret_cast<const std::byte*>(bytes.data());
    return {at, at + bytes.size()};
}

// ---- of many ranks at once

using Digest = std::array<uint8_t, 16>;  // image::Checksum

// One image as the manifest has it.
struct ImageRecord {
    uint64_t bytes = 0;
    Digest checksum{};
    template <class F>
    void each(F&& f) {
        f(bytes, checksum);
    }
    bool operator==(const ImageRecord&) const = default;
};

// ---- both ways

// A message of the collective clock; only src/clock knows what is in it.
struct Clock {
    static constexpr uint16_t kType = 1;
    Bytes bytes;
    template <class F>
    void each(F&& f) {
        f(bytes);
    }
};

// ---- downwards: root -> node -> agent

// A checkpoint starts. The agent refuses now (Refuse) or takes part; the clock's own messages follow. Or, in
// a job with a message log, `anywhere`: it stands as soon as it can, wherever that is, and answers LogSaid.
struct Begin {
    static constexpr uint16_t kType = 16;
    uint32_t epoch = 0;
    Generation generation;
    bool anywhere = false;
    template <class F>
    void each(F&& f) {
        f(epoch, generation, anywhere);
    }
};

// The safe state is declared: answer Closed at once, stop all threads, then answer Frozen.
struct Freeze {
    static constexpr uint16_t kType = 17;
    uint32_t epoch = 0;
    template <class F>
    void each(F&& f) {
        f(epoch);
    }
};

// Every rank has closed: messages may be taken for good, also from threads that cannot stand before that.
struct Take {
    static constexpr uint16_t kType = 29;
    uint32_t epoch = 0;
    template <class F>
    void each(F&& f) {
        f(epoch);
    }
};

// One round of the drain; answer Drained with the same round.
struct Drain {
    static constexpr uint16_t kType = 18;
    uint32_t epoch = 0;
    uint32_t round = 0;
    template <class F>
    void each(F&& f) {
        f(epoch, round);
    }
};

// Write `rank-NNNNNN.img` into `directory` (absolute; exists; empty: on the node, in its `medium`, and its
// daemon puts in which), fsync it, then answer Saved. The rank stays stopped until Resume or Cancel; with
// `forked` in the options it answers Captured first. With a `layout` of several images in a file: write into
// that, which exists; answer Sized before anything else, and wait for Placed.
struct Save {
    static constexpr uint16_t kType = 19;
    uint32_t epoch = 0;
    std::string directory;
    Generation generation;
    std::string options;             // image::SaveOptions::to_text()
    int32_t lowest = -1;             // rank of the node: its daemon puts it in
    Medium medium = Medium::memory;  // local: the entry in the directory is synced, too: nobody else does it
    std::vector<Bytes> uses{};       // with a message log: what each rank shares with others (AskLog)
    std::vector<Run> copies{};       // not empty: only these save, each for a copy on another node
    template <class F>
    void each(F&& f) {
        f(epoch, directory, generation, options, lowest, medium, uses, copies);
    }
};

// Where a rank's part of the file of several begins.
struct Placed {
    static constexpr uint16_t kType = 27;
    uint32_t epoch = 0;
    int32_t rank = -1;
    uint64_t begin = 0;
    template <class F>
    void each(F&& f) {
        f(epoch, rank, begin);
    }
};

// Tells a node the places of the ranks in its subtree; each agent gets its own. `begins` follows the order of
// `ranks`.
struct Places {
    static constexpr uint16_t kType = 51;
    uint32_t epoch = 0;
    std::vector<Run> ranks;
    std::vector<uint64_t> begins;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks, begins);
    }
};

// The checkpoint is over and the job goes on; answer Resumed.
struct Resume {
    static constexpr uint16_t kType = 20;
    uint32_t epoch = 0;
    template <class F>
    void each(F&& f) {
        f(epoch);
    }
};

// The checkpoint is given up, in whatever phase it is: undo, go on; answer Resumed.
struct Cancel {
    static constexpr uint16_t kType = 22;
    uint32_t epoch = 0;
    std::string why;
    template <class F>
    void each(F&& f) {
        f(epoch, why);
    }
};

// Asks in which call each rank waits. Answer: Diagnosis.
struct Query {
    static constexpr uint16_t kType = 23;
    uint32_t patience_ms = 5000;  // then it is answered without those that are silent
    template <class F>
    void each(F&& f) {
        f(patience_ms);
    }
};

// Every rank has reached MPI_Finalize.
struct FinalizeReleased {
    static constexpr uint16_t kType = 24;
    template <class F>
    void each(F&& f) {
        f();
    }
};

// Restart: every rank has loaded its image and rebuilt its objects; run.
struct Go {
    static constexpr uint16_t kType = 25;
    template <class F>
    void each(F&& f) {
        f();
    }
};

// The checkpoint is committed and the job stops with it, or (epoch 0) a restart is refused: the launcher's
// SIGTERM follows, which a frozen program does not hear, and ends this process.
struct Leave {
    static constexpr uint16_t kType = 30;
    uint32_t epoch = 0;
    template <class F>
    void each(F&& f) {
        f(epoch);
    }
};

// End at once, with exit code 0 and without a word: the launcher ends when all have.
struct Depart {
    static constexpr uint16_t kType = 31;
    template <class F>
    void each(F&& f) {
        f();
    }
};

// Root -> node only: end what is left of the job's processes on this node, then leave.
struct Kill {
    static constexpr uint16_t kType = 26;
    template <class F>
    void each(F&& f) {
        f();
    }
};

// Root -> node only: every process of a rank stops (Ctrl-Z), or goes on.
struct Stand {
    static constexpr uint16_t kType = 32;
    bool still = false;
    template <class F>
    void each(F&& f) {
        f(still);
    }
};

// ---- upwards: agent -> node (-> root, merged)

// First message of a rank: it is about to enter the real library's MPI_Init, where it may stay.
struct Starting {
    static constexpr uint16_t kType = 77;
    int32_t rank = -1;   // as the launcher's environment has it; -1: it does not say
    std::string job_id;  // the job's random id from the environment: the proof that both belong together
    template <class F>
    void each(F&& f) {
        f(rank, job_id);
    }
};

// Instead of Starting: the process of this rank is a starter, which runs natively until it starts the MPI
// program. Or, with an error: it has started one that cannot be. The connection ends with it.
struct InStarter {
    static constexpr uint16_t kType = 82;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string program;
    std::string error;
    template <class F>
    void each(F&& f) {
        f(rank, pid, program, error);
    }
};

// The rank is out of MPI_Init, and its agent listens.
struct Hello {
    static constexpr uint16_t kType = 64;
    std::string job_id;  // as in Starting
    int32_t rank = -1;
    int32_t size = 0;
    int32_t pid = 0;
    std::string host;
    std::string mpi;            // "openmpi" or "mpich"
    std::string mpi_version;    // library version, first line
    Generation restarted_from;  // none at the first start
    template <class F>
    void each(F&& f) {
        f(job_id, rank, size, pid, host, mpi, mpi_version, restarted_from);
    }
};

// The batch system has sent this rank a signal that would have ended the program, and was held back.
struct Warned {
    static constexpr uint16_t kType = 84;
    int32_t signal = 0;
    template <class F>
    void each(F&& f) {
        f(signal);
    }
};

// This rank cannot be checkpointed now.
struct Refuse {
    static constexpr uint16_t kType = 65;
    uint32_t epoch = 0;
    std::string why;
    template <class F>
    void each(F&& f) {
        f(epoch, why);
    }
};

// This rank cannot be checkpointed now, but could at once if another checkpoint began.
struct Again {
    static constexpr uint16_t kType = 81;
    uint32_t epoch = 0;
    std::string why;
    template <class F>
    void each(F&& f) {
        f(epoch, why);
    }
};

// No thread hears of a completion any more. `ranks` as in Frozen.
struct Closed {
    static constexpr uint16_t kType = 80;
    uint32_t epoch = 0;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks);
    }
};

// All threads stand. `ranks` is 1 from an agent, the number of ranks summed up from a node; likewise below.
struct Frozen {
    static constexpr uint16_t kType = 66;
    uint32_t epoch = 0;
    uint64_t sent = 0;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(epoch, sent, ranks);
    }
};

struct Drained {
    static constexpr uint16_t kType = 67;
    uint32_t epoch = 0;
    uint32_t round = 0;
    uint64_t sent = 0;
    uint64_t received = 0;
    uint64_t open = 0;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(epoch, round, sent, received, open, ranks);
    }
};

// How long this rank's part of the shared file can become at most.
struct Sized {
    static constexpr uint16_t kType = 78;
    uint32_t epoch = 0;
    int32_t rank = -1;
    uint64_t bytes = 0;
    template <class F>
    void each(F&& f) {
        f(epoch, rank, bytes);
    }
};

// The Sized of all ranks in a node's subtree, in the order of `ranks`. A node's answer replaces what it said
// before to this question; likewise below.
struct Sizes {
    static constexpr uint16_t kType = 122;
    uint32_t epoch = 0;
    std::vector<Run> ranks;
    std::vector<uint64_t> bytes;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks, bytes);
    }
};

// The rank's memory is held by a forked writer: the job may resume; Saved follows when the file is on disk.
struct Captured {
    static constexpr uint16_t kType = 68;
    uint32_t epoch = 0;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks);
    }
};

// One rank's image is on disk, or `error` says why not.
struct Saved {
    static constexpr uint16_t kType = 69;
    uint32_t epoch = 0;
    int32_t rank = -1;
    uint64_t bytes = 0;
    std::string checksum;  // as the manifest wants it
    std::string error;     // empty = fine
    uint64_t suspend_us = 0;
    std::vector<Generation> needs;    // earlier ones whose images this one refers to
    uint32_t block = 0;               // of this rank (times.h)
    std::vector<uint64_t> took_us{};  // in each phase; empty: it was not measured
    template <class F>
    void each(F&& f) {
        f(epoch, rank, bytes, checksum, error, suspend_us, needs, block, took_us);
    }
};

// The Saved of all ranks in a node's subtree, or, at once, an error of one.
struct Images {
    static constexpr uint16_t kType = 121;
    uint32_t epoch = 0;
    std::vector<Run> ranks;
    std::vector<ImageRecord> images;  // in the order of `ranks`
    uint64_t suspend_us = 0;          // of the slowest
    std::vector<Generation> needs;    // of all
    std::string error;
    std::vector<BlockTimes> blocks{};
    template <class F>
    void each(F&& f) {
        f(epoch, ranks, images, suspend_us, needs, error, blocks);
    }
};

struct Resumed {
    static constexpr uint16_t kType = 71;
    uint32_t epoch = 0;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks);
    }
};

// This rank waits in MPI_Finalize. Said again after a restart, by a rank that was waiting there.
struct ArrivedFinalize {
    static constexpr uint16_t kType = 72;
    uint32_t ranks = 1;
    template <class F>
    void each(F&& f) {
        f(ranks);
    }
};

// Answer to Query: one line per thread; the node puts "rank R on HOST: " before each line.
struct Diagnosis {
    static constexpr uint16_t kType = 73;
    std::string text;
    uint32_t ranks = 1;
    uint32_t nodes = 1;  // daemons that have put their part into it
    template <class F>
    void each(F&& f) {
        f(text, ranks, nodes);
    }
};

// One line to the user. `epoch`: of the checkpoint whose answer says it, too; 0 = none.
struct Warning {
    static constexpr uint16_t kType = 74;
    std::string text;
    uint32_t epoch = 0;
    template <class F>
    void each(F&& f) {
        f(text, epoch);
    }
};

// Restart: this rank's image is loaded and its objects are rebuilt, or why not: then the job ends with
// `code`. `ranks` counts the successes.
struct Restored {
    static constexpr uint16_t kType = 75;
    bool ok = true;
    std::string error;
    uint32_t ranks = 1;
    int32_t code = 1;
    template <class F>
    void each(F&& f) {
        f(ok, error, ranks, code);
    }
};

// The steps of a rank on its way back from an image, in this order; docs/architecture.md has the same words.
// `go`: the rank is rebuilt and waits for the others.
enum class RestartPhase : uint32_t { load = 1, adopt, threads, process, rebuild, go };
inline constexpr RestartPhase kLastRestartPhase = RestartPhase::go;
const char* name_of(RestartPhase phase);

// Restart: a rank begins a phase. It may be said before Hello; what a rank says replaces what it said before.
// Merged it is the phase of who is furthest behind.
struct Phase {
    static constexpr uint16_t kType = 83;
    RestartPhase phase = RestartPhase::load;
    int32_t rank = -1;   // who is in it, or one of those
    uint32_t there = 1;  // how many are in it
    uint32_t ranks = 1;  // of whom this speaks: those, and all that are further
    template <class F>
    void each(F&& f) {
        f(phase, rank, there, ranks);
    }
    bool operator==(const Phase&) const = default;
};

// The program leaves by exit(), and has not called MPI_Finalize: what the others do then is the launcher's.
struct Leaving {
    static constexpr uint16_t kType = 88;
    int32_t code = 0;
    template <class F>
    void each(F&& f) {
        f(code);
    }
};

// One line to the user, then the whole job ends with `code`.
struct Fatal {
    static constexpr uint16_t kType = 76;
    std::string line;
    int32_t code = 1;
    template <class F>
    void each(F&& f) {
        f(line, code);
    }
};

// ---- node -> root only

// A node with these new ranks; the node's first message after authentication.
struct NodeHello {
    static constexpr uint16_t kType = 96;
    std::string host;
    int32_t pid = 0;
    std::string addresses;  // where other daemons reach it
    template <class F>
    void each(F&& f) {
        f(host, pid, addresses);
    }
};

// Ranks that have joined.
struct Joined {
    static constexpr uint16_t kType = 120;
    std::vector<Group> groups;
    template <class F>
    void each(F&& f) {
        f(groups);
    }
};

// Processes of ranks ended or closed their sockets. `clean` = after FinalizeReleased or Kill.
struct Gone {
    static constexpr uint16_t kType = 123;
    int32_t node = -1;  // as in Group
    std::vector<Run> ranks;
    bool clean = false;
    int32_t pid = 0;  // of the first of them
    std::string host;
    int32_t code = -1;  // of its exit, as a shell has it; -1: nobody knows
    template <class F>
    void each(F&& f) {
        f(node, ranks, clean, pid, host, code);
    }
};

// A node daemon's only message when another one of its node was faster: it leaves, and nothing is lost.
struct Spare {
    static constexpr uint16_t kType = 99;
    template <class F>
    void each(F&& f) {
        f();
    }
};

using Message =
    OneOf<Clock, Begin, Freeze, Drain, Save, Resume, Cancel, Query, FinalizeReleased, Go, Kill, Starting,
          Hello, Refuse, Frozen, Drained, Captured, Saved, Images, Resumed, ArrivedFinalize, Diagnosis,
          Warning, Restored, Fatal, NodeHello, Joined, Gone, Placed, Places, Sized, Sizes, Take, Closed,
          Again, Leave, Depart, Warned, Spare, InStarter, Stand, Phase, Launch, Signal, Input, OutputTaken,
          Fence, AskRank, RankAnswer, Ready, Output, RankEnded, InputTaken, Aborted, Leaving, MakeRoom,
          KeepCopies, Flush, AskCopies, Chosen, Room, Flushed, Copies, Fetch, Fetched, Encode, Encoded,
          Rebuild, Rebuilt, Inspect, Inspected, Renew, Waiting, Moved, LogSaid, LogsSaid, LogOrder, LogOrders,
          AskLog, Order, To, Parent, Beat, Roll, Attach, Here, Missing, AskProgram, OwnState, Stays, Wrote,
          CopyGone, Promoted, NoCopy, CopyMade, CopyEnded, EndCopies, Inject, Injected, Streams, Cloned,
          StartCopy, LeaderDied, TakePlace, LogSize, AskLiving, Living, StartDaemons, NotStarted>;

// For logs: "Freeze", "Saved", …
const char* name_of(const Message& message);

}  // namespace fermata::wire
