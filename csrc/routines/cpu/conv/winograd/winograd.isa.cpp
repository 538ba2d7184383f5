#include "routines/cpu/conv/winograd/winograd.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Values of a tile of N pairs of points and stride S: those of the points; stride 2 adds the samples passed through.
template <int N, int S>
constexpr int kPoints = S == 1 ? 2 * N + 2 : 4 * N + 1;

// Transforms the points of the first N pairs of K.
template <int N, int K, int S>
NEO_INLINE void transform_input(const F32 (&d)[kPoints<N, S>], F32 (&t)[kPoints<N, S>]) {
  constexpr WinogradTransform c = winograd_transform(N, K);
  F32 zeroth = d[2 * N * S];
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) zeroth = fma(broadcast(c.whole[k]), d[2 * k * S], zeroth);
  t[0] = zeroth;
  if constexpr (S == 1) {
    F32 infinite = d[2 * N + 1];
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) infinite = fma(broadcast(c.whole[k]), d[2 * k + 1], infinite);
    t[2 * N + 1] = infinite;
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < 2 * N; ++i) t[2 * N + 1 + i] = d[2 * i + 1];
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    F32 even = d[2 * N * S], odd = d[(2 * N - 1) * S];
#pragma GCC unroll 8
    for (int k = 0; k < N - 1; ++k) {
      even = fma(broadcast(c.part[i][k]), d[(2 * k + 2) * S], even);
      odd = fma(broadcast(c.part[i][k]), d[(2 * k + 1) * S], odd);
    }
    t[1 + 2 * i] = fma(broadcast(c.point[i]), odd, even);
    t[2 + 2 * i] = fnma(broadcast(c.point[i]), odd, even);
  }
  if constexpr (N < K) {
    t[0] = broadcast(c.scale[0]) * t[0];
#pragma GCC unroll 16
    for (int i = 1; i <= 2 * N; ++i) t[i] = broadcast(c.scale[(i + 1) / 2]) * t[i];
  }
}

template <int N, int K, int M, int S>
NEO_INLINE void transform_output(const F32 (&m)[kPoints<N, S>], F32 (&y)[M]) {
  constexpr WinogradTransform c = winograd_transform(N, K);
  F32 sum[N], difference[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    sum[i] = m[1 + 2 * i] + m[2 + 2 * i];
    difference[i] = m[1 + 2 * i] - m[2 + 2 * i];
  }
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) {
    F32 value = r % 2 == 0 ? sum[0] : difference[0];
    if (c.power[0][r] != 1.0f) value = broadcast(c.power[0][r]) * value;
#pragma GCC unroll 8
    for (int i = 1; i < N; ++i) value = fma(broadcast(c.power[i][r]), r % 2 == 0 ? sum[i] : difference[i], value);
    if (r == 0) value = m[0] + value;
    if (S == 2) value = value + m[2 * N + 1 + r];
    if (S == 1 && r == M - 1) value = value + m[2 * N + 1];
    y[r] = value;
  }
}

// Scales for weights that have been divided by nothing, see kWinogradRawPairs.
NEO_INLINE void scale_raw(F32 (&t)[kWinogradRawPoints]) {
  constexpr double p = kWinogradRawPoint, near = p * p, far = 4 * near;
  const F32 scales[] = {broadcast((float)(1 / (near * far))), broadcast((float)(1 / (2 * far * (far - near)))),
                        broadcast((float)(1 / (2 * near * (near - far)))), broadcast((float)(1 / near))};
#pragma GCC unroll 8
  for (int i = 0; i < kWinogradRawPoints; ++i) t[i] = t[i] * scales[(i + 1) / 2];
}

// Place of point i of the first N pairs of K.
template <int N, int K>
constexpr int place(int i) {
  return i <= 2 * N ? i : i + 2 * (K - N);
}

template <int N, int K, int S, bool kRaw = false>
void run_input(const WinogradPass& t) {
  constexpr int kSize = kPoints<N, S>;
  const bool whole = t.begin == 0 && t.end == kSize;
  for (int64_t b = 0; b < t.blocks; ++b) {
    for (int64_t l = 0; l < t.lines; ++l) {
      const float* src = t.src + (t.first + b * t.src_block + l * t.src_line);
      float* dst = t.dst + b * t.dst_block + l * t.dst_line;
      F32 d[kSize], v[kSize];
      if (t.prefetched) {
#pragma GCC unroll 16
        for (int i = 0; i < kSize; ++i) prefetch(src + i * t.src_step + t.prefetched);
      }
      if (t.dst_prefetch) {
#pragma GCC unroll 16
        for (int i = 0; i < kSize; ++i) prefetch_write(dst + place<N, K>(i) * t.dst_step + t.dst_prefetch);
      }
      if (whole) {
#pragma GCC unroll 16
        for (int i = 0; i < kSize; ++i) d[i] = load(src + i * t.src_step);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < kSize; ++i) d[i] = i >= t.begin && i < t.end ? load(src + i * t.src_step) : zero();
      }
      transform_input<N, K, S>(d, v);
      if constexpr (kRaw) scale_raw(v);
#pragma GCC unroll 16
      for (int i = 0; i < kSize; ++i) store(dst + place<N, K>(i) * t.dst_step, v[i]);
    }
  }
}

