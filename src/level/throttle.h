// Throttle keeps the threads of a copy together below a number of bytes a second, which may change while they
// work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

namespace fermata::level {

class Throttle {
  public:
    // Sets the limit; 0: none.
    void limit(uint64_t bytes_per_second);
    // Counts bytes that were copied. Returns when more may be; at once when it is given up.
    void spend(uint64_t bytes, const std::function<bool()>& given_up);

  private:
    std::mutex lock_;
    double due_ = 0;  // s: then all that was spent has had its time
    std::atomic<uint64_t> limit_{0};
};

}  // namespace fermata::level
