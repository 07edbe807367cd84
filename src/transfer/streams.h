// Streams of ranks whose copies are on other nodes: the daemon of the rank's node takes what the rank has
// written out of its memory (base/stream_ring.h), that of the copy's node puts it into the copy's, and says
// how much has arrived, which outlives the rank's node.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/generation.h"
#include "base/medium.h"
#include "base/rank.h"
#include "base/stream_ring.h"
#include "transfer/stream.h"

namespace fermata::transfer {

// The memory of one stream, mapped beside the process that it is of.
class StreamMemory {
  public:
    // Throws Error when the descriptor has no such memory.
    explicit StreamMemory(int descriptor);
    ~StreamMemory();
    StreamMemory(const StreamMemory&) = delete;
    StreamMemory& operator=(const StreamMemory&) = delete;

    // Both ends find it closed.
    void close() { __atomic_store_n(&ring_->closed, 1, __ATOMIC_RELEASE); }
    bool is_closed() const { return __atomic_load_n(&ring_->closed, __ATOMIC_ACQUIRE) != 0; }
    uint64_t written() const { return __atomic_load_n(&ring_->written, __ATOMIC_ACQUIRE); }
    // Nothing goes to the copy any more, or it takes nothing. The stream is open still: until the root has
    // taken the copy from the rank, what has not arrived binds the rank, and the copy may get its place.
    void breaks() { broken_ = true; }
    bool is_broken() const { return broken_ || __atomic_load_n(&ring_->given_up, __ATOMIC_ACQUIRE) != 0; }
    bool is_news() { return is_broken() && !std::exchange(told_, true); }

    // ---- on the rank's node

    // Gives what is written and not taken, or a part of it.
    View there() const;
    void taken(size_t bytes);
    // A copy follows from now on. All that was written by then has to be there before it counts as one.
    uint64_t begin();
    bool is_followed() const { return __atomic_load_n(&ring_->elsewhere, __ATOMIC_ACQUIRE) != 0; }
    // Waits until something is written, for so many ms at most.
    void wait(int ms);
    void arrived(uint64_t bytes);
    uint64_t arrived() const { return __atomic_load_n(&ring_->arrived, __ATOMIC_ACQUIRE); }

    // ---- on the copy's

    // Puts in what there is room for; how much of it.
    size_t put(View bytes);

  private:
    StreamRing* ring_;
    std::atomic<bool> broken_{false};
    bool told_ = false;
};

// The streams that begin on this node, by rank. Any thread.
class Streams {
  public:
    // Closes the one before.
    void add(Rank rank, std::shared_ptr<StreamMemory> memory);
    void forget(Rank rank);
    std::shared_ptr<StreamMemory> find(Rank rank) const;
    // Those that have broken since they were asked for the last time.
    std::vector<Rank> broken() const;

  private:
    mutable std::mutex mutex_;
    std::map<Rank, std::shared_ptr<StreamMemory>> all_;
};

// Carries a stream to the other end until that is gone, which breaks it, or until the memory is closed.
void carry(Stream& stream, StreamMemory& memory);

// The copy's end: fills its memory from the rank's node, in a thread of its own.
class Inflow {
  public:
    struct Source {
        std::string addresses;  // of the Server there
        NodePlace place;
        Generation generation;  // of the image that began the stream
        Rank rank{0};
    };
    Inflow(Source source, const wire::Key& key, std::shared_ptr<StreamMemory> memory, int64_t silent_ms);
    ~Inflow() { stop(); }
    // Nothing comes any more: what has not arrived by now never does.
    void stop();
    // All that the rank had written when this began is here.
    bool has_caught_up() const { return caught_up_; }
    // True when it has ended by itself: the rank's node is gone, or has closed it.
    bool is_over() const { return over_; }

  private:
    void run();
    void take_in(Stream& stream);
    const Source source_;
    const wire::Key key_;
    const std::shared_ptr<StreamMemory> memory_;
    const int64_t silent_ms_;
    std::atomic<bool> stopping_{false}, over_{false}, caught_up_{false};
    std::thread thread_;
};

}  // namespace fermata::transfer
