#include "routines/cpu/reduce/reduce.h"

#include <math.h>

#include "routines/cpu/reduce/reduce_tile.h"
#include "simd/across.h"
#include "simd/math.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

NEO_INLINE F32 start_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Max:
      return broadcast(-INFINITY);
    case ReduceKind::Min:
      return broadcast(INFINITY);
    case ReduceKind::Prod:
      return broadcast(1.0f);
    default:
      return zero();
  }
}

template <ReduceKind kind>
NEO_INLINE F32 combine(F32 acc, F32 x) {
  if constexpr (kind == ReduceKind::Max) return max_nan(acc, x);
  if constexpr (kind == ReduceKind::Min) return min_nan(acc, x);
  if constexpr (kind == ReduceKind::Prod) return acc * x;
  if constexpr (kind == ReduceKind::L1) return acc + abs(x);
  if constexpr (kind == ReduceKind::L2 || kind == ReduceKind::SumSquare) return fma(x, x, acc);
  return acc + x;
}

// Combines two partial results.
template <ReduceKind kind>
NEO_INLINE F32 merge(F32 a, F32 b) {
  if constexpr (kind == ReduceKind::Max) return max_nan(a, b);
  if constexpr (kind == ReduceKind::Min) return min_nan(a, b);
  if constexpr (kind == ReduceKind::Prod) return a * b;
  return a + b;
}

template <ReduceKind kind>
NEO_INLINE float across(F32 x) {
  if constexpr (kind != ReduceKind::Max && kind != ReduceKind::Min && kind != ReduceKind::Prod) return reduce_add(x);
  float lanes[kLanes];
  store(lanes, x);
  float r = lanes[0];
  for (int i = 1; i < kLanes; ++i) {
    if constexpr (kind == ReduceKind::Max)
      r = (r > lanes[i] || r != r) ? r : lanes[i];
    else if constexpr (kind == ReduceKind::Min)
      r = (r < lanes[i] || r != r) ? r : lanes[i];
    else if constexpr (kind == ReduceKind::Prod)
      r *= lanes[i];
    else
      r += lanes[i];
  }
  return r;
}

// Results of sums that reach over `along` elements.
void finish_all(ReduceKind kind, int64_t along, int64_t count, float* out) {
  switch (kind) {
    case ReduceKind::Mean:
      for (int64_t i = 0; i < count; ++i) out[i] /= (float)along;
      return;
    case ReduceKind::L2:
      for (int64_t i = 0; i < count; ++i) out[i] = sqrtf(out[i]);
      return;
    case ReduceKind::LogSum:
      for (int64_t i = 0; i < count; i += kLanes) {
        const int64_t n = count - i < kLanes ? count - i : kLanes;
        store_n(out + i, log(load_n(out + i, n)), n);
      }
      return;
    default:
      return;
  }
}

// The first n elements at p; the other lanes change nothing.
template <ReduceKind kind>
NEO_INLINE F32 load_rest(const float* p, int64_t n) {
  const F32 x = load_n(p, n);
  if constexpr (kind == ReduceKind::Max || kind == ReduceKind::Min || kind == ReduceKind::Prod)
    return select(lt(to_f32(iota_i32()), broadcast((float)n)), x, start_of(kind));
  return x;
}

template <ReduceKind kind>
NEO_INLINE float reduce_row(const float* x, int64_t n) {
  F32 a = start_of(kind), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = combine<kind>(a, load(x + i));
    b = combine<kind>(b, load(x + i + kLanes));
    c = combine<kind>(c, load(x + i + 2 * kLanes));
    d = combine<kind>(d, load(x + i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) a = combine<kind>(a, load(x + i));
  if (i < n) b = combine<kind>(b, load_rest<kind>(x + i, n - i));
  return across<kind>(merge<kind>(merge<kind>(a, b), merge<kind>(c, d)));
}

// The first n lanes of x; zeros behind them.
NEO_INLINE F32 first_lanes(F32 x, int64_t n) {
  return select(lt(to_f32(iota_i32()), broadcast((float)n)), x, zero());
}

// exp(x - top) of a row, kept in `y` if there is one, but for those of a last vector that is not full: they are `rest`,
// since what is stored in part is slow to load again. Sums of all, a lane each.
F32 exponentials(const float* x, float* y, int64_t n, F32 top, F32& rest) {
  F32 total = zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32 e = exp_falling(load(x + i) - top);
    if (y) store(y + i, e);
    total = total + e;
  }
  if (i < n) {
    rest = first_lanes(exp_falling(load_n(x + i, n - i) - top), n - i);
    total = total + rest;
  }
  return total;
}

