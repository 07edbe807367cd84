#include "api/grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace fermata::api {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

// Neighbours along one dimension: elements to..to+count-1 of one part are from..from+count-1 of the other.
struct Piece {
    int64_t to, from, count;
};

// Along dimension d, in order of `to`.
std::vector<Piece> pieces(const Grid& to, const Grid& from, size_t d) {
    std::vector<Piece> found;
    const int64_t a = to.stride[d], b = from.stride[d];
    const int64_t shift = to.offset[d] - from.offset[d];  // from's index * b = shift + to's index * a
    if (a == b) {
        if (shift % b != 0) return found;
        int64_t k = shift / b;  // from = to + k
        int64_t first = std::max<int64_t>(0, -k), end = std::min(to.extent[d], from.extent[d] - k);
        if (first < end) found.push_back({first, first + k, end - first});
        return found;
    }
    for (int64_t i = 0; i < to.extent[d]; ++i) {
        int64_t at = shift + i * a;
        if (at < 0 || at % b != 0 || at / b >= from.extent[d]) continue;
        Piece* last = found.empty() ? nullptr : &found.back();
        if (last && last->to + last->count == i && last->from + last->count == at / b)
            ++last->count;
        else
            found.push_back({i, at / b, 1});
    }
    return found;
}

}  // namespace

int64_t product(const Index& numbers) {
    int64_t all = 1;
    for (int64_t n : numbers) {
        if (n < 0) return -1;
        if (n != 0 && all > kMost / n) return -1;
        all *= n;
    }
    return all;
}

int64_t Grid::elements() const { return product(extent); }

std::string why_no_part(const Grid& grid, const Index& shape) {
    for (size_t d = 0; d < shape.size(); ++d) {
        if (grid.extent[d] < 0) return fmt::format("extent[{}] is {}", d, grid.extent[d]);
        if (grid.stride[d] < 1) return fmt::format("stride[{}] is {}, and is at least 1", d, grid.stride[d]);
    }
    if (grid.elements() < 0) return "it has more elements than any memory";
    if (grid.elements() == 0) return {};
    for (size_t d = 0; d < shape.size(); ++d) {
        if (grid.offset[d] < 0) return fmt::format("offset[{}] is {}", d, grid.offset[d]);
        // By division: the product may not fit.
        if (grid.offset[d] >= shape[d] ||
            (shape[d] - 1 - grid.offset[d]) / grid.stride[d] < grid.extent[d] - 1)
            return fmt::format(
                "offset[{0}] {1}, extent[{0}] {2}, stride[{0}] {3} reach beyond global[{0}] {4}", d,
                grid.offset[d], grid.extent[d], grid.stride[d], shape[d]);
    }
    return {};
}

void for_each_common(const Grid& to, const Grid& from,
                     const std::function<void(int64_t, int64_t, int64_t)>& run) {
    const size_t n = to.dimensions();
    if (to.elements() == 0 || from.elements() == 0) return;
    std::vector<std::vector<Piece>> along(n);
    for (size_t d = 0; d < n; ++d) {
        along[d] = pieces(to, from, d);
        if (along[d].empty()) return;
    }
    // The last dimension in runs; the others element by element, as a counter with a digit per dimension.
    struct Digit {
        size_t piece = 0;
        int64_t in = 0;
    };
    std::vector<Digit> at(n - 1);
    for (;;) {
        int64_t to_row = 0, from_row = 0;
        for (size_t d = 0; d + 1 < n; ++d) {
            const Piece& piece = along[d][at[d].piece];
            to_row = (to_row + piece.to + at[d].in) * to.extent[d + 1];
            from_row = (from_row + piece.from + at[d].in) * from.extent[d + 1];
        }
        for (const Piece& piece : along[n - 1]) run(to_row + piece.to, from_row + piece.from, piece.count);
        size_t d = n - 1;
        while (d > 0) {
            Digit& digit = at[d - 1];
            if (++digit.in < along[d - 1][digit.piece].count) break;
            digit.in = 0;
            if (++digit.piece < along[d - 1].size()) break;
            digit.piece = 0;
            --d;
        }
        if (d == 0) return;
    }
}

void Coverage::add(int64_t first, int64_t count) {
    for (int64_t end = first + count; first < end;) {
        const int64_t bit = first % 64, here = std::min(end - first, 64 - bit);
        const uint64_t mask = (here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1) << bit;
        uint64_t& word = bits_[static_cast<size_t>(first / 64)];
        left_ -= std::popcount(mask & ~word);
        word |= mask;
        first += here;
    }
}

}  // namespace fermata::api