// One row of them, of one block.
NEO_INLINE void fetch_results(const WinogradResults& t, int64_t block, int64_t row) {
  const float* dst = t.dst + block * t.dst_block + row * t.row;
  const float* residual = t.residual ? t.residual + block * t.residual_block + row * t.row : nullptr;
  for (int64_t i = 0; i < t.columns; ++i) {
    prefetch_write(dst + i * kLanes);
    if (residual) prefetch_read(residual + i * kLanes);
  }
}

NEO_INLINE void store_result(float* dst, F32 value, int64_t lanes) {
  if (lanes == kLanes) {
    store(dst, value);
  } else {
    store(dst, zero());
    store_n(dst, value, lanes);
  }
}

template <int N, int K, int M, int S>
void run_output(const WinogradPass& t) {
  constexpr int kSize = kPoints<N, S>;
  const WinogradEpilogue* e = t.epilogue;
  const F32 lo = broadcast(e ? e->lo : 0.0f), hi = broadcast(e ? e->hi : 0.0f);
  for (int64_t b = 0; b < t.blocks; ++b) {
    const F32 bias = e && e->bias ? load(e->bias + b * kLanes) : zero();
    const int64_t lanes = e && b + 1 == t.blocks ? e->last_lanes : kLanes;
    for (int64_t l = 0; l < t.lines; ++l) {
      const float* src = t.src + (b * t.src_block + l * t.src_line);
      float* dst = t.dst + b * t.dst_block + l * t.dst_line;
      if (t.results && l < t.results->rows) fetch_results(*t.results, b, l);
      F32 m[kSize], y[M];
#pragma GCC unroll 16
      for (int i = 0; i < kSize; ++i) m[i] = load(src + place<N, K>(i) * t.src_step);
      transform_output<N, K, M, S>(m, y);
      if (!e) {
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) store(dst + i * t.dst_step, y[i]);
        continue;
      }
      const float* residual = e->residual ? e->residual + b * e->residual_block + l * t.dst_line : nullptr;
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        if (i >= t.end) break;
        F32 value = y[i] + bias;
        if (residual) value = value + load(residual + i * t.dst_step);
        store_result(dst + i * t.dst_step, min(hi, max(lo, value)), lanes);
      }
    }
  }
}

void run_pool(const WinogradPass& t) {
  const WinogradEpilogue& e = *t.epilogue;
  const F32 lo = broadcast(e.lo), hi = broadcast(e.hi);
  for (int64_t b = 0; b < t.blocks; ++b) {
    const F32 bias = e.bias ? load(e.bias + b * kLanes) : zero();
    const int64_t lanes = b + 1 == t.blocks ? e.last_lanes : kLanes;
    for (int64_t l = 0; l < t.lines; ++l) {
      const float* upper = t.src + (b * t.src_block + 2 * l * t.src_line);
      const float* lower = upper + t.src_line;
      float* dst = t.dst + b * t.dst_block + l * t.dst_line;
      for (int64_t i = 0; i < t.end; ++i) {
        const F32 most = max(max(load(upper), load(upper + t.src_step)), max(load(lower), load(lower + t.src_step)));
        store_result(dst, min(hi, max(lo, most + bias)), lanes);
        upper += 2 * t.src_step;
        lower += 2 * t.src_step;
        dst += t.dst_step;
      }
    }
  }
}

// One point along h of one column of taps, which lie three vectors apart.
template <int I>
NEO_INLINE F32 combine_column(const float* w, F32 four) {
  const F32 w0 = load(w), w1 = load(w + 3 * kLanes), w2 = load(w + 6 * kLanes);
  if constexpr (I == 0) return w0;
  if constexpr (I == 1) return fma(w2, four, w0) + (w1 + w1);
  if constexpr (I == 2) return fma(w2, four, w0) - (w1 + w1);
  if constexpr (I == 3) return w0 + w2 + w1;
  if constexpr (I == 4) return w0 + w2 - w1;
  return w2;
}

