// Stream counts the records of a replicated rank: how many there are, how many are stable, and up to where
// all that could have been otherwise is.
#pragma once

#include "replay/types.h"

namespace fermata::replay {

// Says whether a copy follows: without one every record is stable.
enum class Copy : uint8_t { none, follows };

class Stream {
  public:
    Position end() const { return end_; }
    Position stable() const { return copy_ == Copy::none ? end_ : stable_; }
    bool has_copy() const { return copy_ == Copy::follows; }
    bool determinants_stable() const { return determinant_ <= stable(); }

    void add(bool determinant) {
        ++end_;
        if (determinant) determinant_ = end_;
    }
    void became_stable(Position up_to) {
        if (up_to > stable_) stable_ = up_to;
    }
    // A copy begins with all that has been told so far.
    void copy(Copy copy) {
        copy_ = copy;
        stable_ = end_;
    }

  private:
    Copy copy_ = Copy::none;
    Position end_{}, stable_{}, determinant_{};
};

}  // namespace fermata::replay
