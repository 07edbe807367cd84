#include "erasure/code.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "base/invariant.h"

namespace fermata::erasure {
namespace {

constexpr size_t kTable = 32;  // bytes of ISA-L's, for each number

}  // namespace

Combination::Combination(uint32_t inputs, std::vector<uint8_t> rows)
    : inputs_(inputs), outputs_(static_cast<uint32_t>(rows.size() / inputs)), tables_(rows.size() * kTable) {
    always(rows.size() == size_t{inputs_} * outputs_ && outputs_ > 0, "a combination without numbers");
    ec_init_tables(static_cast<int>(inputs_), static_cast<int>(outputs_), rows.data(), tables_.data());
}

void Combination::apply(std::span<const uint8_t* const> from, std::span<uint8_t* const> to,
                        size_t bytes) const {
    always(from.size() == inputs_ && to.size() == outputs_, "chunks of another combination");
    always(bytes <= INT_MAX, "a chunk that is too long for one step");
    if (bytes == 0) return;
    // ISA-L takes no const, and writes to none of these.
    ec_encode_data(static_cast<int>(bytes), static_cast<int>(inputs_), static_cast<int>(outputs_),
                   const_cast<uint8_t*>(tables_.data()), const_cast<uint8_t**>(from.data()),
                   const_cast<uint8_t**>(to.data()));
}

Code::Code(const Layout& layout)
    : data_(layout.data()), all_(layout.members()), matrix_(size_t{data_} * all_) {
    always(data_ > 0 && data_ < all_ && all_ <= Layout::kMostMembers, "a code for a group that cannot be");
    gf_gen_cauchy1_matrix(matrix_.data(), static_cast<int>(all_), static_cast<int>(data_));
}

std::span<const uint8_t> Code::row(Position position) const {
    always(number(position) < all_, "a position that no stripe has");
    return {matrix_.data() + size_t{number(position)} * data_, data_};
}

Combination Code::parity(uint32_t first, uint32_t rows) const {
    always(rows > 0 && first + rows <= all_ - data_, "rows of parity that no stripe has");
    const uint8_t* const begin = row(Position{data_ + first}).data();
    return {data_, std::vector<uint8_t>(begin, begin + size_t{rows} * data_)};
}

Combination Code::rebuilding(std::span<const Position> present, std::span<const Position> wanted) const {
    always(present.size() == data_, "too few chunks, or too many");
    std::vector<uint8_t> of_present, inverse(size_t{data_} * data_), rows;
    for (Position position : present) {
        auto line = row(position);
        of_present.insert(of_present.end(), line.begin(), line.end());
    }
    // Cannot be: all rows of a Cauchy matrix and the unit matrix are independent of each other.
    always(gf_invert_matrix(of_present.data(), inverse.data(), static_cast<int>(data_)) == 0,
           "chunks of one position twice");
    for (Position position : wanted) {
        always(std::find(present.begin(), present.end(), position) == present.end(),
               "a chunk that is there, and is rebuilt");
        auto line = row(position);
        for (uint32_t column = 0; column < data_; ++column) {
            uint8_t sum = 0;
            for (uint32_t k = 0; k < data_; ++k)
                sum = static_cast<uint8_t>(sum ^ gf_mul(line[k], inverse[size_t{k} * data_ + column]));
            rows.push_back(sum);
        }
    }
    return {data_, std::move(rows)};
}

}  // namespace fermata::erasure
