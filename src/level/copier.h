// Copier copies generations from the memory of this node, or from its local directory, into the directory of
// files, in a thread of its own, with a limit on its bandwidth. Every image is compared with its checksums,
// and with what was written of it; what is damaged here fails the copy. A copy is an image only once the root
// has committed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/background.h"
#include "base/generation.h"
#include "files/folder.h"
#include "image/image.h"
#include "level/throttle.h"

namespace fermata::level {

class Copier {
  public:
    Copier() = default;
    ~Copier() { given_up_ = true; }  // what is not done
    Copier(const Copier&) = delete;
    Copier& operator=(const Copier&) = delete;

    struct Order {
        uint32_t number = 0;
        uint64_t job = 0;
        std::vector<std::pair<Generation, files::Folder>> from;  // on this node
        std::string to;                                          // the directory of files
        std::set<uint32_t> ranks = {};                           // whose images
        image::KeyPointer key = {};                              // of the images
    };
    struct Result {
        uint32_t number = 0;
        uint64_t bytes = 0;
        std::string error;  // "" = all is on storage
    };
    bool busy() const { return work_.busy(); }
    uint32_t number() const { return order_.number; }
    // Begins a copy; not while it is busy.
    void start(Order order, uint64_t bytes_per_second);
    // Limits the bandwidth; 0: no limit. Also while it works.
    void limit(uint64_t bytes_per_second) { throttle_.limit(bytes_per_second); }

    // poll() finds it readable when take() may have something.
    int descriptor() const { return work_.descriptor(); }
    std::optional<Result> take() { return work_.take(); }

  private:
    Result work();
    // A file that was copied, and what was written of it.
    struct Copied {
        files::Folder from;
        std::string name;
        uint64_t bytes = 0;
        image::Checksum checksum;
    };
    void copy_image(Generation generation, Rank rank, const files::Folder& from, const files::Folder& to);
    std::optional<Copied> copy_file(const files::Folder& from, const std::string& name,
                                    const files::Folder& to);

    Order order_;
    Throttle throttle_;
    uint64_t bytes_ = 0;
    std::atomic<bool> given_up_{false};
    Background<Result> work_;  // the last: it ends first
};

}  // namespace fermata::level
