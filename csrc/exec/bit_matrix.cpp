#include "exec/bit_matrix.h"

#include <algorithm>
#include <array>

namespace neo {
namespace {

using Tile = std::array<uint64_t, 64>;

// Swaps ever smaller quarters across the diagonal: H. S. Warren, "Hacker's Delight", section 7-3.
void transpose_tile(Tile& tile) {
  uint64_t mask = 0x00000000ffffffff;
  for (size_t half = 32; half > 0; half /= 2, mask ^= mask << half) {
    for (size_t i = 0; i < tile.size(); i = (i + half + 1) & ~half) {
      const uint64_t swapped = (tile[i] >> half ^ tile[i + half]) & mask;
      tile[i] ^= swapped << half;
      tile[i + half] ^= swapped;
    }
  }
}

}  // namespace

void BitMatrix::make_symmetric() {
  Tile upper, lower;
  for (size_t a = 0; a < words_; ++a) {
    for (size_t b = a; b < words_; ++b) {
      const size_t above = std::min(kBits, rows_ - a * kBits), below = std::min(kBits, rows_ - b * kBits);
      for (size_t i = 0; i < kBits; ++i) {
        upper[i] = i < above ? bits_[(a * kBits + i) * words_ + b] : 0;
        lower[i] = i < below ? bits_[(b * kBits + i) * words_ + a] : 0;
      }
      Tile upper_across = upper, lower_across = lower;
      transpose_tile(upper_across);
      transpose_tile(lower_across);
      for (size_t i = 0; i < above; ++i) bits_[(a * kBits + i) * words_ + b] = upper[i] | lower_across[i];
      for (size_t i = 0; i < below; ++i) bits_[(b * kBits + i) * words_ + a] |= upper_across[i];
    }
  }
}

}  // namespace neo