// log(sum(exp(x))) with the maximum taken out.
NEO_INLINE float log_sum_exp_row(const float* x, int64_t n) {
  const float top = reduce_row<ReduceKind::Max>(x, n);
  if (!(top > -INFINITY && top < INFINITY)) return top;
  const F32 shift = broadcast(top);
  F32 sum = zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = sum + exp(load(x + i) - shift);
  if (i < n) sum = sum + exp(load_rest<ReduceKind::Max>(x + i, n - i) - shift);
  return top + logf(reduce_add(sum));
}

NEO_INLINE float reduce_row_of(ReduceKind kind, const float* x, int64_t n) {
  switch (kind) {
    case ReduceKind::Max:
      return reduce_row<ReduceKind::Max>(x, n);
    case ReduceKind::Min:
      return reduce_row<ReduceKind::Min>(x, n);
    case ReduceKind::Prod:
      return reduce_row<ReduceKind::Prod>(x, n);
    case ReduceKind::L1:
      return reduce_row<ReduceKind::L1>(x, n);
    case ReduceKind::L2:
    case ReduceKind::SumSquare:
      return reduce_row<ReduceKind::L2>(x, n);
    case ReduceKind::LogSumExp:
      return log_sum_exp_row(x, n);
    default:
      return reduce_row<ReduceKind::Sum>(x, n);
  }
}

template <ReduceKind kind>
NEO_INLINE void reduce_columns(const float* x, int64_t along, int64_t stride, int64_t columns, float* out) {
  constexpr int kVectors = kReduceColumns / kLanes;
  if constexpr (kVectors <= 8) {
    // Rows far apart are read in whole stretches, and some rows early.
    if (columns == kReduceColumns) {
      constexpr int64_t kEarly = 8, kLine = 16;
      F32 acc[kVectors];
      for (int v = 0; v < kVectors; ++v) acc[v] = start_of(kind);
      for (int64_t i = 0; i < along; ++i) {
        const float* row = x + i * stride;
        for (int64_t j = 0; i + kEarly < along && j < kReduceColumns; j += kLine)
          __builtin_prefetch(row + kEarly * stride + j);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) acc[v] = combine<kind>(acc[v], load(row + v * kLanes));
      }
      for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, acc[v]);
      return;
    }
  }
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t n = columns - j < kLanes ? columns - j : kLanes;
    F32 acc = start_of(kind);
    if (n == kLanes) {
      for (int64_t i = 0; i < along; ++i) acc = combine<kind>(acc, load(x + i * stride + j));
    } else {
      for (int64_t i = 0; i < along; ++i) acc = combine<kind>(acc, load_n(x + i * stride + j, n));
    }
    store_n(out + j, acc, n);
  }
}

// The largest number and the logarithm of the sum of what is left of each lane; a largest number that is not finite is
// the result.
NEO_INLINE F32 finish_log_sum_exp(F32 top, F32 sum) {
  return select(lt(abs(top), broadcast(INFINITY)), top + log(sum), top);
}

void log_sum_exp_columns(const float* x, int64_t along, int64_t stride, int64_t columns, float* out) {
  reduce_columns<ReduceKind::Max>(x, along, stride, columns, out);
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t n = columns - j < kLanes ? columns - j : kLanes;
    const F32 top = load_n(out + j, n);
    const F32 shift = select(lt(abs(top), broadcast(INFINITY)), top, zero());
    F32 sum = zero();
    for (int64_t i = 0; i < along; ++i) sum = sum + exp(load_n(x + i * stride + j, n) - shift);
    store_n(out + j, finish_log_sum_exp(top, sum), n);
  }
}

