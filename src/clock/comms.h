// The communicators of a rank by their uids, and targets of uids that nobody has registered here. Under the
// clock's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock/arena.h"
#include "clock/comm.h"
#include "clock/types.h"

namespace fermata::clock {

// Every communicator is in the list and in its bucket, once. The newest is the first of the list.
class Comms {
  public:
    explicit Comms(Arena& arena);

    class Iterator {
      public:
        explicit Iterator(Comm* at) : at_(at) {}
        Comm& operator*() const { return *at_; }
        Iterator& operator++() {
            at_ = at_->next;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at_ != other.at_; }

      private:
        Comm* at_;
    };
    Iterator begin() const { return Iterator(first_); }
    Iterator end() const { return Iterator(nullptr); }

    Comm* find(Uid uid) const;
    // `uid` must not be there yet.
    Comm* add(Arena& arena, Uid uid, int32_t size);
    void take_out(Arena& arena, Comm* comm);
    size_t count() const { return count_; }

  private:
    static constexpr size_t kFirstBuckets = 64;  // doubled whenever there are more communicators
    Comm*& bucket(Uid uid) const;
    void grow(Arena& arena);

    Comm* first_ = nullptr;
    Comm** buckets_;
    size_t bucket_count_ = kFirstBuckets;
    size_t count_ = 0;
};

// T of uids that have no Comm here: a communicator that is made meanwhile finds its target.
class Targets {
  public:
    void raise(Arena& arena, Uid uid, Instance target);
    Instance find(Uid uid) const;  // 0 = none
    void clear(Arena& arena);

  private:
    struct Target {
        Uid uid;
        Instance instance;
        Target* next;
    };
    // The targets of one checkpoint; ranks hear those of all communicators of the job that are not balanced.
    static constexpr size_t kBuckets = 4096;
    Target** buckets_ = nullptr;  // made at the first checkpoint
};

}  // namespace fermata::clock
