// One value that one thread gives to another one, once.
#pragma once

#include <atomic>
#include <memory>

namespace fermata::lower {

template <class T>
class HandOver {
  public:
    HandOver() = default;
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
    ~HandOver() { delete value_.load(); }

    // The giver. All that it wrote before is seen by whoever takes the value.
    void give(T value) { delete value_.exchange(new T(std::move(value)), std::memory_order_acq_rel); }
    // The taker. Null: nothing has been given yet, or it was taken.
    std::unique_ptr<T> take() {
        return std::unique_ptr<T>(value_.exchange(nullptr, std::memory_order_acq_rel));
    }

  private:
    std::atomic<T*> value_{nullptr};
};

}  // namespace fermata::lower
