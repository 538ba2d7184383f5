#pragma once

// The register block of products of 8-bit codes: up to kDotRows rows (pixels) x kDotVectors vectors of columns (output
// channels), summed exactly in int32. A word holds the codes of several neighbouring input channels of one row: four
// bytes, or two int16 from which the zero point is subtracted already.

#include <stdint.h>

#include "routines/patterns/codes_result.h"

namespace neo {

constexpr int kDotVectors = 4;
constexpr int kDotRows = 14;

// Where a vector of words of weights holds code i of lane c, counted in codes: lane by lane, but for int16 in vectors
// of four lanes, whose first codes lie before all second ones.
constexpr int64_t dot_weight_at(int64_t lanes, int64_t codes, int64_t c, int64_t i) {
  return codes == 2 && lanes < 8 ? i * lanes + c : c * codes + i;
}

// The epilogue of the sums of the columns of a tile: t = float(sum + init) * scale + add, then as CodesResult says.
struct DotResult : CodesResult {
  const int32_t* init = nullptr;  // by column, as all of these six
  const float* scale = nullptr;
  const float* add = nullptr;
  const int32_t* shift = nullptr;  // by which weights in words of bytes are less; where a tile has sums of its rows
  const float* addend = nullptr;   // numbers in place of a residual's, or null
  const int32_t* mask = nullptr;   // 0 for the padding lanes of a blocked layout, whose codes become 0; else -1
};

struct DotTile {
  // Word k of block b of row r at tap t is at src + taps[t] + b * block_stride + r * step + 4 * k bytes.
  const uint8_t* src = nullptr;
  int64_t step = 0;  // bytes
  const int64_t* taps = nullptr;
  int64_t tap_count = 0;
  int64_t blocks = 1, block_stride = 0;
  int64_t block_words = 0, last_words = 0;  // of the last block
  const int32_t* weight = nullptr;          // dense: [tap][block][word][vector of the tile], see dot_weight_at

  const DotResult* result = nullptr;
  const int32_t* row_sums = nullptr;  // of each row's bytes, which count times the shift of a column; or null
  int64_t column = 0;                 // of the result's vectors by column
  int64_t columns = 0;      // that exist: what is behind the last one is not written, where dst_vector is dense
  int32_t* sums = nullptr;  // [row][columns of the tile], in place of results; or null
  // In elements.
  void* dst = nullptr;
  int64_t dst_row = 0, dst_vector = 0;
  const uint8_t* residual = nullptr;  // or null
  int64_t residual_row = 0, residual_vector = 0;
};

// A row of a task's source: `columns` pixels of words, of which [begin, end) lie inside the image.
struct DotFill {
  // Planes of channels, blocks of them, or pixels of all channels.
  enum class Form : uint8_t { Planes, Blocks, Pixels };
  Form form = Form::Blocks;
  const uint8_t* src = nullptr;  // of pixel `begin`, channel 0
  int64_t src_pixel = 0;         // bytes from pixel to pixel
  int64_t src_block = 0;         // bytes from block to block; Planes: from channel to channel
  int64_t channels = 0;
  uint8_t* dst = nullptr;  // of pixel 0; a vector more than the row may be written
  int64_t dst_pixel = 0;   // bytes: a multiple of 4, or those of fewer codes than a word has
  int64_t begin = 0, end = 0, columns = 0;
  int32_t zero = 0;        // the zero point
  bool is_signed = false;  // the codes; bytes are then 128 more
};

// A panel of a matrix of codes, row by row, as the weights of a tile.
struct DotPack {
  const uint8_t* src = nullptr;
  int64_t step = 0;               // bytes from row to row
  int64_t rows = 0, columns = 0;  // that exist; of the latter more than the panel's may
  int64_t vectors = 0;            // of the panel
  bool is_signed = false;
  int32_t zero = 0;         // the zero point
  int32_t* dst = nullptr;   // [word][columns of the panel]
  int32_t from = 0;         // where words of bytes of the other operand count from
  int32_t* init = nullptr;  // -from times the sum of a column, by column
};

using DotTileKernel = void (*)(const DotTile&);

// The kernels of one instruction set for words of bytes or of int16; null where rows exceed max_rows of that many
// vectors.
struct DotKernels {
  int lanes;
  int codes;  // in a word: 4 or 2
  int max_rows[kDotVectors + 1];
  DotTileKernel tiles[kDotVectors + 1][kDotRows + 1];
  void (*fill)(const DotFill&);
  void (*pack)(const DotPack&);
  // Null where words hold no bytes. The sums of the first `bytes` bytes of pixels that are `step` bytes apart; a vector
  // of the last one is read.
  void (*sum_pixels)(const uint8_t* src, int64_t step, int64_t pixels, int64_t bytes, int32_t* sums);
  // sums[i] = the sum of src[i + k * step] over `taps` k, for `count` i.
  void (*sum_taps)(const int32_t* src, int64_t step, int64_t taps, int64_t count, int32_t* sums);
};

namespace scalar {
const DotKernels& dot_kernels(bool bytes);
}
namespace avx2 {
const DotKernels& dot_kernels(bool bytes);
}
namespace avx512 {
const DotKernels& dot_kernels(bool bytes);
}
namespace neon {
const DotKernels& dot_kernels(bool bytes);
}

}  // namespace neo