// Rows of very few elements, kLanes of them at a time, one per lane.
template <ReduceKind kind>
NEO_INLINE void reduce_tiny_rows(const float* x, int64_t along, int64_t rows, float* out) {
  const I32 start = mul(iota_i32(), broadcast_i32((int32_t)along));
  int64_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    F32 acc = start_of(kind);
    for (int64_t i = 0; i < along; ++i) acc = combine<kind>(acc, gather(x + row * along + i, start));
    store(out + row, acc);
  }
  for (; row < rows; ++row) out[row] = reduce_row<kind>(x + row * along, along);
}

// kLanes rows at a time: a vector of partial results for each, which are merged side by side.
template <ReduceKind kind>
NEO_INLINE void reduce_short_rows(const float* x, int64_t along, int64_t rows, float* out) {
  const int64_t full = along / kLanes * kLanes;
  int64_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    F32 acc[kLanes];
    if constexpr (kind == ReduceKind::Max || kind == ReduceKind::Min || kind == ReduceKind::Sum) {
      // Elements are their own partial results.
      if (full == 0) {
        for (int r = 0; r < kLanes; ++r) acc[r] = load_rest<kind>(x + (row + r) * along, along);
        store(out + row, merge_across(acc, merge<kind>));
        continue;
      }
    }
    for (int r = 0; r < kLanes; ++r) {
      const float* p = x + (row + r) * along;
      F32 a = start_of(kind), b = a;
      int64_t i = 0;
      for (; i + 2 * kLanes <= full; i += 2 * kLanes) {
        a = combine<kind>(a, load(p + i));
        b = combine<kind>(b, load(p + i + kLanes));
      }
      if (i < full) a = combine<kind>(a, load(p + i));
      if (full < along) b = combine<kind>(b, load_rest<kind>(p + full, along - full));
      acc[r] = merge<kind>(a, b);
    }
    store(out + row, merge_across(acc, merge<kind>));
  }
  for (; row < rows; ++row) out[row] = reduce_row<kind>(x + row * along, along);
}

// The same for logarithms of sums of exponentials: of very few elements one row per lane, else a vector for each row.
void log_sum_exp_short_rows(const float* x, int64_t along, int64_t rows, bool is_tiny, float* out) {
  const I32 start = mul(iota_i32(), broadcast_i32((int32_t)along));
  int64_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    const float* from = x + row * along;
    is_tiny ? reduce_tiny_rows<ReduceKind::Max>(from, along, kLanes, out + row)
            : reduce_short_rows<ReduceKind::Max>(from, along, kLanes, out + row);
    const F32 top = load(out + row), shift = select(lt(abs(top), broadcast(INFINITY)), top, zero());
    F32 sum = zero();
    if (is_tiny) {
      for (int64_t i = 0; i < along; ++i) sum = sum + exp(gather(from + i, start) - shift);
    } else {
      float shifts[kLanes];
      store(shifts, shift);
      F32 sums[kLanes], rest;
      for (int r = 0; r < kLanes; ++r)
        sums[r] = exponentials(from + r * along, nullptr, along, broadcast(shifts[r]), rest);
      sum = merge_across(sums, merge<ReduceKind::Sum>);
    }
    store(out + row, finish_log_sum_exp(top, sum));
  }
  for (; row < rows; ++row) out[row] = log_sum_exp_row(x + row * along, along);
}

template <ReduceKind k>
struct Kind {
  static constexpr ReduceKind value = k;
};

// f(Kind<...>) for the kind whose sums are those of `kind` before finish().
template <class F>
NEO_INLINE void with_sums_of(ReduceKind kind, F f) {
  switch (kind) {
    case ReduceKind::Max:
      return f(Kind<ReduceKind::Max>());
    case ReduceKind::Min:
      return f(Kind<ReduceKind::Min>());
    case ReduceKind::Prod:
      return f(Kind<ReduceKind::Prod>());
    case ReduceKind::L1:
      return f(Kind<ReduceKind::L1>());
    case ReduceKind::L2:
    case ReduceKind::SumSquare:
      return f(Kind<ReduceKind::L2>());
    default:
      return f(Kind<ReduceKind::Sum>());
  }
}

