#include "routines/cpu/microkernel/pack.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Rows of the source are contiguous.
void pack_rows(const float* src, int64_t row, int64_t k, int64_t columns, F32 scale, float* dst, int64_t step) {
  for (int64_t i = 0; i < k; ++i, src += row, dst += step) {
    if (columns >= kLanes) {
      store(dst, load(src) * scale);
    } else {
      store(dst, load_n(src, columns) * scale);
    }
  }
}

// Columns of the source are contiguous: blocks of kLanes x kLanes are transposed in registers.
void pack_columns(const float* src, int64_t column, int64_t k, int64_t columns, F32 scale, float* dst, int64_t step) {
  for (int64_t i = 0; i < k; i += kLanes) {
    const int64_t count = k - i < kLanes ? k - i : kLanes;
    F32 block[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      block[j] =
          j >= columns ? zero() : (count == kLanes ? load(src + j * column + i) : load_n(src + j * column + i, count));
    }
    transpose(block);
    for (int64_t t = 0; t < count; ++t) store(dst + (i + t) * step, block[t] * scale);
  }
}

void pack_any(const float* src, int64_t row, int64_t column, int64_t k, int64_t columns, float scale, float* dst,
              int64_t step) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) dst[i * step + j] = j < columns ? src[i * row + j * column] * scale : 0.0f;
  }
}

void panel(const float* src, int64_t row, int64_t column, int64_t k, int64_t columns, int64_t vectors, float scale,
           float* dst) {
  const int64_t step = vectors * kLanes;
  for (int64_t v = 0; v < vectors; ++v, src += kLanes * column, dst += kLanes, columns -= kLanes) {
    const int64_t left = columns < 0 ? 0 : columns;
    if (column == 1) {
      pack_rows(src, row, k, left, broadcast(scale), dst, step);
    } else if (row == 1) {
      pack_columns(src, column, k, left, broadcast(scale), dst, step);
    } else {
      pack_any(src, row, column, k, left, scale, dst, step);
    }
  }
}

constexpr PackKernels kKernels = {kLanes, panel};

}  // namespace

const PackKernels& pack_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
