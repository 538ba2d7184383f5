#pragma once

// y = softmax(scale q k + terms) v over broadcast batches, in float32. A task has some rows of one batch: it takes the
// keys in blocks, packs those of k and v, and has the scores of a few rows at a time in its cache. Each row keeps a
// running maximum and sum, by which later blocks correct what earlier ones gave (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).

#include <stdint.h>

#include "routines/cpu/microkernel/pack.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

constexpr int kAttentionBatchAxes = 6;
constexpr int kMaxAttentionTerms = 2;
constexpr int64_t kFewAttentionRows = 4;  // of a task, for which k and v are read where they are

// How a matrix of every batch lies in memory, in elements.
struct AttentionStrides {
  int64_t row = 0, column = 0;
  int64_t batch[kAttentionBatchAxes] = {};
  int repeated_axis = 0;  // `repeats` batches in a row along it are one matrix
  int64_t repeats = 1;

  int64_t offset(const int64_t (&position)[kAttentionBatchAxes]) const {
    int64_t at = 0;
    for (int i = 0; i < kAttentionBatchAxes; ++i) {
      at += (i == repeated_axis ? position[i] / repeats : position[i]) * batch[i];
    }
    return at;
  }
};

struct AttentionShape {
  int64_t queries = 0, keys = 0, size = 0, value_size = 0;
  int64_t batch[kAttentionBatchAxes] = {1, 1, 1, 1, 1, 1};
};

struct AttentionPlan {
  AttentionShape shape;
  int64_t lanes = 0;
  int64_t key_blocks = 0, key_block = 0;                    // key_block: of the largest one, whole vectors
  int64_t row_block = 0;                                    // rows whose scores are held at once
  int64_t row_chunks = 0, tasks = 0;                        // of rows per batch; in all
  int64_t workspace_size = 0;                               // floats that a task uses
  int64_t scores_at = 0, packed_k_at = 0, packed_v_at = 0;  // in the workspace; the rows' maxima and sums come first
};

// A tensor that is added to the scores, or a condition of bytes that puts a number there.
struct AttentionTerm {
  AttentionStrides strides;
  const float* added = nullptr;
  const uint8_t* condition = nullptr;
  bool fills_where = true;
  float number = 1.0f;
};

struct AttentionArgs {
  AttentionStrides q, k, v, y;
  const float* q_data = nullptr;
  const float* k_data = nullptr;
  const float* v_data = nullptr;
  float* y_data = nullptr;
  float scale = 1.0f;
  bool nan_is_zero = false;  // rows whose sum is zero or NaN
  AttentionTerm terms[kMaxAttentionTerms];
  int term_count = 0;
};

// The scores of some rows and one block of keys; a row is whole vectors.
struct ScoreBlock {
  float* scores = nullptr;
  int64_t step = 0;  // from row to row
  int64_t rows = 0, keys = 0;
  AttentionTerm terms[kMaxAttentionTerms];  // data at the first row and key
  int term_count = 0;
  float* top = nullptr;         // of each row so far
  float* sum = nullptr;         // of each row's exponentials so far
  float* correction = nullptr;  // of each row: what its earlier results are multiplied by
  bool is_first = false;
};

// Rows of q times rows of k.
struct ScoreRows {
  const float* q = nullptr;
  const float* k = nullptr;
  int64_t q_step = 0, k_step = 0;
  int64_t rows = 0, keys = 0, size = 0;
  float scale = 1.0f;
  float* scores = nullptr;
  int64_t step = 0;  // whole vectors
};

struct AttentionKernels {
  // The scores of few rows, for which packing k would take longer.
  void (*dots)(const ScoreRows& rows);
  // Makes exponentials of the scores, with the terms.
  void (*exponentials)(const ScoreBlock& block);
  // Multiplies rows of `columns` elements by a number each.
  void (*scale_rows)(float* y, int64_t step, int64_t rows, int64_t columns, const float* factors);
};

namespace scalar {
const AttentionKernels& attention_kernels();
}
namespace avx2 {
const AttentionKernels& attention_kernels();
}
namespace avx512 {
const AttentionKernels& attention_kernels();
}
namespace neon {
const AttentionKernels& attention_kernels();
}

AttentionPlan plan_attention(const AttentionShape& shape, const TileKernels& kernels);

struct AttentionTools {
  const TileKernels& tiles;
  const PackKernels& pack;
  const AttentionKernels& rows;
};
void run_attention(const AttentionPlan& plan, const AttentionTools& tools, const AttentionArgs& args,
                   int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
