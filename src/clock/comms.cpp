#include "clock/comms.h"

#include <algorithm>

#include "clock/hash.h"

namespace fermata::clock {

Comms::Comms(Arena& arena) : buckets_(static_cast<Comm**>(arena.take(kFirstBuckets * sizeof(void*)))) {}

Comm*& Comms::bucket(Uid uid) const { return buckets_[hash_of(uid) & (bucket_count_ - 1)]; }

Comm* Comms::find(Uid uid) const {
    for (Comm* c = bucket(uid); c; c = c->next_hash)
        if (c->uid == uid) return c;
    return nullptr;
}

void Comms::grow(Arena& arena) {
    Comm** old = buckets_;
    size_t old_count = bucket_count_;
    bucket_count_ *= 2;
    buckets_ = static_cast<Comm**>(arena.take(bucket_count_ * sizeof(void*)));
    for (Comm& c : *this) {
        Comm*& head = bucket(c.uid);
        c.next_hash = head;
        head = &c;
    }
    arena.give(old, old_count * sizeof(void*));
}

Comm* Comms::add(Arena& arena, Uid uid, int32_t size) {
    if (count_ >= bucket_count_) grow(arena);
    Comm* c = arena.make<Comm>();
    c->uid = uid;
    c->size = size;
    Comm*& head = bucket(uid);
    c->next_hash = head;
    head = c;
    c->next = first_;
    if (first_) first_->previous = c;
    first_ = c;
    count_++;
    return c;
}

void Comms::take_out(Arena& arena, Comm* comm) {
    for (Comm** link = &bucket(comm->uid); *link; link = &(*link)->next_hash)
        if (*link == comm) {
            *link = comm->next_hash;
            break;
        }
    (comm->previous ? comm->previous->next : first_) = comm->next;
    if (comm->next) comm->next->previous = comm->previous;
    count_--;
    arena.drop(comm);
}

void Targets::raise(Arena& arena, Uid uid, Instance target) {
    if (!buckets_) buckets_ = static_cast<Target**>(arena.take(kBuckets * sizeof(void*)));
    Target*& head = buckets_[hash_of(uid) & (kBuckets - 1)];
    for (Target* t = head; t; t = t->next)
        if (t->uid == uid) {
            t->instance = std::max(t->instance, target);
            return;
        }
    auto* t = arena.make<Target>();
    t->uid = uid;
    t->instance = target;
    t->next = head;
    head = t;
}

Instance Targets::find(Uid uid) const {
    if (!buckets_) return 0;
    for (Target* t = buckets_[hash_of(uid) & (kBuckets - 1)]; t; t = t->next)
        if (t->uid == uid) return t->instance;
    return 0;
}

void Targets::clear(Arena& arena) {
    if (!buckets_) return;
    for (size_t i = 0; i < kBuckets; i++)
        while (Target* t = buckets_[i]) {
            buckets_[i] = t->next;
            arena.drop(t);
        }
}

}  // namespace fermata::clock
