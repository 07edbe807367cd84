// Virtual requests: what was asked, in the image; the real request only while the lower half works on it.
//
// Every application request is one object of a pool with a permanent handle, so that starting and finishing
// an operation pops and pushes a list and nothing else. Persistent requests are virtual altogether: Start
// starts an ordinary operation. So at a restart exactly two kinds have to be done again: receives that
// matched nothing (in the order they were posted) and collectives beyond the target.
#pragma once

#include "front/core/call.h"
#include "front/objects/real.h"
#include "front/requests/foreign.h"
#include "front/requests/queue.h"

namespace fermata::front {

enum class What : uint8_t {
    none,
    send,
    recv,
    collective,        // non-blocking collective: `collective` is its record
    generalized,       // `generalized`
    sendrecv,          // two operations: `parts`
    partitioned_send,  // an ordinary send once all partitions are ready: `partitions`
    foreign,           // some other operation of the real library
    of_file,           // a collective of a file: `peer` is its handle
    done,              // complete since it was made
};
enum class State : uint8_t {
    free,      // in the pool
    inactive,  // persistent, not started
    active,
    complete,  // `status` and `error` hold the result; the application has not been told
};
enum SendMode : uint8_t { kStandard = 0, kReady = 1, kSynchronous = 2, kBuffered = 3 };
enum RequestFlag : uint8_t {
    kPersistent = 1,
    kOrphan = 2,     // Request_free while active: returns to the pool by itself
    kCancelled = 4,  // MPI_Cancel was called
    kTold = 8,       // a collective whose completion the clock has allowed to be told
    kInternal = 16,  // part of another request or of a blocking call
    kCounted = 32,   // a receive of a matched message: the ledger has it already
    kTaken = 64,     // a synchronous send that the library completed while all were frozen
    kUnread = 128,   // one whose message waits at its destination: a receipt will come
};

struct CollectiveRecord;
struct Generalized;
struct Partitions;
struct Channel;
struct RequestObject;
struct Pair {
    RequestObject* send;
    RequestObject* recv;
    char* copy;  // of a replaced buffer
};

// The part of a request that decides how it is treated: also to be set and compared as one word.
struct alignas(4) RequestHead {
    What what = What::none;
    volatile State state = State::free;
    uint8_t flags = 0;
    uint8_t mode = kStandard;
};
static_assert(sizeof(RequestHead) == 4);
using HeadWord = volatile uint32_t __attribute__((may_alias));
inline HeadWord& word_of(RequestHead* head) noexcept { return *reinterpret_cast<HeadWord*>(head); }
// A standard one.
constexpr uint32_t head_word(What what, State state, uint8_t flags = 0) noexcept {
    return static_cast<uint32_t>(what) | static_cast<uint32_t>(state) << 8 | uint32_t{flags} << 16;
}

struct RequestObject : Object, RequestHead {
    RequestObject() : Object(Kind::request) {}
    int32_t world = -1;  // the peer's world rank; -1 = any or none
    void* buf = nullptr;
    int64_t count = 0;
    TypeObject* type = nullptr;  // holds a reference
    CommObject* comm = nullptr;  // likewise; null for requests without one
    int32_t peer = 0, tag = 0;
    mpi::Status status;
    uint64_t posted = 0;  // order of posting, for receives; place in its channel, for synchronous sends
    union {
        CollectiveRecord* collective = nullptr;
        Generalized* generalized;
        Partitions* partitions;
        QueuedMessage* matched;  // receive that matched a message whose bytes still arrive
        char* copy;              // buffered send: its bytes
        uint64_t place;          // other send: in its channel, odd; else 0
        Channel* channel;        // synchronous send
        Pair* pair;
        RequestObject* after;  // collective of a file: the one begun after it
    };
    int32_t error = 0;
    uint32_t serial = 0;            // names a synchronous send in its receipt
    RequestObject* next = nullptr;  // pool or orphans
    bool bare = true;  // a message of a predefined type on a predefined communicator, not persistent: it
                       // holds no reference
};
static_assert(sizeof(RequestObject) == 144);

inline mpi::Request handle_of(const RequestObject* r) { return static_cast<mpi::Request>(r->handle); }

// A request in it has `real` 0, no error, is bare, and nothing hangs on it.
struct RequestPool {
    SpinLock lock;  // taken only when several threads of the application call MPI at once
    RequestObject* first;
    uint64_t posts;  // order of posting receives
};
extern RequestPool request_pool;
void grow_pool() noexcept;

// Taken only when several threads of the application call MPI at once.
class PoolGuard {
  public:
    __attribute__((always_inline)) explicit PoolGuard(SpinLock& lock) noexcept
        : lock_(__builtin_expect(front.threads != 0, 0) ? &lock : nullptr) {
        if (__builtin_expect(lock_ != nullptr, 0)) lock_->lock();
    }
    __attribute__((always_inline)) ~PoolGuard() {
        if (__builtin_expect(lock_ != nullptr, 0)) lock_->unlock();
    }
    PoolGuard(const PoolGuard&) = delete;
    PoolGuard& operator=(const PoolGuard&) = delete;

