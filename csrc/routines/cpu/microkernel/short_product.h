#pragma once

// Products whose sums are too short, or whose rows or columns are too few, for the register blocks of tile.h.

#include <stdint.h>

namespace neo {

// Sums of at most so many products: what a register block does before its first would take longer than they do.
constexpr int64_t kShortSum = 64;

// c[r, j] = clamp(bias[j] + row_bias[r] + sum over i of a[r, i] * weight[i, j]), to the bits of a register block.
struct ShortProduct {
  const float* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const float* weight = nullptr;  // whole vectors of columns
  int64_t weight_step = 0;        // from one i to the next
  int64_t rows = 0, columns = 0, count = 0;
  const float* bias = nullptr;      // whole vectors, or null
  const float* row_bias = nullptr;  // or null
  float* c = nullptr;
  int64_t c_row = 0;
  float lo = 0.0f, hi = 0.0f;
};

// One row times panels of `vectors` vectors, packed one behind the other, to the bits of a register block.
struct RowProduct {
  const float* a = nullptr;
  const float* weight = nullptr;  // [panel][count][vectors]
  int64_t count = 0, panels = 0, vectors = 0;
  int64_t columns = 0;          // that exist, at most those of the panels
  const float* bias = nullptr;  // whole vectors, or null
  const float* init = nullptr;  // or null; added behind the sums
  float* c = nullptr;
  float lo = 0.0f, hi = 0.0f;
};

// Products of a few rows of A with rows of B, both as they lie in memory.
// sums[r, j] = scale * sum over i of a[r, i] * b[j, i]; columns behind the last one are anything.
struct DotProduct {
  const float* a = nullptr;
  int64_t a_row = 0;
  const float* b = nullptr;
  int64_t b_row = 0;
  int64_t rows = 0, columns = 0, count = 0;
  float scale = 1.0f;
  float* sums = nullptr;  // whole vectors of columns
  int64_t sums_row = 0;
};

}  // namespace neo

#ifdef NEO_ISA
namespace neo::NEO_ISA {

void short_product(const ShortProduct& product);
void row_product(const RowProduct& product);
void dot_product(const DotProduct& product);

// c[r] = sum over i of a[r * a_row + i] * b[i].
void multiply_column(const float* a, int64_t a_row, const float* b, int64_t count, int64_t rows, float* c);

}  // namespace neo::NEO_ISA
#endif