// Rows of up to so many elements are worked on side by side.
constexpr int64_t kShortRow = 512;

void reduce_rows(const ReduceArgs& args, const float* x, int64_t rows, float* out) {
  constexpr int64_t kTinyRow = 4;
  const int64_t along = args.shape.along;
  if (along > 0 && along <= kShortRow && args.kind == ReduceKind::LogSumExp) {
    log_sum_exp_short_rows(x, along, rows, along < kTinyRow, out);
  } else if (along < kTinyRow && args.kind != ReduceKind::LogSumExp) {
    with_sums_of(args.kind, [&](auto kind) NEO_LAMBDA { reduce_tiny_rows<kind.value>(x, along, rows, out); });
  } else if (along <= kShortRow && args.kind != ReduceKind::LogSumExp) {
    with_sums_of(args.kind, [&](auto kind) NEO_LAMBDA { reduce_short_rows<kind.value>(x, along, rows, out); });
  } else {
    for (int64_t i = 0; i < rows; ++i) out[i] = reduce_row_of(args.kind, x + i * along, along);
  }
  finish_all(args.kind, along, rows, out);
}

}  // namespace

void reduce_tasks(const ReduceArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t rows = s.rows_per_task < s.outer - first ? s.rows_per_task : s.outer - first;
      reduce_rows(args, args.src + first * s.along, rows, args.dst + first);
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    const float* x = args.src + tile.src;
    float* out = args.dst + tile.dst;
    if (args.kind == ReduceKind::LogSumExp) {
      log_sum_exp_columns(x, s.along, s.inner, tile.columns, out);
      continue;
    }
    with_sums_of(args.kind,
                 [&](auto kind) NEO_LAMBDA { reduce_columns<kind.value>(x, s.along, s.inner, tile.columns, out); });
    finish_all(args.kind, s.along, tile.columns, out);
  }
}

namespace {

// Up to kLanes rows, so that they wait for their sums and logarithms together.
void softmax_rows(const float* x, float* y, int64_t n, int64_t rows, bool logarithm) {
  float top[kLanes] = {}, last[kLanes];
  reduce_short_rows<ReduceKind::Max>(x, n, rows, top);
  F32 total[kLanes], rest[kLanes];
  for (int64_t r = 0; r < kLanes; ++r) {
    total[r] = r < rows ? exponentials(x + r * n, logarithm ? nullptr : y + r * n, n, broadcast(top[r]), rest[r])
                        : broadcast(1.0f);
  }
  const F32 sums = merge_across(total, merge<ReduceKind::Sum>);
  store(last, logarithm ? load(top) + log(sums) : broadcast(1.0f) / sums);
  const auto finished = [&](F32 v, int64_t r)
                            NEO_LAMBDA { return logarithm ? v - broadcast(last[r]) : v * broadcast(last[r]); };
  const int64_t full = n / kLanes * kLanes;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = (logarithm ? x : y) + r * n;
    for (int64_t i = 0; i < full; i += kLanes) store(y + r * n + i, finished(load(from + i), r));
  }
  // Loads from the next row would wait for a store in part that reaches over it.
  if (full == n) return;
  for (int64_t r = 0; r < rows; ++r)
    store_n(y + r * n + full, finished(logarithm ? load_n(x + r * n + full, n - full) : rest[r], r), n - full);
}

void softmax_columns(const float* x, float* y, int64_t along, int64_t stride, int64_t columns, bool logarithm) {
  constexpr int64_t kKept = 64;  // rows that are kept beside the result: what is stored in part is slow to load again
  F32 kept[kKept];
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t n = columns - j < kLanes ? columns - j : kLanes;
    const bool keeps = along <= kKept;
    F32 top = broadcast(-INFINITY);
    for (int64_t i = 0; i < along; ++i) {
      const F32 v = load_n(x + i * stride + j, n);
      if (keeps) kept[i] = v;
      top = max_nan(top, v);
    }
    F32 total = zero();
    for (int64_t i = 0; i < along; ++i) {
      const F32 e = exp_falling((keeps ? kept[i] : load_n(x + i * stride + j, n)) - top);
      if (keeps && !logarithm) kept[i] = e;
      total = total + e;
    }
    const F32 shift = top + log(total), inverse = broadcast(1.0f) / total;
    for (int64_t i = 0; i < along; ++i) {
      F32 v = keeps ? kept[i] : load_n(x + i * stride + j, n);
      if (!keeps && !logarithm) v = exp_falling(v - top);
      store_n(y + i * stride + j, logarithm ? v - shift : v * inverse, n);
    }
  }
}

}  // namespace

