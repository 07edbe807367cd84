// Orders are what a daemon that comes to another parent may have missed. The root numbers what it tells
// everybody; a parent keeps the newest of each kind that still means something, and gives those that are
// newer than what a child has heard.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "wire/frame.h"

namespace fermata::tree {

// The clock's word comes right behind this order: both are written together, which halves the calls of the
// kernel and the wakings at every level. (Other orders are written at once: what a daemon does by them may
// take its time.)
bool is_followed(const wire::Message& order);

class Orders {
  public:
    void add(const wire::Order& order);
    // In their order.
    std::vector<wire::Order> since(uint64_t heard) const;
    uint64_t newest() const { return newest_; }

  private:
    uint64_t newest_ = 0;
    std::map<size_t, wire::Order> kept_;  // by the message's place in wire::Message
};

}  // namespace fermata::tree
