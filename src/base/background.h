// Background does one piece of work in a thread of its own; poll() tells when it is done.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace fermata {

template <class Result>
class Background {
  public:
    Background() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!event_) fail_errno("cannot create an eventfd");
    }
    ~Background() { wait(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    bool busy() const { return thread_.joinable(); }
    // Starts `work` in the thread; not while it is busy. `work` throws nothing.
    void start(std::function<Result()> work) {
        done_ = false;
        thread_ = std::thread([this, work = std::move(work)] {
            result_ = work();
            done_ = true;
            const uint64_t one = 1;
            [[maybe_unused]] ssize_t n = ::write(event_.get(), &one, sizeof one);
        });
    }
    // Readable when take() may have something.
    int descriptor() const { return event_.get(); }
    std::optional<Result> take() {
        if (!busy() || !done_) return {};
        wait();
        return std::exchange(result_, Result());
    }
    // Its result, waited for; none: it is not busy.
    std::optional<Result> finish() {
        if (!busy()) return {};
        wait();
        return std::exchange(result_, Result());
    }
    // For its end, and nobody wants its result.
    void wait() {
        if (thread_.joinable()) thread_.join();
        uint64_t count;
        [[maybe_unused]] ssize_t n = ::read(event_.get(), &count, sizeof count);
    }

  private:
    Fd event_;
    std::thread thread_;
    Result result_{};
    std::atomic<bool> done_{false};
};

}  // namespace fermata
