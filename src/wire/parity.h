// These messages travel between the root and the node daemons of a job that keeps parity of generations in
// the memory of its nodes (src/erasure). message.h has the rules of all messages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "wire/daemons.h"

namespace fermata::wire {

// A node of a group, and the ranks whose images count as its data.
struct Peer {
    std::string host;
    std::string addresses;  // as in Room; empty: what it had is lost
    std::vector<Run> ranks;
    template <class F>
    void each(F&& f) {
        f(host, addresses, ranks);
    }
    bool operator==(const Peer&) const = default;
};

// Nodes that bear losses together. `name`: of the group that they are in already; zeros = it is to be made.
struct PeerGroup {
    Generation generation;
    uint32_t losses = 0;
    std::array<uint8_t, 16> name{};
    std::vector<Peer> peers;
    template <class F>
    void each(F&& f) {
        f(generation, losses, name, peers);
    }
    bool operator==(const PeerGroup&) const = default;
};

// ---- downwards

// Each node writes its parity in the groups that it is in; answer: Encoded, of a node that is in one. Said
// again with the same number: only the limit is new. 0: none.
struct Encode {
    static constexpr uint16_t kType = 56;
    uint32_t number = 0;
    uint64_t bytes_per_second = 0;
    std::vector<PeerGroup> groups;
    template <class F>
    void each(F&& f) {
        f(number, bytes_per_second, groups);
    }
};

// Images that a node has to rebuild in its own memory.
struct Repair {
    std::string host;
    Generation generation;
    std::vector<Run> ranks;
    template <class F>
    void each(F&& f) {
        f(host, generation, ranks);
    }
    bool operator==(const Repair&) const = default;
};

// Each node does its own of these repairs, in their order, with what the peers still have; answer: Rebuilt,
// of a node that has some.
struct Rebuild {
    static constexpr uint16_t kType = 57;
    uint32_t number = 0;
    std::vector<Repair> repairs;
    std::vector<PeerGroup> groups;
    template <class F>
    void each(F&& f) {
        f(number, repairs, groups);
    }
};

// ---- upwards

// All parity of the node is there, or `error` says why not.
struct Encoded {
    static constexpr uint16_t kType = 135;
    uint32_t number = 0;
    std::string host;
    uint64_t bytes = 0;  // of parity
    std::string error;
    template <class F>
    void each(F&& f) {
        f(number, host, bytes, error);
    }
};

// Images that the node has rebuilt; `error`: why something could not be.
struct Rebuilt {
    static constexpr uint16_t kType = 136;
    uint32_t number = 0;
    std::string host;
    std::vector<Repair> done;
    std::string error;
    template <class F>
    void each(F&& f) {
        f(number, host, done, error);
    }
};

}  // namespace fermata::wire
