#include "routines/cpu/conv/winograd.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// The transforms at the points 0, p[0], -p[0], p[1], -p[1], ..., infinity. With y = x^2, the rows of B' are the
// coefficients of W(y), x^2 Q(y) +- p x Q(y) and x W(y), where W is the product of all (y - p^2) and Q leaves one out.
// The leading coefficients are 1.
template <int N>
struct Transform {
  float point[N];
  float whole[N];         // of W, ascending, without the leading 1
  float part[N][N];       // of Q, the same
  float power[N][2 * N];  // p^k
};

template <int N>
constexpr Transform<N> make_transform(const double (&points)[N]) {
  Transform<N> t = {};
  for (int skip = -1; skip < N; ++skip) {
    double c[N + 1] = {1};
    int degree = 0;
    for (int j = 0; j < N; ++j) {
      if (j == skip) continue;
      ++degree;
      for (int k = degree; k >= 0; --k) c[k] = (k > 0 ? c[k - 1] : 0) - points[j] * points[j] * (k < degree ? c[k] : 0);
    }
    for (int k = 0; k < degree; ++k) (skip < 0 ? t.whole : t.part[skip])[k] = (float)c[k];
  }
  for (int i = 0; i < N; ++i) {
    t.point[i] = (float)points[i];
    double power = 1;
    for (int k = 0; k < 2 * N; ++k, power *= points[i]) t.power[i][k] = (float)power;
  }
  return t;
}

template <int N>
struct Constants;
template <>
struct Constants<1> {
  static constexpr Transform<1> kTransform = make_transform(kWinogradPoints2);
};
template <>
struct Constants<2> {
  static constexpr Transform<2> kTransform = make_transform(kWinogradPoints4);
};
template <>
struct Constants<3> {
  static constexpr Transform<3> kTransform = make_transform(kWinogradPoints6);
};

template <int N>
NEO_INLINE void transform_input(const F32 (&d)[2 * N + 2], F32 (&t)[2 * N + 2]) {
  constexpr Transform<N> c = Constants<N>::kTransform;
  F32 zeroth = d[2 * N], infinite = d[2 * N + 1];
#pragma GCC unroll 4
  for (int k = 0; k < N; ++k) {
    zeroth = fma(broadcast(c.whole[k]), d[2 * k], zeroth);
    infinite = fma(broadcast(c.whole[k]), d[2 * k + 1], infinite);
  }
  t[0] = zeroth;
  t[2 * N + 1] = infinite;
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    F32 even = d[2 * N], odd = d[2 * N - 1];
#pragma GCC unroll 4
    for (int k = 0; k < N - 1; ++k) {
      even = fma(broadcast(c.part[i][k]), d[2 * k + 2], even);
      odd = fma(broadcast(c.part[i][k]), d[2 * k + 1], odd);
    }
    t[1 + 2 * i] = fma(broadcast(c.point[i]), odd, even);
    t[2 + 2 * i] = fnma(broadcast(c.point[i]), odd, even);
  }
}

template <int N>
NEO_INLINE void transform_output(const F32 (&m)[2 * N + 2], F32 (&y)[2 * N]) {
  constexpr Transform<N> c = Constants<N>::kTransform;
  F32 sum[N], difference[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    sum[i] = m[1 + 2 * i] + m[2 + 2 * i];
    difference[i] = m[1 + 2 * i] - m[2 + 2 * i];
  }
#pragma GCC unroll 8
  for (int r = 0; r < 2 * N; ++r) {
    F32 value = r % 2 == 0 ? sum[0] : difference[0];
    if (c.power[0][r] != 1.0f) value = broadcast(c.power[0][r]) * value;
#pragma GCC unroll 4
    for (int i = 1; i < N; ++i) value = fma(broadcast(c.power[i][r]), r % 2 == 0 ? sum[i] : difference[i], value);
    if (r == 0) value = m[0] + value;
    if (r == 2 * N - 1) value = value + m[2 * N + 1];
    y[r] = value;
  }
}

