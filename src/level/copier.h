// Copier copies generations from the memory of this node into the directory of files, in a thread of its own,
// with a limit on its bandwidth. What it has copied is an image only once the root has committed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/generation.h"
#include "files/folder.h"

namespace fermata::level {

class Copier {
  public:
    Copier();
    ~Copier();  // gives up what is not done
    Copier(const Copier&) = delete;
    Copier& operator=(const Copier&) = delete;

    struct Order {
        uint32_t number = 0;
        uint64_t job = 0;
        std::vector<std::pair<Generation, files::Folder>> from;  // in memory
        std::string to;                                          // the directory of files
    };
    struct Result {
        uint32_t number = 0;
        uint64_t bytes = 0;
        std::string error;  // "" = all is on storage
    };
    bool busy() const { return thread_.joinable(); }
    uint32_t number() const { return order_.number; }
    // Not while it is busy.
    void start(Order order, uint64_t bytes_per_second);
    // 0: no limit. Also while it works.
    void limit(uint64_t bytes_per_second) { limit_ = bytes_per_second; }

    // poll() finds it readable when take() may have something.
    int descriptor() const { return event_.get(); }
    std::optional<Result> take();

  private:
    void work();
    void copy_generation(const files::Folder& from, const files::Folder& to);
    void copy_file(const files::Folder& from, const std::string& name, const files::Folder& to, bool shared);
    void keep_to_limit(uint64_t bytes);

    Fd event_;
    std::thread thread_;
    Order order_;
    Result result_;
    std::atomic<uint64_t> limit_{0};
    std::atomic<bool> given_up_{false}, done_{false};
};

}  // namespace fermata::level
