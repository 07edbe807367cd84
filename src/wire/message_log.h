// Messages of jobs whose ranks log what they send: what a recovery's exchange, or a restart's, hears and
// says. The bytes are those of replay/wire_form.h: only root and front know what they mean. message.h has the
// rules of all messages.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/daemons.h"

namespace fermata::wire {

// To ranks that stand, answered by LogSaid: in a checkpoint, what they share with other ranks (objects.h of
// src/split/shared); after their images were loaded, the counts of their logs.
struct AskLog {
    static constexpr uint16_t kType = 44;
    uint32_t epoch = 0;
    bool uses = false;
    template <class F>
    void each(F&& f) {
        f(epoch, uses);
    }
};

// From the root, after the LogsSaid of all ranks: what that means for each of these ranks; the node hands
// each one its own (LogOrder).
struct LogOrders {
    static constexpr uint16_t kType = 43;
    uint32_t epoch = 0;
    std::vector<Run> ranks;
    std::vector<Bytes> orders;  // in the order of `ranks`
    template <class F>
    void each(F&& f) {
        f(epoch, ranks, orders);
    }
};

// Before Renew, or before a restart rebuilds.
struct LogOrder {
    static constexpr uint16_t kType = 42;
    uint32_t epoch = 0;
    int32_t rank = -1;
    Bytes bytes;
    template <class F>
    void each(F&& f) {
        f(epoch, rank, bytes);
    }
};

// All threads of this rank stand; its counts, or its answer to AskLog.
struct LogSaid {
    static constexpr uint16_t kType = 90;
    uint32_t epoch = 0;
    int32_t rank = -1;
    Bytes bytes;
    template <class F>
    void each(F&& f) {
        f(epoch, rank, bytes);
    }
};

// The LogSaid of all ranks in a node's subtree, in the order of `ranks`.
struct LogsSaid {
    static constexpr uint16_t kType = 106;
    uint32_t epoch = 0;
    std::vector<Run> ranks;
    std::vector<Bytes> said;
    template <class F>
    void each(F&& f) {
        f(epoch, ranks, said);
    }
};

// A rank's library has lost connections: do all ranks live? `number` is the rank's own, for the answer. From
// the root to all daemons, without a rank, with the root's number.
struct AskLiving {
    static constexpr uint16_t kType = 117;
    int32_t rank = -1;
    uint64_t number = 0;
    template <class F>
    void each(F&& f) {
        f(rank, number);
    }
};

// Answers it: a daemon for the processes of its ranks (`all`: none is on its way out), the root for the job.
struct Living {
    static constexpr uint16_t kType = 118;
    int32_t rank = -1;
    uint64_t number = 0;
    bool all = false;
    template <class F>
    void each(F&& f) {
        f(rank, number, all);
    }
};

// How large this rank's log is, now and then: in memory, and in a file.
struct LogSize {
    static constexpr uint16_t kType = 116;
    int32_t rank = -1;
    uint64_t held = 0, spilled = 0;
    template <class F>
    void each(F&& f) {
        f(rank, held, spilled);
    }
};

}  // namespace fermata::wire
