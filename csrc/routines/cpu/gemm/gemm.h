#pragma once

// C[m, n] = clamp(A[m, k] B[k, n] + bias), in float32, over broadcast batches. B is packed at compile time (weights) or
// by the tasks themselves (activations). All strides are data, so transposed operands need no copy.

#include <stdint.h>

#include "routines/cpu/activation.h"
#include "routines/cpu/microkernel/pack.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/gemm_shape.h"

namespace neo {

struct GemmSchedule {
  int64_t vectors = 4;   // vectors of columns per register block, 1 ... 4
  int64_t rows = 0;      // rows per register block; 0: as many as the registers hold
  bool packed_b = true;  // B was packed by pack_gemm_b; else the tasks pack it
  // 0: chosen by the shape.
  int64_t k = 0;       // summed per pass over C
  int64_t chunk = 0;   // rows per task
  int64_t panels = 0;  // of columns per task
};

struct GemmPlan {
  GemmShape shape;
  GemmSchedule schedule;
  int64_t lanes = 0;
  int64_t vectors = 0;                        // of all columns
  int64_t panels = 0;                         // panel p has an even share of the vectors, the first ones more
  int64_t k_chunk = 0;                        // k per pass over C
  bool whole_k = false;                       // one pass, where B is packed and A needs no copy
  int64_t k_part = 0;                         // of that pass, in which a panel is summed part by part; 0: at once
  bool one_block = false;                     // a register block has all rows of the only matrix, over the whole k
  int64_t row_chunk = 0, row_chunks = 0;      // rows per task
  int64_t panel_chunk = 0, panel_chunks = 0;  // panels per task
  int64_t workspace_size = 0;                 // floats that a task uses
  int64_t tasks = 0;                          // fixed by shape and schedule
};

struct GemmArgs : GemmStrides {
  const float* a = nullptr;
  const float* b = nullptr;  // packed, or with its strides
  float alpha = 1.0f;        // times A B; only where the tasks pack B

  const float* column_bias = nullptr;  // padded with zeros to whole vectors, or null
  const float* row_bias = nullptr;     // m floats, or null
  const float* residual = nullptr;     // beta * residual is added before the clamp; may be c
  float beta = 1.0f;

  float* c = nullptr;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
  // A few rows begin with the last panels, to the same bits. Calls that take turns find what the one before left in
  // the caches.
  bool backwards = false;
};

// Whether calls of a product should take turns: its weights, which are most of what it reads, fill a first-level cache.
inline bool takes_turns(const GemmPlan& plan) {
  constexpr int64_t kMinFloats = 6 << 10;
  return plan.one_block && plan.panels > 1 && plan.shape.n * plan.shape.k >= kMinFloats;
}

GemmPlan plan_gemm(const GemmShape& shape, const GemmSchedule& schedule, const TileKernels& kernels);

// One packed matrix: [panel][k][columns of the panel].
int64_t gemm_packed_size(const GemmPlan& plan);
void pack_gemm_b(const GemmPlan& plan, const PackKernels& kernels, const float* b, int64_t row, int64_t column,
                 float alpha, float* packed);

void run_gemm(const GemmPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels, const GemmArgs& args,
              int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
