#pragma once

// Products of float32 rows by weights that are codes of 4 or 8 bits, with a scale and perhaps a zero point for each
// block along the sum. A word of a vector's lane holds neighbouring codes of one column, the first in its lowest bits.
// Where the rows may be rounded, each block of a row becomes codes of 8 bits of a scale of its own, whose products are
// summed exactly: words of 4 bits then hold four codes in the lower halves of their bytes, the next four in the higher.

#include <stdint.h>

namespace neo {

constexpr int kBlockRows = 8;     // of a register block at most
constexpr int kBlockVectors = 4;  // of columns

// Rows as codes, and by row and block the scale and `zero_sum`: the sum of the codes times the zero point of all
// weights, or times one where there are several, less than 0.
struct CodedRows {
  int8_t* codes = nullptr;
  float* scales = nullptr;
  int32_t* zero_sums = nullptr;
};

struct BlockTile {
  const float* x = nullptr;     // rows that prepare() made, x_row apart
  const float* sums = nullptr;  // of each row's blocks, blocks apart; where there are zero points
  int64_t x_row = 0;
  CodedRows rows;  // in place of x and sums, codes x_row apart
  // Words, scales and zero points of the lanes, by vector of columns, then block; those of the first vector.
  const uint32_t* words = nullptr;
  const float* scales = nullptr;
  const uint8_t* zeros = nullptr;  // or null: all are `middle`
  float middle = 0;
  int64_t blocks = 0, block_words = 0;
  const float* bias = nullptr;  // or null
  float lo = 0, hi = 0;
  float* y = nullptr;
  int64_t y_row = 0;
  int64_t columns = 0;  // that exist from the first vector on
};

struct BlockKernels {
  int lanes;
  int max_rows;
  // Rows as tiles read them, from blocks of `block` elements of which the last may be shorter, to blocks of `padded`:
  // the numbers that meet codes higher in a word are smaller by as much. `sums`: of each block, or null.
  void (*prepare)(const float* x, int64_t depth, int64_t block, int64_t padded, float* to, float* sums);
  // Sums, by rows: how many a kernel takes (1, 2, 4 or 8), and vectors: so many, or 1.
  int (*vectors)(int rows);
  void (*tile)(const BlockTile& tile, int rows, int vectors);
  // The same of rows as codes, for 1, 4 or 8 of them; null where the tier has no sums of four products. A row with a
  // number that is not finite has a scale that is none.
  void (*encode)(const float* x, int64_t depth, int64_t block, int64_t padded, int32_t zero, const CodedRows& to);
  void (*coded_tile)(const BlockTile& tile, int rows, int vectors);
};

namespace scalar {
const BlockKernels& block_kernels(int bits);
}
namespace avx2 {
const BlockKernels& block_kernels(int bits);
}
namespace avx512 {
const BlockKernels& block_kernels(int bits);
}
namespace neon {
const BlockKernels& block_kernels(int bits);
}

}  // namespace neo