// Images that no private cache holds arrive while the tiles before are at work.
template <int N>
void run_input(const WinogradInput& t) {
  constexpr int kSize = 2 * N + 2;
  constexpr int kAhead = 2 * (2 * N) * kLanes;  // two tiles
  const bool whole = t.top == 0 && t.left == 0 && t.bottom == kSize && t.right == kSize;
  for (int64_t b = 0; b < t.blocks; ++b) {
    const float* src = t.src + b * t.block;
    float* dst = t.dst + b * kLanes;
    F32 half[kSize][kSize];
    for (int j = 0; j < kSize; ++j) {
      F32 d[kSize], v[kSize];
      const float* column = src + (t.first + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kSize; ++i) prefetch_l2(column + i * t.row + kAhead);
      if (whole) {
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) d[i] = load(column + i * t.row);
      } else {
        const bool inside = j >= t.left && j < t.right;
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) d[i] = inside && i >= t.top && i < t.bottom ? load(column + i * t.row) : zero();
      }
      transform_input<N>(d, v);
#pragma GCC unroll 8
      for (int i = 0; i < kSize; ++i) half[i][j] = v[i];
    }
    for (int i = 0; i < kSize; ++i) {
      F32 d[kSize], v[kSize];
#pragma GCC unroll 8
      for (int j = 0; j < kSize; ++j) d[j] = half[i][j];
      transform_input<N>(d, v);
#pragma GCC unroll 8
      for (int j = 0; j < kSize; ++j) store(dst + (i * kSize + j) * t.dst_point, v[j]);
    }
  }
}

template <int N>
void run_output(const WinogradOutput& t) {
  constexpr int kSize = 2 * N + 2, kTile = 2 * N;
  const F32 lo = broadcast(t.lo), hi = broadcast(t.hi);
  const bool whole = t.rows == kTile && t.columns == kTile;
  for (int64_t b = 0; b < t.vectors; ++b) {
    const float* src = t.src + b * kLanes;
    F32 half[kTile][kSize];
    for (int j = 0; j < kSize; ++j) {
      F32 m[kSize], v[kTile];
#pragma GCC unroll 8
      for (int i = 0; i < kSize; ++i) m[i] = load(src + (i * kSize + j) * t.src_point);
      transform_output<N>(m, v);
#pragma GCC unroll 8
      for (int i = 0; i < kTile; ++i) half[i][j] = v[i];
    }
    const F32 bias = t.bias ? load(t.bias + b * kLanes) : zero();
    const float* residual = t.residual ? t.residual + b * t.residual_block : nullptr;
    float* dst = t.dst + b * t.dst_block;
    const int64_t lanes = b + 1 < t.vectors ? kLanes : t.last_lanes;
    for (int i = 0; i < t.rows; ++i) {
      F32 m[kSize], v[kTile];
#pragma GCC unroll 8
      for (int j = 0; j < kSize; ++j) m[j] = half[i][j];
      transform_output<N>(m, v);
      if (whole && lanes == kLanes) {
#pragma GCC unroll 8
        for (int j = 0; j < kTile; ++j) {
          F32 y = v[j] + bias;
          if (residual) y = y + load(residual + i * t.row + j * kLanes);
          store(dst + i * t.row + j * kLanes, min(hi, max(lo, y)));
        }
        continue;
      }
      for (int j = 0; j < t.columns; ++j) {
        float* pixel = dst + i * t.row + j * kLanes;
        F32 y = v[j] + bias;
        if (residual) y = y + load(residual + i * t.row + j * kLanes);
        y = min(hi, max(lo, y));
        if (lanes < kLanes) store(pixel, zero());
        store_n(pixel, y, lanes);
      }
    }
  }
}

constexpr WinogradKernels kKernels = {kLanes,
                                      {nullptr, run_input<1>, run_input<2>, run_input<3>},
                                      {nullptr, run_output<1>, run_output<2>, run_output<3>}};

}  // namespace

const WinogradKernels& winograd_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
