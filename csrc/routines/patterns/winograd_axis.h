#pragma once

// Winograd's algorithm along one axis: F(m, r) with m outputs of a tile and r taps, from m + r - 1 products.
//
// An axis of stride 2 with three taps is the sum of two convolutions of stride 1: the outer taps on every other sample,
// which is F(m, 2), and the middle tap on the samples between, which are passed through: 2 m + 1 multiplications in
// place of 3 m.
//
// Where the last tile of an axis has fewer outputs than others, it is done with fewer of their points: of three taps
// m' + 2 for m' outputs, m' being m less a multiple of 2. Its products are with the same weights, of which it leaves
// out those of some pairs.
//
// The transforms interpolate at 0, +-points and, where the stride is 1, infinity, which makes rounding errors grow with
// m and r; see winograd_error(). An infinity or not-a-number in the input reaches every pixel of the tiles that read
// it.

#include <stdint.h>

namespace neo {

// The positive interpolation points of transforms with 0, 1, ... of them: near those of least error over the shapes
// that use them, and short binary fractions, which keeps most constants of the transforms exact. The first ones of a
// row are those of smaller tiles at the end of an axis.
constexpr int kWinogradMaxPairs = 5;
constexpr double kWinogradPoints[kWinogradMaxPairs + 1][kWinogradMaxPairs] = {
    {}, {1}, {1.5, 0.75}, {0.5, 2, 1}, {0.375, 0.75, 1.25, 2.5}, {0.375, 0.625, 1, 1.5, 3}};
constexpr int kWinogradMaxTile = 6;
constexpr int kWinogradMaxStride = 2;
constexpr int kWinogradMaxLastPairs = 3;  // of axes whose last tile may be smaller

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
  int64_t last = 0;   // outputs of the last tile, where it is done with fewer points; else 0

  int64_t points() const { return step() + kernel - stride; }                    // and samples that a tile reads
  int64_t step() const { return tile * stride; }                                 // samples from one tile to the next
  int64_t pairs() const { return stride == 2 ? tile / 2 : (points() - 2) / 2; }  // of points, where kernel > 1
  int64_t whole_tiles() const { return last > 0 ? tiles - 1 : tiles; }
  // Pairs of the last tile, where it is smaller.
  int64_t last_pairs() const { return last / 2; }
  int64_t last_points() const { return last * stride + kernel - stride; }
  bool last_has(int64_t point) const {
    return last == 0 || point <= last || (point > tile && point - tile < last_points() - last);
  }
  // Points of all tiles.
  int64_t all_points() const { return whole_tiles() * points() + (last > 0 ? last_points() : 0); }
  // Points whose weights differ: samples that are passed through meet the same ones.
  int64_t weights() const { return kernel > 1 && stride == 2 ? tile + 2 : points(); }
};

// The transforms at the points 0, p[0], -p[0], p[1], -p[1], ..., and infinity where the stride is 1. With y = x^2, the
// rows of B' are the coefficients of W(y), x^2 Q(y) +- p x Q(y) and x W(y), where W is the product of all (y - p^2) and
// Q leaves one out. The leading coefficients are 1.
//
// For a last tile with the first pairs of `of`: the weights have been divided by the derivative at a point of x W of
// all pairs, and the rows are multiplied by the part of it that those left out make.
struct WinogradTransform {
  float point[kWinogradMaxPairs];
  float whole[kWinogradMaxPairs];                             // of W, ascending, without the leading 1
  float part[kWinogradMaxPairs][kWinogradMaxPairs];           // of Q, the same
  float power[kWinogradMaxPairs][2 * kWinogradMaxPairs + 1];  // p^k
  float scale[kWinogradMaxPairs + 1];                         // at 0 and at the points
};

// Weights of F(4, 3) that are transformed while they are multiplied, from taps that are packed as multiples of powers
// of the least point p: its first point is 2 p, so that sums, one product with 4 and no other make them. The input's
// rows are divided by the derivatives in their place, and the last one by the multiple of the last tap.
constexpr int kWinogradRawPairs = 2;
constexpr int kWinogradRawPoints = 2 * kWinogradRawPairs + 2;
constexpr double kWinogradRawPoint = kWinogradPoints[kWinogradRawPairs][1];
static_assert(kWinogradPoints[kWinogradRawPairs][0] == 2 * kWinogradRawPoint);
constexpr int kWinogradRawTiles = 4;  // that are multiplied at once

constexpr WinogradTransform winograd_transform(int pairs, int of) {
  const double(&points)[kWinogradMaxPairs] = kWinogradPoints[of];
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
  for (int i = 0; i <= pairs; ++i) {
    const double square = i > 0 ? points[i - 1] * points[i - 1] : 0;
    double scale = 1;
    for (int j = pairs; j < of; ++j) scale *= square - points[j] * points[j];
    t.scale[i] = (float)scale;
  }
  return t;
}

}  // namespace neo
