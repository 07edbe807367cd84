// Orphans takes care of the program's children whose memory has not been read yet (pager.h) when the
// program's process ends.
//
// The kernel would give such children zeros. So a keeper, a process that shares memory and descriptors with
// the pager's threads, holds the descriptors from the first such child on. Once the pager's threads are gone,
// a child that touches missing memory gets SIGBUS.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/range.h"

namespace fermata::image {

class Orphans {
  public:
    // `memory`: what the program's process watches; given back when it is gone.
    explicit Orphans(const std::vector<Range>& memory) : memory_(memory) {}
    ~Orphans() { end(); }
    Orphans(const Orphans&) = delete;
    Orphans& operator=(const Orphans&) = delete;

    // All by the same thread of the pager; should it end before end(), then the process has.
    // A child was made, and waits until we know of it. Throws when its descriptor cannot be kept.
    void add(int faults);
    // Notes that this process has ended.
    void remove(int faults) noexcept;
    // Nobody is missing anything any more.
    void end() noexcept;

    static constexpr uint64_t kNeededFeature = 1ull << 14;  // UFFD_FEATURE_POISON, Linux 6.6

  private:
    static constexpr int kMost = 1024;
    static int keep(void* self) noexcept;
    void keep_until_the_end() noexcept;
    bool take(int faults) noexcept;

    const std::vector<Range>& memory_;
    std::atomic<int> faults_[kMost] = {};  // descriptor + 1, or 0
    std::atomic<uint32_t> done_{0};
    int process_ = 0, thread_ = 0, keeper_ = 0;
    std::vector<char> stack_;
};

}  // namespace fermata::image
