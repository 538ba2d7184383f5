#pragma once

// Winograd's algorithm along one axis: F(m, r) with m outputs of a tile and r taps, from m + r - 1 products.
//
// An axis of stride 2 with three taps is the sum of two convolutions of stride 1: the outer taps on every other sample,
// which is F(m, 2), and the middle tap on the samples between, which are passed through: 2 m + 1 multiplications in
// place of 3 m.
//
// The transforms interpolate at 0, +-points and, where the stride is 1, infinity, which makes rounding errors grow with
// m and r; see winograd_error(). An infinity or not-a-number in the input reaches every pixel of the tiles that read
// it.

#include <stdint.h>

#include "routines/cpu/gemm/split.h"

namespace neo {

// The positive interpolation points of transforms with 0, 1, ... of them: near those of least error over the shapes
// that use them, and short binary fractions, which keeps most constants of the transforms exact.
constexpr int kWinogradMaxPairs = 5;
constexpr double kWinogradPoints[kWinogradMaxPairs + 1][kWinogradMaxPairs] = {
    {}, {1}, {0.625, 1.5}, {0.5, 1, 2}, {0.375, 0.75, 1.25, 2.5}, {0.375, 0.625, 1, 1.5, 3}};
constexpr int kWinogradMaxTile = 6;
constexpr int kWinogradMaxStride = 2;

// The outputs of a tile along an axis, of what a schedule calls `tile`, which is even: points come in pairs.
constexpr int64_t winograd_axis_tile(int64_t tile, int64_t kernel) {
  return kernel == 1 ? 1 : kernel % 2 == 0 ? tile - 1 : tile;
}

// The tiles, as schedules call them, that there are kernels for.
constexpr bool is_winograd_tile(int64_t tile, int64_t kernel, int64_t stride) {
  if (tile < 2 || tile % 2 != 0 || tile > kWinogradMaxTile) return false;
  if (stride == 2) return kernel == 3 && tile <= 4;
  return stride == 1 && kernel >= 2 && kernel <= 7 && winograd_axis_tile(tile, kernel) > 1;
}

// One axis of a problem; one of a single tap has tiles of one pixel, which are left alone.
struct WinogradAxis {
  int64_t kernel = 1, stride = 1, tile = 1;
  int64_t tiles = 0;  // of an image

  int64_t points() const { return step() + kernel - stride; }                    // and samples that a tile reads
  int64_t step() const { return tile * stride; }                                 // samples from one tile to the next
  int64_t pairs() const { return stride == 2 ? tile / 2 : (points() - 2) / 2; }  // of points, where kernel > 1
  // Points whose weights differ: samples that are passed through meet the same ones.
  int64_t weights() const { return kernel > 1 && stride == 2 ? tile + 2 : points(); }
  IndexRange points_of(int64_t weight) const { return {weight, weight + 1 < weights() ? weight + 1 : points()}; }
};

// The transforms at the points 0, p[0], -p[0], p[1], -p[1], ..., and infinity where the stride is 1. With y = x^2, the
// rows of B' are the coefficients of W(y), x^2 Q(y) +- p x Q(y) and x W(y), where W is the product of all (y - p^2) and
// Q leaves one out. The leading coefficients are 1.
struct WinogradTransform {
  float point[kWinogradMaxPairs];
  float whole[kWinogradMaxPairs];                             // of W, ascending, without the leading 1
  float part[kWinogradMaxPairs][kWinogradMaxPairs];           // of Q, the same
  float power[kWinogradMaxPairs][2 * kWinogradMaxPairs + 1];  // p^k
};

constexpr WinogradTransform winograd_transform(int pairs) {
  const double(&points)[kWinogradMaxPairs] = kWinogradPoints[pairs];
  WinogradTransform t = {};
  for (int skip = -1; skip < pairs; ++skip) {
    double c[kWinogradMaxPairs + 1] = {1};
    int degree = 0;
    for (int j = 0; j < pairs; ++j) {
      if (j == skip) continue;
      ++degree;
      for (int k = degree; k >= 0; --k) c[k] = (k > 0 ? c[k - 1] : 0) - points[j] * points[j] * (k < degree ? c[k] : 0);
    }
    for (int k = 0; k < degree; ++k) (skip < 0 ? t.whole : t.part[skip])[k] = (float)c[k];
  }
  for (int i = 0; i < pairs; ++i) {
    t.point[i] = (float)points[i];
    double power = 1;
    for (int k = 0; k <= 2 * pairs; ++k, power *= points[i]) t.power[i][k] = (float)power;
  }
  return t;
}

}  // namespace neo
