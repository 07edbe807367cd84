// A ToldSet has the instances of one communicator that somebody was told complete: a prefix and what lies
// beyond it. A count would not do: a root that leaves early is told a later instance before an earlier one.
#pragma once

#include "replay/memory.h"
#include "replay/types.h"

namespace fermata::replay {

class ToldSet {
  public:
    bool has(Instance i) const;
    void add(Instance i);
    // Takes out what the other one has not.
    void keep_those_in(const ToldSet& other);
    void add_all(const ToldSet& other);
    bool has_all_of(const ToldSet& other) const;
    // Takes over what prefix() and beyond() of another set have said. False: no set says that.
    bool become(Instance prefix, Vec<Instance> beyond);
    Instance prefix() const { return prefix_; }
    Instance last() const { return beyond_.empty() ? prefix_ : beyond_.back(); }
    const Vec<Instance>& beyond() const { return beyond_; }
    bool operator==(const ToldSet&) const = default;

  private:
    Instance prefix_{};     // all up to this one
    Vec<Instance> beyond_;  // ascending, none of them next(prefix_)
};

}  // namespace fermata::replay
