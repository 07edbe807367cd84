// These messages travel between the root and the node daemons of a job that keeps generations in the memory
// of its nodes (src/level). message.h has the rules of all messages.
//
// A daemon names its node by `host`, whatever way its messages take.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"

namespace fermata::wire {

// ---- downwards

// A directory in the memory of each node for this generation, if the ranks' memory fits; answer Room. A Save
// without a directory means this one.
struct MakeRoom {
    static constexpr uint16_t kType = 60;
    uint32_t epoch = 0;
    Generation generation;
    template <class F>
    void each(F&& f) {
        f(epoch, generation);
    }
};

// What else the job has in memory goes; with none, all of it does.
struct KeepCopies {
    static constexpr uint16_t kType = 61;
    std::vector<Generation> generations;
    template <class F>
    void each(F&& f) {
        f(generations);
    }
};

// Copies what this node has of these generations into their directories below `directory`, syncs it, and
// answers Flushed. Said again with the same number: only the limit is new. 0: none.
struct Flush {
    static constexpr uint16_t kType = 62;
    uint32_t number = 0;
    std::vector<Generation> generations;
    std::string directory;
    uint64_t bytes_per_second = 0;
    template <class F>
    void each(F&& f) {
        f(number, generations, directory, bytes_per_second);
    }
};

// Asks what of these generations is in the memory of the node; answer Copies.
struct AskCopies {
    static constexpr uint16_t kType = 63;
    std::vector<Generation> generations;
    template <class F>
    void each(F&& f) {
        f(generations);
    }
};

// To ranks that wait for it before they load: the generation that the root has chosen. `images`: the
// directory that holds them on this node, which the daemon fills in; empty: that of the generation.
struct Chosen {
    static constexpr uint16_t kType = 54;
    Generation generation;
    std::string directory;
    std::string seal;
    bool memory = false;
    std::string images;
    template <class F>
    void each(F&& f) {
        f(generation, directory, seal, memory, images);
    }
};

// ---- upwards

// `why`: there is none, and this is the reason; empty = the directory is there.
struct Room {
    static constexpr uint16_t kType = 130;
    uint32_t epoch = 0;
    std::string host;
    std::string why;
    template <class F>
    void each(F&& f) {
        f(epoch, host, why);
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

struct Copies {
    static constexpr uint16_t kType = 132;
    std::string host;
    std::vector<Copy> copies;
    std::vector<int32_t> ranks;  // that wait on this node for an image
    std::string damage;          // a line on images that are not intact; empty: there are none
    template <class F>
    void each(F&& f) {
        f(host, copies, ranks, damage);
    }
};

}  // namespace fermata::wire
