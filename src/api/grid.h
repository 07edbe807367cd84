// Grid is a rank's part of a distributed array: which elements of the array lie where in the part.
//
// Along dimension d the part's element i is element offset[d] + i * stride[d] of the array. Both lie in
// memory in C order, the last index fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fermata::api {

using Index = std::vector<int64_t>;  // one number per dimension

struct Grid {
    Index offset, extent, stride;

    size_t dimensions() const { return extent.size(); }
    int64_t elements() const;  // 0: the part is empty
    bool operator==(const Grid&) const = default;
};

// Product of the numbers, -1 when it does not fit 62 bits or one is negative.
int64_t product(const Index& numbers);
// Why this cannot be a part of an array of that shape; "" = it can.
std::string why_no_part(const Grid& grid, const Index& shape);

// Calls `run` for elements that both parts hold, in runs that are contiguous in both: first element of the
// run in `to`, in `from`, and their number.
void for_each_common(const Grid& to, const Grid& from,
                     const std::function<void(int64_t to, int64_t from, int64_t count)>& run);

// Which elements of a part are there already.
class Coverage {
  public:
    explicit Coverage(int64_t elements) : bits_(static_cast<size_t>(elements + 63) / 64), left_(elements) {}
    void add(int64_t first, int64_t count);
    int64_t missing() const { return left_; }

  private:
    std::vector<uint64_t> bits_;
    int64_t left_;
};

}  // namespace fermata::api
