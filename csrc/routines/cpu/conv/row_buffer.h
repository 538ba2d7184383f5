#pragma once

// Input rows of a task, spread into the phases of the horizontal stride with their padding, so that every tap of a
// register block reads consecutive floats: phase p of a row holds column first_column + q * stride + p at q, and zero
// where that lies outside the image.

#include <stdint.h>

#include "routines/patterns/conv_shape.h"

namespace neo {

// Neighbouring places of a row.
struct ShortRun {
  int64_t to = 0, from = 0, length = 0;
};

// Rows whose elements alternate in a line: dst[i] = clamp(src[i % rows * src_row + i / rows] + residual[i]),
// 0 <= i < count, and so for some lines. NaN stays.
struct Interleaving {
  const float* src = nullptr;
  int64_t src_row = 0, rows = 1, count = 0;
  const float* residual = nullptr;  // or null
  float lo = 0, hi = 0;
  float* dst = nullptr;
  int64_t lines = 1, src_line = 0, dst_line = 0;  // the residual's lines are as far apart as those of dst
};

struct RowKernels {
  // For each run: dst[to + i] = src[from + i], 0 <= i < length. Runs are in the order of their places. Up to a vector
  // is written behind the last place and read behind the last element.
  void (*gather_runs)(const float* src, const ShortRun* runs, int64_t count, float* dst);
  // dst[i] = src[places[i]], 0 <= i < count rounded up to whole vectors.
  void (*gather_places)(const float* src, const int32_t* places, int64_t count, float* dst);
  // dst[i] = src[i * stride], 0 <= i < count
  void (*take_every)(const float* src, int64_t stride, int64_t count, float* dst);
  void (*interleave)(const Interleaving& rows);
  // dst[i] = value, 0 <= i < count
  void (*fill)(float value, int64_t count, float* dst);
};

namespace scalar {
const RowKernels& row_kernels();
}
namespace avx2 {
const RowKernels& row_kernels();
}
namespace avx512 {
const RowKernels& row_kernels();
}
namespace neon {
const RowKernels& row_kernels();
}

// Cycles of a vector FMA that interleave() takes for an element of so many rows.
inline double interleave_cycles(int64_t rows) {
  if (rows <= 2) return 0.4;
  return rows <= 5 || rows == 8 ? 0.7 : 2;
}

struct RowBuffer {
  int64_t rows = 0;   // input rows of a task
  int64_t width = 0;  // floats of one phase of one row
  int64_t row = 0;    // floats of one row

  // For tasks of `lines` output rows by `columns` output columns.
  static RowBuffer of(const ConvShape& shape, int64_t lines, int64_t columns);

  // Offset in its row of column `column` of the window of the first output column.
  int64_t offset(const ConvShape& shape, int64_t column) const {
    return column % shape.stride_w * width + column / shape.stride_w;
  }
  // The rows of one channel that output rows [line, line + lines) read, columns from output column `first` on. Rows
  // outside the image are left as they are.
  void fill(const ConvShape& shape, const RowKernels& kernels, const float* plane, int64_t line, int64_t lines,
            int64_t first, float* dst) const;
};

// Input rows that so many output rows span.
int64_t input_rows(const ConvShape& shape, int64_t lines);

// The most of 1 ... `most` that fits, where fewer fit if more do; 1 where none does.
template <class Fits>
int64_t max_that_fits(int64_t most, Fits&& fits) {
  int64_t least = 1;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace neo
