#pragma once

// The part of GEMM below the packing of B: one register block after another, over one panel of columns and one part of
// k. Convolution by panels uses it with its own packing.

#include <cstdint>

#include "base/int_math.h"
#include "routines/cpu/gemm/gemm.h"

namespace neo {

// Offsets of the matrices of one batch.
struct BatchOffsets {
  int64_t a = 0, b = 0, c = 0, residual = 0;

  static BatchOffsets of(const GemmShape& shape, const GemmStrides& strides, int64_t index);
};

struct GemmBlock {
  const GemmPlan& plan;
  const TileKernels& kernels;
  const GemmArgs& args;
  BatchOffsets at;
  float* a_scratch;  // kTileRows * k_chunk floats, used where A needs a copy
  // Parts of k after the first go on with the sums that C holds, to the bits of one pass over k; the last adds the
  // residual. Only for whole vectors, where the residual is not C.
  bool goes_on = false;

  // All rows of [rows.begin, rows.end), in register blocks. `weight` holds B's part of k in [k.begin, k.end) and of the
  // vectors; `scale` multiplies A. The first part of k starts from bias and residual, later ones from C; the last
  // clamps.
  void run_rows(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                IndexRange k) const;

  // A few rows, with rows of B as they lie: `b` is the one of the first vector's first column.
  void run_dots(const float* b, IndexRange rows, IndexRange vectors) const;

 private:
  // As run_rows(), without the activation.
  void run_tiles(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                 IndexRange k) const;
  // The activation of the results of these rows and vectors, in place.
  void activate(IndexRange rows, IndexRange vectors) const;
  // `sums`: those of all products, in the place of the products; else null.
  void run_tile(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                IndexRange k, float* sums = nullptr) const;
  // All rows, whose sums are short.
  void run_short(const float* weight, int64_t weight_step, IndexRange rows, IndexRange vectors, int64_t count) const;
  // The residual where it is a number for each row; else null.
  const float* row_addend() const;
  // True where the tile reads A in column form.
  bool set_source(Tile& tile, float scale, IndexRange rows, IndexRange k) const;
  // Sets the addend besides the biases: straight from memory, or gathered into `init` where that is not
  // dense.
  void set_init(Tile& tile, float* init, IndexRange rows, int64_t first, int64_t columns, int64_t width) const;
};

// Whether some rows of so short sums are multiplied by a kernel of their own: many rows of sums that are nearly long
// take less time in register blocks of several vectors.
inline bool sums_shortly(int64_t rows, int64_t count, int64_t vectors) {
  constexpr int64_t kFewRows = 4, kManyRows = 24, kNearlyLong = 56;
  const bool is_large = vectors > 1 && rows >= kManyRows && count >= kNearlyLong;
  return rows >= kFewRows && count <= kShortSum && !is_large;
}

// The vectors of a panel.
inline IndexRange gemm_panel(const GemmPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

}  // namespace neo
