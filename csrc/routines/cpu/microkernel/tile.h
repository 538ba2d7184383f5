#pragma once

// The register block that GEMM and convolution share: up to kTileRows rows (pixels) x kTileVectors vectors of columns
// (output channels), summed over k = (block, tap, lane of the block).

#include <stdint.h>

#include "routines/cpu/microkernel/short_product.h"

namespace neo {

constexpr int kTileVectors = 4;
constexpr int kTileRows = 14;

// One tap of a tile: the rows' offset from Tile::src. Rows that are not evenly spaced, or that lie outside the source,
// take their offsets from row_offset instead (Tile::kOutside reads as zero).
struct TileTap {  // nothing is set by itself: there are arrays of hundreds, of which a call needs a few
  int64_t offset;
  const int32_t* row_offset;
  int64_t index;          // among the taps of the packed weights
  int64_t weight_offset;  // of the weights, beside what the index gives
};

// dst[r, v] = clamp(bias[v] + row_bias[r] + init[r, v] + sum over k of src[r, k] * weight[k, v]).
struct Tile {
  static constexpr int32_t kOutside = INT32_MIN;

  // Row form: element (r, k) of a block is at src + tap.offset + block * block_stride + r * step + k.
  // Column form: at src + tap.offset + block * block_stride + k * step + r.
  const float* src = nullptr;
  int64_t step = 0;
  int64_t first_row = 0;  // where an export splits a tile: rows begin there
  int64_t blocks = 1;
  int64_t block_stride = 0;
  int64_t block_size = 0;  // k per block and tap
  int64_t last_size = 0;   // the same of the last block
  const TileTap* taps = nullptr;
  int64_t tap_count = 0;
  // Row form: one block of taps of one k each, whose weights are at weight_offset; rows are evenly spaced, and nothing
  // is prefetched.
  bool points = false;
  float* scratch = nullptr;  // rows * block_size floats, for taps with row_offset (row form only)

  // Vectors of one k are dense; k to k is weight_step. Ordered [block][tap][k], weight_taps of them per block.
  const float* weight = nullptr;
  int64_t weight_step = 0;
  int64_t weight_taps = 1;

  // Row form, one tap of rows that are evenly spaced: those behind these, which the next tile reads, are not near yet
  // and are fetched into the first-level cache.
  bool fetches_rows = false;
  // Data of a later tile, fetched into the second-level cache beside the sums: prefetched_step floats per k, and
  // prefetched_block floats are skipped after each block.
  const float* prefetched = nullptr;  // or null
  int64_t prefetched_step = 0;
  int64_t prefetched_block = 0;

  const float* bias = nullptr;      // dense vectors, or null
  const float* row_bias = nullptr;  // one per row, or null
  bool goes_on = false;             // begins with the sums that dst holds, whole vectors, instead of the biases
  const float* init = nullptr;      // or null; may be dst
  int64_t init_row = 0;
  int64_t init_vector[kTileVectors] = {};

  float* dst = nullptr;
  int64_t dst_row = 0;
  int64_t dst_vector[kTileVectors] = {};
  float lo = 0.0f, hi = 0.0f;  // NaN passes; -inf and +inf where there is no clamp
};

// The end of a tile whose last columns do not exist: acc holds its sums, without init and clamp, as dense rows of
// `vectors` vectors. Stores clamp(acc + init) of the first `columns` columns; what follows is left alone.
struct TileEdge {
  const float* acc = nullptr;
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t columns = 0;
  const float* init = nullptr;
  int64_t init_row = 0;
  int64_t init_vector[kTileVectors] = {};
  float* dst = nullptr;
  int64_t dst_row = 0;
  int64_t dst_vector[kTileVectors] = {};
  float lo = 0.0f, hi = 0.0f;
};

using TileKernel = void (*)(const Tile&);

// The kernels of one instruction set; null where rows exceed max_rows of that many vectors.
struct TileKernels {
  int lanes;
  int panel_vectors;                                    // of panels that pass through the first-level cache
  int max_rows[kTileVectors + 1];                       // by number of vectors, 1 ... kTileVectors
  TileKernel rows[kTileVectors + 1][kTileRows + 1];     // row form
  TileKernel columns[kTileVectors + 1][kTileRows + 1];  // column form
  void (*edge)(const TileEdge&);
  void (*short_product)(const ShortProduct&);
  void (*row_product)(const RowProduct&);
  void (*dot_product)(const DotProduct&);
  void (*clear)(float* dst, int64_t dst_row, int64_t rows, int64_t count);  // the first `count` floats of some rows
};

namespace scalar {
const TileKernels& tile_kernels();
}
namespace avx2 {
const TileKernels& tile_kernels();
}
namespace avx512 {
const TileKernels& tile_kernels();
}
namespace neon {
const TileKernels& tile_kernels();
}

}  // namespace neo
