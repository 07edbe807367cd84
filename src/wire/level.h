// These messages travel between the root and the node daemons of a job that keeps generations in the memory
// of its nodes, or in their local directories (src/level). message.h has the rules of all messages.
//
// A daemon names its node by `host`, whatever way its messages take.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "base/medium.h"
#include "wire/daemons.h"
#include "wire/parity.h"

namespace fermata::wire {

// ---- downwards

// Wants a directory on each node for this generation, if the ranks' memory fits; answer Room. A Save without
// a directory means this one.
struct MakeRoom {
    static constexpr uint16_t kType = 60;
    uint32_t epoch = 0;
    Generation generation;
    Medium medium = Medium::memory;
    std::vector<Run> ranks{};  // that will save; none: all
    template <class F>
    void each(F&& f) {
        f(epoch, generation, medium, ranks);
    }
};

// All other generations of the job in memory and in the local directory go; with none, all of them do.
struct KeepCopies {
    static constexpr uint16_t kType = 61;
    std::vector<Generation> generations;  // in memory
    std::vector<Generation> local;
    template <class F>
    void each(F&& f) {
        f(generations, local);
    }
};

// Which ranks' images a node copies, of those that it has.
struct Share {
    std::string host;
    std::vector<Run> ranks;
    template <class F>
    void each(F&& f) {
        f(host, ranks);
    }
    bool operator==(const Share&) const = default;
};

// Copies its share of these generations into their directories below `directory`, syncs it, and answers
// Flushed. Said again with the same number: only the limit is new. 0: none.
struct Flush {
    static constexpr uint16_t kType = 62;
    uint32_t number = 0;
    std::vector<Generation> generations;
    std::string directory;
    uint64_t bytes_per_second = 0;
    std::vector<Share> shares;
    Medium from = Medium::memory;
    template <class F>
    void each(F&& f) {
        f(number, generations, directory, bytes_per_second, shares, from);
    }
};

// Asks what of these generations is on the node; answer Copies, with the same number. A newer question takes
// the place of one that is not answered yet. `in_place`: those of them whose images are read where they are
// in local directories, and so compared there; what comes from there to memory is compared in memory.
// `parity`: every byte of that is compared, too.
struct AskCopies {
    static constexpr uint16_t kType = 63;
    uint32_t number = 0;
    std::vector<Generation> generations, in_place = {};
    bool parity = false;
    template <class F>
    void each(F&& f) {
        f(number, generations, in_place, parity);
    }
};

// Each node compares its share of these images in files, mends those that are damaged there from its memory
// and those in its memory from files; answer: Inspected, of a node that has a share.
struct Inspect {
    static constexpr uint16_t kType = 58;
    uint32_t number = 0;
    std::vector<Repair> shares;
    template <class F>
    void each(F&& f) {
        f(number, shares);
    }
};

// Tells ranks that wait for it before they load which generation the root has chosen. `images`: the directory
// that holds them on this node, which the daemon fills in; empty: that of the generation.
struct Chosen {
    static constexpr uint16_t kType = 54;
    Generation generation;
    std::string directory;
    std::string seal;
    bool on_nodes = false;
    std::string images;
    Medium medium = Medium::memory;  // of nodes
    template <class F>
    void each(F&& f) {
        f(generation, directory, seal, on_nodes, images, medium);
    }
};

// Images that one node takes from another one, or from its own other medium.
struct Errand {
    std::string to, from;                 // nodes
    std::string addresses;                // of `from`, as in Room
    std::vector<Generation> generations;  // oldest first: the last one, before it what its images refer to
    std::vector<Run> ranks;               // whose images
    std::array<uint8_t, 16> checksum{};   // of what the manifest of the last one says of these images
    Medium medium = Medium::memory;       // of `from`
    NodePlace source() const { return {from, medium}; }
    template <class F>
    void each(F&& f) {
        f(to, from, addresses, generations, ranks, checksum, medium);
    }
    bool operator==(const Errand&) const = default;
};

// Each node does its own of these errands; answer: Fetched, of a node that has some. `thorough`: all bytes of
// what has come are compared. Said again with the same number: only the limit is new. 0: none. `into`: where
// all of it goes; in local directories it is synced.
struct Fetch {
    static constexpr uint16_t kType = 55;
    uint32_t number = 0;
    bool thorough = false;
    uint64_t bytes_per_second = 0;
    std::vector<Errand> errands;
    Medium into = Medium::memory;
    template <class F>
    void each(F&& f) {
        f(number, thorough, bytes_per_second, errands, into);
    }
};

// ---- upwards

// `why`: there is none, and this is the reason; empty = the directory is there.
struct Room {
    static constexpr uint16_t kType = 130;
    uint32_t epoch = 0;
    std::string host;
    std::string why;
    std::string addresses;  // where daemons read what this node has in that medium (src/transfer)
    template <class F>
    void each(F&& f) {
        f(epoch, host, why, addresses);
    }
};

// All that was to be copied is on storage, or `error` says why not.
struct Flushed {
    static constexpr uint16_t kType = 131;
    uint32_t number = 0;
    std::string host;
    uint64_t bytes = 0;
    std::string error;
    template <class F>
    void each(F&& f) {
        f(number, host, bytes, error);
    }
};

// One intact image.
struct Copy {
    Generation generation;
    int32_t rank = -1;
    uint64_t bytes = 0;
    std::array<uint8_t, 16> checksum{};
    template <class F>
    void each(F&& f) {
        f(generation, rank, bytes, checksum);
    }
};

// Something in the memory of a node that is not as it was written.
struct Flaw {
    Generation generation;
    int32_t rank = -1;  // whose image; -1: parity
    std::string why;
    template <class F>
    void each(F&& f) {
        f(generation, rank, why);
    }
    bool operator==(const Flaw&) const = default;
};

struct Copies {
    static constexpr uint16_t kType = 132;
    std::string host;
    std::vector<Copy> copies;
    std::vector<int32_t> ranks;     // that wait on this node for an image
    std::string damage;             // a line on the first image that is not intact; empty: there is none
    std::string addresses;          // as in Room
    std::vector<PeerGroup> parity;  // of groups that this node is in, by their names; no addresses
    std::vector<Copy> local;        // in the local directory
    std::string local_addresses;    // as in Room; empty: nothing is there
    uint32_t number = 0;            // of the question
    std::vector<Flaw> flaws;        // in memory
    template <class F>
    void each(F&& f) {
        f(host, copies, ranks, damage, addresses, parity, local, local_addresses, number, flaws);
    }
};

struct Failure {
    std::string from, error;
    Medium medium = Medium::memory;  // of `from`
    template <class F>
    void each(F&& f) {
        f(from, error, medium);
    }
    bool operator==(const Failure&) const = default;
};

// The errands of a node are over: all that is not in `failures` is there, and is what the manifest names.
struct Fetched {
    static constexpr uint16_t kType = 134;
    uint32_t number = 0;
    std::string host;
    uint64_t bytes = 0;
    std::vector<Failure> failures;
    template <class F>
    void each(F&& f) {
        f(number, host, bytes, failures);
    }
};

// The result of a node's share, a line on each: what it has mended, and what is damaged still, and why.
struct Inspected {
    static constexpr uint16_t kType = 137;
    uint32_t number = 0;
    std::string host;
    std::vector<Flaw> mended, left;
    template <class F>
    void each(F&& f) {
        f(number, host, mended, left);
    }
};

}  // namespace fermata::wire
