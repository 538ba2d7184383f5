#include "routines/cpu/microkernel/short_product.h"

#include "simd/across.h"

namespace neo::NEO_ISA {
namespace {

// Vectors of columns at once: each element of A is then loaded for all of them.
constexpr int kShortVectors = kVectorRegisters >= 32 ? 2 : 1;

// R rows by V vectors of columns from `first` on, of which the last one has `left` elements.
template <int R, int V>
NEO_INLINE void multiply_block(const ShortProduct& p, int64_t row, int64_t first, int64_t left) {
  const int64_t a_column = p.a_column, a_row = p.a_row, weight_step = p.weight_step, count = p.count;
  const float* src[R];
  F32 acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    src[r] = p.a + (row + r) * a_row;
    const F32 shift = p.row_bias ? broadcast(p.row_bias[row + r]) : zero();
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = p.bias ? load(p.bias + first + v * kLanes) + shift : shift;
  }
  const float* weight = p.weight + first;
  for (int64_t i = 0, at = 0; i < count; ++i, at += a_column, weight += weight_step) {
    F32 w[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) w[v] = load(weight + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (V == 1) {
        accumulate(acc[r][0], src[r][at], w[0]);
      } else {
        const F32 x = broadcast(src[r][at]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) acc[r][v] = fma(x, w[v], acc[r][v]);
      }
    }
  }
  const F32 lo = broadcast(p.lo), hi = broadcast(p.hi);
  const int64_t c_row = p.c_row;
  float* c = p.c + row * c_row + first;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r, c += c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const F32 result = min(hi, max(lo, acc[r][v]));
      v == V - 1 && left < kLanes ? store_n(c + v * kLanes, result, left) : store(c + v * kLanes, result);
    }
  }
}

template <int R>
[[gnu::noinline]] void multiply_rows(const ShortProduct& p, int64_t row) {
  constexpr int64_t kWidth = kShortVectors * kLanes;
  int64_t first = 0;
  for (; first + kWidth <= p.columns; first += kWidth) multiply_block<R, kShortVectors>(p, row, first, kLanes);
  const int64_t left = p.columns - first;
  if (left > kLanes) return multiply_block<R, kShortVectors>(p, row, first, left - kLanes);
  if (left > 0) multiply_block<R, 1>(p, row, first, left);
}

// Some panels at once: the sums of one are too few to hide the latency of their additions.
template <int V, int P>
[[gnu::noinline]] void multiply_panels(const RowProduct& p, int64_t panel) {
  const int64_t width = V * kLanes, first = panel * width;
  const float* weight[P];
  F32 acc[P][V];
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
    weight[i] = p.weight + (panel + i) * width * p.count;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[i][v] = p.bias ? load(p.bias + first + i * width + v * kLanes) : zero();
  }
#pragma GCC unroll 2
  for (int64_t k = 0; k < p.count; ++k) {
    const F32 x = broadcast(p.a[k]);
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) accumulate(acc[i][v], x, load(weight[i] + v * kLanes));
      weight[i] += width;
    }
  }
  const F32 lo = broadcast(p.lo), hi = broadcast(p.hi);
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const int64_t at = first + i * width + v * kLanes, left = p.columns - at;
      if (left >= kLanes) {
        const F32 sum = p.init ? acc[i][v] + load(p.init + at) : acc[i][v];
        store(p.c + at, min(hi, max(lo, sum)));
      } else if (left > 0) {
        const F32 sum = p.init ? acc[i][v] + load_n(p.init + at, left) : acc[i][v];
        store_n(p.c + at, min(hi, max(lo, sum)), left);
      }
    }
  }
}

template <int V, int P>
void multiply_row(const RowProduct& p) {
  int64_t panel = 0;
  for (; panel + P <= p.panels; panel += P) multiply_panels<V, P>(p, panel);
  for (; panel < p.panels; ++panel) multiply_panels<V, 1>(p, panel);
}

// The products of two rows, a partial sum in each lane.
NEO_INLINE F32 multiply_dense(const float* a, const float* b, int64_t count) {
  F32 s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    s0 = fma(load(a + i), load(b + i), s0);
    s1 = fma(load(a + i + kLanes), load(b + i + kLanes), s1);
    s2 = fma(load(a + i + 2 * kLanes), load(b + i + 2 * kLanes), s2);
    s3 = fma(load(a + i + 3 * kLanes), load(b + i + 3 * kLanes), s3);
  }
  for (; i + kLanes <= count; i += kLanes) s0 = fma(load(a + i), load(b + i), s0);
  if (i < count) s1 = fma(load_n(a + i, count - i), load_n(b + i, count - i), s1);
  return (s0 + s1) + (s2 + s3);
}

