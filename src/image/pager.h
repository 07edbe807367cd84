// The pager reads an image while the program runs already: a page is read when it is touched first, and all
// others in the background. It uses userfaultfd; a block is read, decoded and compared as a whole before any
// page of it is given to the program.
//
// The program must have another libc than this code: fork holds the program's malloc locks while it waits for
// the pager, and the pager allocates.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "image/image.h"

namespace fermata::image {

// A descriptor for faults of this process, its children included, -1 with the reason when this process may
// not have one.
int open_faults(std::string& why);

class Pager {
  public:
    using Areas = std::vector<Range>;
    struct Hooks {
        // A block cannot be had: one line. Does not return.
        std::function<void(const std::string&)> failed;
        // All is there. On a thread of the pager.
        std::function<void()> finished;
        // Memory that children get empty (MADV_WIPEONFORK).
        std::function<Areas()> wiped_in_children;
        // The areas that had huge pages. They are filled by small pages, which are joined in the end.
        Areas huge;
        // Descriptors that `failed` and `finished` need.
        std::vector<int> descriptors;
    };

    // The image's addresses are this process's, and mapped, empty, and private. Memory in `areas` (mappings
    // in address order) comes later, all else is read at once. Throws when that fails, or when this process
    // may not watch faults.
    Pager(std::unique_ptr<Reader> reader, const Areas& areas, Hooks hooks);
    // The threads end. Memory that has not come would be zeros: nobody may use it any more.
    ~Pager();
    Pager(const Pager&) = delete;
    Pager& operator=(const Pager&) = delete;

    // Reads in the background, too, from now on; again with more threads to hurry.
    void prefetch(unsigned threads);
    bool finished() const { return finished_; }

  private:
    class Work;
    std::unique_ptr<Work> work_;
    std::atomic<bool> finished_{false};
    std::thread thread_;
};

}  // namespace fermata::image
