// Memory that still has to be filled: which addresses of the image, and where they are now. The program may
// unmap, empty and move memory before it has come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace fermata::image {

class Whereabouts {
  public:
    struct Part {
        uint64_t now, was, length;
    };

    // Not yet moved.
    void add(uint64_t begin, uint64_t length);
    // Nothing of the image belongs at these (present) addresses any more.
    void forget(uint64_t begin, uint64_t end);
    // What is at `from` now, will be at `to`; what was there is forgotten.
    void move(uint64_t from, uint64_t to, uint64_t length);

    // Where the image's memory is now, as far as it is anywhere.
    std::vector<Part> now_of(uint64_t was, uint64_t length) const;
    // Which of the image's addresses belongs here.
    std::optional<uint64_t> was_of(uint64_t now) const;

  private:
    void put(const Part& part);
    std::map<uint64_t, Part> by_now_, by_was_;  // the same parts, which never overlap
};

}  // namespace fermata::image