void softmax_tasks(const SoftmaxArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t last = (task + 1) * s.rows_per_task < s.outer ? (task + 1) * s.rows_per_task : s.outer;
      const int64_t step = s.along <= kShortRow ? kLanes : 1;
      for (int64_t row = task * s.rows_per_task; row < last; row += step) {
        softmax_rows(args.src + row * s.along, args.dst + row * s.along, s.along, last - row < step ? last - row : step,
                     args.logarithm);
      }
      continue;
    }
    const int64_t tiles = (s.inner + kReduceColumns - 1) / kReduceColumns;
    const int64_t first = task % tiles * kReduceColumns;
    const int64_t columns = s.inner - first < kReduceColumns ? s.inner - first : kReduceColumns;
    const int64_t at = task / tiles * s.along * s.inner + first;
    softmax_columns(args.src + at, args.dst + at, s.along, s.inner, columns, args.logarithm);
  }
}

namespace {

NEO_INLINE float squares_about(const float* x, int64_t n, float mean) {
  const F32 m = broadcast(mean);
  F32 a = zero(), b = zero();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const F32 u = load(x + i) - m;
    const F32 v = load(x + i + kLanes) - m;
    a = fma(u, u, a);
    b = fma(v, v, b);
  }
  if (i + kLanes <= n) {
    const F32 u = load(x + i) - m;
    a = fma(u, u, a);
    i += kLanes;
  }
  if (i < n) {
    const F32 v = first_lanes(load_n(x + i, n - i) - m, n - i);
    b = fma(v, v, b);
  }
  return reduce_add(a + b);
}

// y = x * scale + shift over n elements.
NEO_INLINE void affine(const float* x, float* y, int64_t n, float scale, float shift) {
  const F32 s = broadcast(scale);
  const F32 t = broadcast(shift);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fma(load(x + i), s, t));
  if (i < n) store_n(y + i, fma(load_n(x + i, n - i), s, t), n - i);
}

void norm_row(const NormArgs& args, int64_t row) {
  const int64_t n = args.shape.along;
  const float* x = args.src + row * n;
  float* y = args.dst + row * n;
  const float mean = args.centred ? reduce_row<ReduceKind::Sum>(x, n) / (float)n : 0.0f;
  const float variance = squares_about(x, n, mean) / (float)n;
  const float inverse = 1.0f / sqrtf(variance + args.epsilon);
  if (args.mean) args.mean[row] = mean;
  if (args.inverse_deviation) args.inverse_deviation[row] = inverse;
  if (args.channels > 0) {
    const int64_t channels_of_row = n / args.span;
    for (int64_t c = 0; c < channels_of_row; ++c) {
      const int64_t channel = (row * channels_of_row + c) % args.channels;
      const float scale = inverse * (args.scale ? args.scale[channel] : 1.0f);
      affine(x + c * args.span, y + c * args.span, args.span, scale,
             (args.bias ? args.bias[channel] : 0.0f) - mean * scale);
    }
    return;
  }
  const F32 m = broadcast(mean);
  const F32 r = broadcast(inverse);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t k = n - i < kLanes ? n - i : kLanes;
    F32 v = (load_n(x + i, k) - m) * r;
    if (args.scale) v = v * load_n(args.scale + i, k);
    if (args.bias) v = v + load_n(args.bias + i, k);
    store_n(y + i, v, k);
  }
}

}  // namespace

void norm_tasks(const NormArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t last = (task + 1) * s.rows_per_task < s.outer ? (task + 1) * s.rows_per_task : s.outer;
    for (int64_t row = task * s.rows_per_task; row < last; ++row) norm_row(args, row);
  }
}

}  // namespace neo::NEO_ISA
