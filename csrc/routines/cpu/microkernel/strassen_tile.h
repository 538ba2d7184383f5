#pragma once

// The register block of one level of Strassen's algorithm in the form that Winograd gave it: a product of matrices by
// seven products of their quarters in place of eight, for sums of the quarters.
//
// Rows (pixels) are cut into left and right ones, columns (output channels) into upper and lower ones, what is summed
// over into a first and a second half. With s and r the left and right rows of the first half, t and u those of the
// second, and the weights a (upper) and c (lower) of the first half, b and d of the second, the products and what is
// made of them are
//
//   p1 = s a                    p4 = (u - r + s - t) (-d)   upper left    p1 + p2
//   p2 = t b                    p5 = (r - s) (c + d)        lower left    p1 + p6 + p7 + p4
//   p6 = (u - r + s) (c + d - a)                            lower right   p1 + p6 + p7 + p5
//   p7 = (u - r) (a - c)        p3 = u (a + b - c - d)      upper right   p1 + p6 + p5 + p3
//
// Sums of weights are made when they are packed, those of rows beside the products before those that read them, which
// leave ports for loads and stores idle, and those of products in the registers. Channels that neither half sums over
// are the rest: before a quarter leaves the registers it is summed there, of the left or right rows and of the upper or
// lower columns.

#include <stdint.h>

#include "routines/cpu/microkernel/tile.h"

namespace neo {

// In the order in which a tile takes them.
enum StrassenProduct { kStrassenP1, kStrassenP2, kStrassenP6, kStrassenP7, kStrassenP4, kStrassenP5, kStrassenP3 };
constexpr int kStrassenProducts = 7;
constexpr int kStrassenSums = 4;   // of rows: the sources of P6, P7, P4 and P5
constexpr int kStrassenPlain = 2;  // products before those that read sums
constexpr int kStrassenQuarters = 4;
// Whether a quarter ends with a product.
constexpr bool ends_quarter(int product) {
  return product == kStrassenP2 || product >= kStrassenP4;
}

// Sums of rows, made in the order of blocks: some rows of one at each step of a product.
struct StrassenSums {
  const float* source = nullptr;  // left rows of the next block, of the first half
  int64_t right = 0, second = 0;  // so many floats behind are the right ones, and the second half
  int64_t stride = 0;             // from block to block
  float* sums = nullptr;          // [sum][block][row]: u - r + s, u - r, u - r + s - t, r - s
  int64_t sum = 0, sums_stride = 0;
  int64_t blocks = 0;          // that are left
  int64_t rows = 0, step = 0;  // of a block, and at once
  int64_t row = 0;             // the next one of the next block
};

struct StrassenTile {
  // Element (row, k) of a block of a product's source is at source + block * stride + row * lanes + k.
  const float* source[kStrassenProducts];
  int64_t stride[kStrassenProducts];
  int64_t blocks = 0;                         // of `lanes` k, of each product
  const float* rest[2] = {nullptr, nullptr};  // left and right rows, like a source
  int64_t rest_stride = 0, rest_blocks = 0;
  const float* weight = nullptr;  // [product, or rest behind the product that ends a quarter][k][vector]

  // Data of a later tile, fetched into the second-level cache beside the first prefetched_blocks blocks: see Tile.
  const float* prefetched = nullptr;  // or null
  int64_t prefetched_step = 0;
  int64_t prefetched_block = 0;
  int64_t prefetched_blocks = 0;
  // The same beside the other blocks; or null.
  const float* later = nullptr;
  int64_t later_step = 0;

  // Those that its own products read, made beside the first two of them, which do not; and others, beside the rest.
  StrassenSums own;
  StrassenSums* others = nullptr;  // or null

  // Results of the upper left quarter; right and lower ones lie so many floats behind. Row to row are `lanes` floats.
  float* dst = nullptr;
  int64_t dst_vector = 0, dst_lower = 0;
  const float* residual = nullptr;  // or null; may be dst
  int64_t residual_vector = 0, residual_lower = 0;
  // Places of the level around this one: a quarter is added to `also`, and then `partial` is added to the quarter. Each
  // may be null, or dst.
  const float* partial = nullptr;
  float* also = nullptr;
  int64_t partial_vector = 0, partial_lower = 0;  // of both
  int64_t right = 0;                              // in all of these
  int64_t skipped[2] = {0, 0};                    // left and right rows before this one are not stored
  const float* bias[2] = {nullptr, nullptr};      // of upper and lower columns, or null
  float lo = 0.0f, hi = 0.0f;                     // see Tile
};

// Pixels that lie `step` floats apart, of some blocks of channels, one behind the other.
struct StrassenPixels {
  const float* src = nullptr;
  int64_t src_block = 0, step = 0;
  float* dst = nullptr;
  int64_t dst_block = 0;
  int64_t blocks = 0, count = 0;
};

// The kernels of one instruction set, by vectors of half the columns, fewest_vectors or more, and by rows of a half: as
// many as a Tile may have, no fewer than half of that, or one.
struct StrassenKernels {
  int panel_vectors;   // of half the columns of a panel, where they divide
  int fewest_vectors;  // else
  int steps;           // of each block of a product, at each of which a tile makes sums
  bool has_few_registers;
  int max_rows[kTileVectors + 1];
  void (*tile[kTileVectors + 1][kTileRows + 1])(const StrassenTile&);
  void (*copy)(const StrassenPixels&);
};
constexpr int64_t fewest_strassen_rows(int64_t most) {
  return (most + 1) / 2;
}

namespace scalar {
const StrassenKernels& strassen_kernels();
}
namespace avx2 {
const StrassenKernels& strassen_kernels();
}
namespace avx512 {
const StrassenKernels& strassen_kernels();
}
namespace neon {
const StrassenKernels& strassen_kernels();
}

}  // namespace neo
