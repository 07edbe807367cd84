// A helper command (system, popen, subprocess.run) that runs when a checkpoint is asked for: its end cannot
// be heard after a restart. Most take a moment, so the checkpoint waits a little for it.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace fermata {

class HelpersEnd {
  public:
    // True once the checkpoint need not wait any more. The question is cheap where there are no children.
    bool reached(uint64_t now_ns);

  private:
    uint64_t since_ = 0;     // ns; 0 = nobody waits
    uint64_t last_ = 0;      // ns; when one was last seen
    std::set<int> lasting_;  // children that were waited for in vain: once does
    std::set<int> awaited_;
    std::map<int, uint64_t> ended_;  // of those that were never seen running: since when
};

}  // namespace fermata
