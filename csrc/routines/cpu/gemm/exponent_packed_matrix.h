#pragma once

// Matrices as exponent_packed.h holds them: what is packed, and products of a row with one panel.

#include <functional>

#include "ir/tensor.h"
#include "routines/cost/target.h"
#include "routines/cpu/microkernel/exponent_packed.h"

namespace neo {

constexpr int64_t kMaxExponentPackedWidth = kMaxExponentPackedVectors * 16;

// Panels of columns, one behind the other. Plain bytes.
struct ExponentPackedShape {
  int64_t rows = 0;
  int64_t panels = 0;
  int64_t vectors = 0;  // of a panel
  int64_t lanes = 0;
  int64_t weights = 0;     // that are no padding
  int64_t prefetched = 0;  // floats from what is read to what is fetched

  int64_t width() const { return vectors * lanes; }
  int64_t most_outliers() const { return weights / 1024; }
  int64_t panel_floats() const;
  // Packed weights: [scale][outliers of the panels before, by panel][outliers][panel][group], each part whole cache
  // lines.
  int64_t size() const;  // floats
};

// Null where such weights, float32 in some order, can be held so; else why not. Absent ones, which a saved module has
// packed, can.
const char* reject_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels,
                                   const Tensor& weights);

// Writes rows [row, row + rows) of a panel: [rows][width], padding zero.
using PlainRows = std::function<void(int64_t panel, int64_t row, int64_t rows, float* to)>;
void pack_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels, const float* weights,
                          const PlainRows& plain_rows, float* packed);

// sums[column] += the sum over rows of x[row * step] * panel[row, column]
void multiply_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels,
                              const float* packed, int64_t panel, const float* x, int64_t step, float* sums);

// Cycles for cycles_us() of a vector of weights that is near.
double exponent_packed_cycles(const Target& target);

// ExponentPackedShape::prefetched of weights in caches and of those in memory. The prefetchers alone keep as many lines
// on their way as a core may, and are best left alone but behind a mesh.
int64_t exponent_packed_prefetch(const Target& target, bool in_memory);

}  // namespace neo
