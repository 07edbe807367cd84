// Pulse is the heartbeat of one connection, without I/O: when to be heard, and when the peer is lost. A peer
// that is slow is not: anything it says counts, and what was missed while this process itself stood still
// (SIGSTOP, a suspended machine) does not.
#pragma once

#include <cstdint>

namespace fermata::tree {

struct Rhythm {
    int64_t beat_ms = 5000;
    int64_t silent_ms = 30000;
};

class Pulse {
  public:
    explicit Pulse(int64_t now) : heard_(now), said_(now) {}
    void heard(int64_t now) { heard_ = now; }
    void said(int64_t now) { said_ = now; }
    bool due(const Rhythm& rhythm, int64_t now) const { return now - said_ >= rhythm.beat_ms; }
    bool lost(const Rhythm& rhythm, int64_t now) const { return now - heard_ >= rhythm.silent_ms; }

  private:
    int64_t heard_, said_;
};

// Whether the process that asks has itself stood still since it asked the last time.
class Awake {
  public:
    // True: nothing can be said of silence before now.
    bool stood_still(const Rhythm& rhythm, int64_t now) {
        bool gap = last_ != 0 && now - last_ > rhythm.silent_ms / 3;
        last_ = now;
        return gap;
    }

  private:
    int64_t last_ = 0;
};

}  // namespace fermata::tree
