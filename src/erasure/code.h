// Code is the arithmetic of Reed-Solomon over GF(2^8) with the polynomial 0x11d (ISA-L): a Cauchy matrix, of
// which every square part can be inverted, so that any K of K+M chunks give the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "erasure/layout.h"

namespace fermata::erasure {

// Makes chunks of chunks: each output is a sum of all inputs, each times a number of its own.
class Combination {
  public:
    // `rows`: a row of `inputs` numbers for each output.
    Combination(uint32_t inputs, std::vector<uint8_t> rows);
    uint32_t inputs() const { return inputs_; }
    uint32_t outputs() const { return outputs_; }
    // Combines `bytes` bytes of each chunk; any number of them.
    void apply(std::span<const uint8_t* const> from, std::span<uint8_t* const> to, size_t bytes) const;

  private:
    uint32_t inputs_, outputs_;
    std::vector<uint8_t> tables_;
};

class Code {
  public:
    explicit Code(const Layout& layout);
    // Makes parity of data, the rows from `first` on.
    Combination parity(uint32_t first, uint32_t rows) const;
    // Makes the chunks at `wanted` out of those at `present`, which are as many as a stripe has of data; all
    // different.
    Combination rebuilding(std::span<const Position> present, std::span<const Position> wanted) const;
    // A row for each position: of data those of the unit matrix.
    const std::vector<uint8_t>& matrix() const { return matrix_; }

  private:
    std::span<const uint8_t> row(Position position) const;
    uint32_t data_, all_;
    std::vector<uint8_t> matrix_;
};

}  // namespace fermata::erasure
