// Fan is who starts whose node daemon by ssh: the first host so many, each of their daemons so many more,
// once it has come. So nobody runs more than a few starters at once, and a job of many hosts starts in a few
// steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fermata::launch::own {

class Fan {
  public:
    Fan() = default;
    // `nodes`: numbers of the launcher's list.
    Fan(std::vector<uint32_t> nodes, size_t width)
        : nodes_(std::move(nodes)), width_(width > 0 ? width : 1) {}

    std::vector<uint32_t> by_root() const { return part(0); }
    std::vector<uint32_t> by(uint32_t node) const;

  private:
    std::vector<uint32_t> part(size_t begin) const;
    std::vector<uint32_t> nodes_;
    size_t width_ = 64;
};

}  // namespace fermata::launch::own