// Sums that registers hold beside the operands.
#if defined(NEO_ISA_AVX512) || defined(NEO_ISA_NEON)
constexpr int kDotSums = 16;
#else
constexpr int kDotSums = 8;
#endif

// R rows with all columns, some of them at once: behind the last one it is multiplied again.
template <int R>
[[gnu::noinline]] void multiply_dots(const DotProduct& p, int64_t row) {
  constexpr int kSums = kDotSums / R, C = kSums < kLanes ? kSums : kLanes;
  const float* a = p.a + row * p.a_row;
  for (int64_t first = 0; first < p.columns; first += kLanes) {
    F32 sums[R][kLanes];
    for (int at = 0; at < kLanes; at += C) {
      const float* b[C];
      F32 acc[R][C];
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) {
        const int64_t column = first + at + c;
        b[c] = p.b + (column < p.columns ? column : p.columns - 1) * p.b_row;
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r][c] = zero();
      }
      const auto add = [&](int64_t i, auto read) NEO_LAMBDA {
        F32 y[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) y[r] = read(a + r * p.a_row + i);
#pragma GCC unroll 16
        for (int c = 0; c < C; ++c) {
          const F32 x = read(b[c] + i);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) acc[r][c] = fma(x, y[r], acc[r][c]);
        }
      };
      int64_t i = 0;
      for (; i + kLanes <= p.count; i += kLanes) add(i, [](const float* from) NEO_LAMBDA { return load(from); });
      const int64_t left = p.count - i;
      if (left > 0) add(i, [=](const float* from) NEO_LAMBDA { return load_n(from, left); });
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int c = 0; c < C; ++c) sums[r][at + c] = acc[r][c];
      }
      if (first + at + C >= p.columns) {
        for (int c = at + C; c < kLanes; ++c) {
          for (int r = 0; r < R; ++r) sums[r][c] = zero();
        }
        break;
      }
    }
    for (int r = 0; r < R; ++r) {
      const F32 merged = merge_across(sums[r], [](F32 x, F32 y) NEO_LAMBDA { return x + y; });
      store(p.sums + (row + r) * p.sums_row + first, merged * broadcast(p.scale));
    }
  }
}

}  // namespace

void dot_product(const DotProduct& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) multiply_dots<4>(p, row);
  if ((p.rows & 2) != 0) {
    multiply_dots<2>(p, row);
    row += 2;
  }
  if ((p.rows & 1) != 0) multiply_dots<1>(p, row);
}

void short_product(const ShortProduct& p) {
  int64_t row = 0;
  for (; row + 8 <= p.rows; row += 8) multiply_rows<8>(p, row);
  if ((p.rows & 4) != 0) {
    multiply_rows<4>(p, row);
    row += 4;
  }
  for (; row < p.rows; ++row) multiply_rows<1>(p, row);
}

void row_product(const RowProduct& p) {
  switch (p.vectors) {
    case 1:
      return multiply_row<1, 4>(p);
    case 2:
      return multiply_row<2, 4>(p);
    case 3:
      return multiply_row<3, 2>(p);
    default:
      return multiply_row<4, 2>(p);
  }
}

void multiply_column(const float* a, int64_t a_row, const float* b, int64_t count, int64_t rows, float* c) {
  constexpr int64_t kFewRows = kLanes / 4;
  for (int64_t row = 0; row < rows; row += kLanes) {
    const int64_t left = rows - row < kLanes ? rows - row : kLanes;
    if (left <= kFewRows) {
      for (int64_t r = row; r < rows; ++r) c[r] = reduce_add(multiply_dense(a + r * a_row, b, count));
      return;
    }
    F32 sums[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) sums[r] = r < left ? multiply_dense(a + (row + r) * a_row, b, count) : zero();
    store_n(c + row, merge_across(sums, [](F32 x, F32 y) NEO_LAMBDA { return x + y; }), left);
  }
}

}  // namespace neo::NEO_ISA