// The points of row I along h. The sums of a row stay in registers; of the taps that it combines the first-level cache
// holds all channels for the next row.
template <int I>
NEO_INLINE void multiply_raw_row(const WinogradRaw& t, const float*& prefetched) {
  constexpr int kPoints = kWinogradRawPoints, kTiles = kWinogradRawTiles;
  float* dst = t.dst + I * kPoints * t.dst_point;
  F32 sums[kPoints][kTiles];
  const float* src[kPoints];
#pragma GCC unroll 6
  for (int j = 0; j < kPoints; ++j) {
#pragma GCC unroll 4
    for (int k = 0; k < kTiles; ++k) sums[j][k] = load(dst + j * t.dst_point + k * t.dst_tile);
    src[j] = t.src + (I * kPoints + j) * t.src_point;
    asm("" : "+r"(src[j]));
  }
  const float* w = t.weight;
  const int64_t step = t.src_tile;
  const F32 four = broadcast(4.0f);
  for (int64_t c = 0; c < t.channels; ++c) {
    const auto multiply = [&](int j, F32 weight) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int k = 0; k < kTiles; ++k) accumulate(sums[j][k], src[j][k * step], weight);
    };
    const F32 u0 = combine_column<I>(w, four), u1 = combine_column<I>(w + kLanes, four),
              u2 = combine_column<I>(w + 2 * kLanes, four);
    multiply(0, u0);
    const F32 far = fma(u2, four, u0), twice = u1 + u1;
    multiply(1, far + twice);
    multiply(2, far - twice);
    const F32 near = u0 + u2;
    multiply(3, near + u1);
    multiply(4, near - u1);
    multiply(5, u2);
    w += kWinogradRawTaps * kLanes;
    if constexpr (I < kPoints - 1) {
      prefetch(prefetched);
      prefetch(prefetched + kLanes);
      prefetched += 2 * kLanes;
    }
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) ++src[j];
  }
#pragma GCC unroll 6
  for (int j = 0; j < kPoints; ++j) {
#pragma GCC unroll 4
    for (int k = 0; k < kTiles; ++k) store(dst + j * t.dst_point + k * t.dst_tile, sums[j][k]);
  }
}

void multiply_raw(const WinogradRaw& t) {
  const float* prefetched = t.prefetched;
  multiply_raw_row<0>(t, prefetched);
  multiply_raw_row<1>(t, prefetched);
  multiply_raw_row<2>(t, prefetched);
  multiply_raw_row<3>(t, prefetched);
  multiply_raw_row<4>(t, prefetched);
  multiply_raw_row<5>(t, prefetched);
}

template <int kTaps, class T>
void combine_taps(const double* g, const double* __restrict from, int64_t step, int64_t width, T* __restrict to) {
  for (int64_t o = 0; o < width; ++o) {
    double sum = g[0] * from[o];
    for (int k = 1; k < kTaps; ++k) sum += g[k] * from[k * step + o];
    to[o] = static_cast<T>(sum);
  }
}

template <class T>
void combine(int64_t taps, const double* g, const double* from, int64_t step, int64_t width, T* to) {
  constexpr decltype(&combine_taps<1, T>) kCombine[] = {combine_taps<1, T>, combine_taps<2, T>, combine_taps<3, T>,
                                                        combine_taps<4, T>, combine_taps<5, T>, combine_taps<6, T>,
                                                        combine_taps<7, T>};
  kCombine[taps - 1](g, from, step, width, to);
}

template <int N, int M>
constexpr void fill_output(WinogradKernels& table) {
  if constexpr (M <= kWinogradMaxTile) {
    constexpr int kTaps = 2 * N + 3 - M;
    if constexpr (is_winograd_tile(M + M % 2, kTaps, 1)) table.output[1][N][M] = run_output<N, N, M, 1>;
    fill_output<N, M + 1>(table);
  }
}

// Enters the transforms of last tiles, which kernels of three taps have.
template <int N, int K, int S>
constexpr void fill_last(WinogradKernels& table) {
  if constexpr (N < K && is_winograd_tile(2 * K, 3, S)) {
    table.last_input[S][K][N] = run_input<N, K, S>;
    table.last_output[S][K][N] = run_output<N, K, 2 * N, S>;
    fill_last<N + 1, K, S>(table);
  }
}

template <int N>
constexpr void fill(WinogradKernels& table) {
  if constexpr (N <= kWinogradMaxPairs) {
    table.input[1][N] = run_input<N, N, 1>;
    fill_output<N, 2>(table);
    if constexpr (is_winograd_tile(2 * N, 3, 2)) {
      table.input[2][N] = run_input<N, N, 2>;
      table.output[2][N][2 * N] = run_output<N, N, 2 * N, 2>;
    }
    if constexpr (N <= kWinogradMaxLastPairs) {
      fill_last<1, N, 1>(table);
      fill_last<1, N, 2>(table);
    }
    fill<N + 1>(table);
  }
}

constexpr WinogradKernels make_table() {
  WinogradKernels table = {};
  table.lanes = kLanes;
  table.pool = run_pool;
  table.weight_half = combine<double>;
  table.weight_whole = combine<float>;
  if constexpr (kVectorRegisters >= 32) {
    table.raw_input = run_input<kWinogradRawPairs, kWinogradRawPairs, 1, true>;
    table.multiply_raw = multiply_raw;
  }
  fill<1>(table);
  return table;
}

constexpr WinogradKernels kTable = make_table();

}  // namespace

const WinogradKernels& winograd_kernels() {
  return kTable;
}

}  // namespace neo::NEO_ISA
