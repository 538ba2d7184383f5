#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/budget.h"

namespace neo {

// Rows of bits.
class BitMatrix {
 public:
  BitMatrix() = default;
  BitMatrix(size_t rows, size_t columns) : rows_(rows), words_((columns + kBits - 1) / kBits) {
    take_memory(static_cast<int64_t>(rows_ * words_ * sizeof(uint64_t)));
    bits_.assign(rows_ * words_, 0);
  }

  bool get(size_t i, size_t j) const { return (bits_[i * words_ + j / kBits] >> (j % kBits) & 1) != 0; }
  void set(size_t i, size_t j) { bits_[i * words_ + j / kBits] |= uint64_t{1} << (j % kBits); }
  std::span<uint64_t> row(size_t i) { return {bits_.data() + i * words_, words_}; }
  std::span<const uint64_t> row(size_t i) const { return {bits_.data() + i * words_, words_}; }

  // Sets (j, i) wherever (i, j) is set; the matrix must be a square one.
  void make_symmetric();

 private:
  static constexpr size_t kBits = 64;

  size_t rows_ = 0, words_ = 0;
  std::vector<uint64_t> bits_;
};

}  // namespace neo
