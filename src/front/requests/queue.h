// Messages that were pulled out of the lower half before the application asked for them.
//
// A checkpoint takes every message that has been sent and not received (the drain), and a rank that waits
// while a checkpoint converges takes what arrives so that its senders get on. Such a message has matched no
// posted receive, and it is older than anything the lower half may still deliver on its channel; so every
// receive and probe looks here first, in the order of arrival, and MPI's order is kept. Entries hold
// envelope, bytes as packed, and nothing of the lower half except, while the bytes still arrive, the request
// that brings them. An entry that is only *held* has not even been asked for its bytes: its sender does not
// see it received (synchronous.h).
//
// The queue takes no lock: callers hold the match lock (see engine.h).
#pragma once

#include <cstdint>

namespace fermata::front {

inline constexpr int32_t kAny =
    INT32_MIN;  // internal wildcard for source or tag, whatever the ABI's value is

// The receipt that the sender of a synchronous message waits for; serial 0: nothing.
struct Receipt {
    uint32_t request;  // handle there
    uint32_t serial;
};

struct QueuedMessage {
    QueuedMessage* next;
    uint64_t comm;   // virtual communicator, as the key of the match
    int32_t source;  // rank in the communicator (its remote group for inter-communicators)
    int32_t tag;
    int64_t bytes;     // length of `data`
    char* data;        // fm heap; null when bytes == 0, or held
    uint64_t real;     // request that still brings the bytes; 0 = all here, or held
    uint64_t message;  // held: the lower half's matched message
    bool held;
    Receipt owed;
};

class MessageQueue {
  public:
    bool empty() const { return first_ == nullptr; }
    // Number of messages that wait.
    uint64_t size() const { return size_; }

    // Takes ownership; `message` comes from make().
    void push(QueuedMessage* message) noexcept;
    // Oldest message that matches, without removing it; null when there is none.
    QueuedMessage* find(uint64_t comm, int32_t source, int32_t tag) const noexcept;
    // The same, removed from the queue: the caller owns it.
    QueuedMessage* take(uint64_t comm, int32_t source, int32_t tag) noexcept;
    // Drops what waits for a communicator that was freed; how many there were.
    uint64_t purge(uint64_t comm) noexcept;

    template <typename F>
    void for_each(F&& visit) {
        for (QueuedMessage* m = first_; m != nullptr; m = m->next) visit(m);
    }

    // Without room for the bytes: see allocate().
    static QueuedMessage* make(uint64_t comm, int32_t source, int32_t tag, int64_t bytes) noexcept;
    static void allocate(QueuedMessage* message) noexcept;
    static void destroy(QueuedMessage* message) noexcept;

  private:
    QueuedMessage* first_ = nullptr;
    QueuedMessage* last_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace fermata::front