  private:
    SpinLock* lock_;
};

// `r`, the pool's first, is in use.
__attribute__((always_inline)) inline void take_first(RequestObject* r) noexcept {
    request_pool.first = r->next;
}
// `r`, stripped and without an error, is the pool's first.
__attribute__((always_inline)) inline void put_back(RequestObject* r) noexcept {
    r->real = 0;
    r->state = State::free;
    r->next = request_pool.first;
    request_pool.first = r;
}

__attribute__((always_inline)) inline RequestObject* take_request() noexcept {
    PoolGuard guard(request_pool.lock);
    if (__builtin_expect(request_pool.first == nullptr, 0)) grow_pool();
    RequestObject* r = request_pool.first;
    take_first(r);
    return r;
}

// A request of the pool with its fixed fields reset: state active, no flags.
__attribute__((always_inline)) inline RequestObject* new_request(What what) noexcept {
    RequestObject* r = take_request();
    r->bare = false;
    r->world = -1;
    r->type = nullptr;
    r->comm = nullptr;
    word_of(r) = head_word(what, State::active);
    return r;
}

// Makes it, from the pool, one that says what to send or receive.
__attribute__((always_inline)) inline void fill(RequestObject* r, What what, const void* buf,
                                                mpi::Count count, TypeObject* type, int peer, int32_t world,
                                                int tag, CommObject* comm) noexcept {
    r->world = world;
    r->buf = const_cast<void*>(buf);
    r->count = count;
    r->type = type;
    r->comm = comm;
    r->peer = peer;
    r->tag = tag;
    word_of(r) = head_word(what, State::active);
    if (__builtin_expect(type == nullptr || !type->predefined || !comm->predefined, 0)) {
        r->bare = false;
        if (type != nullptr && !type->predefined) ref(type);
        if (!comm->predefined) ref(comm);
    }
}

// Started again and again, and freed by MPI_Request_free only.
inline void make_persistent(RequestObject* r) noexcept {
    r->flags = kPersistent;
    r->bare = false;
    r->state = State::inactive;
}

// Drops what hangs on it.
void strip_request(RequestObject* r) noexcept;
// Drops references, frees what hangs on it, back to the pool.
__attribute__((always_inline)) inline void release_request(RequestObject* r) noexcept {
    if (__builtin_expect(!r->bare || r->collective != nullptr, 0)) strip_request(r);
    r->error = 0;
    PoolGuard guard(request_pool.lock);
    put_back(r);
}

// The live request of a handle; null for null handles, freed ones and garbage.
__attribute__((always_inline)) inline RequestObject* find_request(mpi::Request handle) noexcept {
    auto* r = static_cast<RequestObject*>(find_object(static_cast<uint32_t>(handle), Kind::request));
    return __builtin_expect(r != nullptr && r->state != State::free, 1) ? r : nullptr;
}

// Visits every request that is not in the pool (callers: the agent, or with the library's lock).
struct RequestChunk {
    RequestChunk* next;
    RequestObject* items;
};
inline constexpr int kRequestsPerChunk = 64;
extern RequestChunk* request_chunks;
template <typename F>
void for_each_request(F&& visit) {
    for (RequestChunk* chunk = request_chunks; chunk != nullptr; chunk = chunk->next)
        for (int i = 0; i < kRequestsPerChunk; i++)
            if (chunk->items[i].state != State::free) visit(&chunk->items[i]);
}

inline void empty_status(mpi::Status* status) noexcept {
    if (status != nullptr) *status = mpi::Status{mpi::FM_ANY_SOURCE, mpi::FM_ANY_TAG, 0, 0, 0, 0};
}
inline void proc_null_status(mpi::Status* status) noexcept {
    if (status != nullptr) *status = mpi::Status{mpi::FM_PROC_NULL, mpi::FM_ANY_TAG, 0, 0, 0, 0};
}

// Null, or persistent and not started: ignored by all waits.
inline bool ignored(const RequestObject* r) noexcept { return r == nullptr || r->state == State::inactive; }

}  // namespace fermata::front
