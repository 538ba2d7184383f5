#include "routines/patterns/winograd_form.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"

namespace neo {
namespace {

double axis_error(int64_t tile, int64_t kernel, int64_t stride) {
  constexpr double kErrors[3][kWinogradMaxTile / 2] = {{0.8, 1.41, 2.81}, {1.18, 2.1, 5.1}, {2.1, 4.4, 10.5}};
  constexpr double kEvenErrors[3][kWinogradMaxTile / 2 - 1] = {{1.02, 1.87}, {1.24, 2.45}, {2.08, 4.65}};
  constexpr double kStridedErrors[2] = {0.74, 1.18};
  if (kernel == 1) return 1;
  if (stride == 2) return kStridedErrors[tile / 2 - 1];
  return kernel % 2 == 0 ? kEvenErrors[kernel / 2 - 1][tile / 2 - 2] : kErrors[(kernel - 3) / 2][tile / 2 - 1];
}

}  // namespace

const char* reject_winograd(const ConvShape& s) {
  const auto is_taken = [](int64_t kernel, int64_t stride) {
    return kernel == 1 || is_winograd_tile(2, kernel, stride) || is_winograd_tile(4, kernel, stride);
  };
  if (!is_taken(s.kh, 1) || !is_taken(s.kw, 1)) return "a side of the kernel is not 1 to 7";
  if (s.kh == 1 && s.kw == 1) return "the kernel is 1x1";
  if (!is_taken(s.kh, s.stride_h) || !is_taken(s.kw, s.stride_w)) return "the stride is not 1, nor 2 of three taps";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "the dilation is not 1";
  if (s.groups != 1) return "more than one group";
  return nullptr;
}

WinogradAxis winograd_axis(int64_t kernel, int64_t stride, int64_t tile, int64_t size, WinogradLast last_tile) {
  WinogradAxis axis;
  axis.kernel = kernel;
  axis.stride = stride;
  axis.tile = winograd_axis_tile(tile, kernel);
  axis.tiles = ceil_div(size, axis.tile);
  const int64_t rest = size - (axis.tiles - 1) * axis.tile, last = rest + rest % 2;
  const bool may_be_smaller =
      last_tile == WinogradLast::Smaller && kernel == 3 && axis.pairs() <= kWinogradMaxLastPairs;
  if (may_be_smaller && rest > 0 && last < axis.tile) axis.last = last;
  return axis;
}

// Rows are (1, p, p^2, ...) / (d/dx of x W(x^2) at p), W as in the input transform. With stride 2, every other weight;
// rows of the middle one follow.
std::vector<double> winograd_weight_transform(const WinogradAxis& axis) {
  if (axis.kernel == 1) return {1.0};
  const int64_t pairs = axis.pairs();
  const double* points = kWinogradPoints[pairs];
  std::vector<double> g(static_cast<size_t>(axis.points() * axis.kernel), 0.0);
  double whole = 1;
  for (int64_t i = 0; i < pairs; ++i) {
    const double p = points[i];
    whole *= -p * p;
    double scale = 2 * p * p;
    for (int64_t j = 0; j < pairs; ++j) scale *= j == i ? 1 : p * p - points[j] * points[j];
    for (int64_t sign = 0; sign < 2; ++sign) {
      double* row = &g[static_cast<size_t>((1 + 2 * i + sign) * axis.kernel)];
      row[0] = 1 / scale;
      for (int64_t k = axis.stride; k < axis.kernel; k += axis.stride) row[k] = row[k - axis.stride] * (sign ? -p : p);
    }
  }
  g.front() = 1 / whole;
  if (axis.stride == 1) g.back() = 1;
  for (int64_t i = 2 * pairs + 1; axis.stride == 2 && i < axis.points(); ++i) g[static_cast<size_t>(i * 3 + 1)] = 1;
  return g;
}

double winograd_error(const ConvShape& shape, int64_t tile) {
  return axis_error(tile, shape.kh, shape.stride_h) * axis_error(tile, shape.kw, shape.stride_w) *
         (1 + 4.5 / static_cast<double>(shape.ic));
}

std::vector<int64_t> offered_winograd_tiles(const ConvShape& s, WinogradLast last_tile) {
  constexpr double kMaxError = 12;
  constexpr double kWorthwhile = 0.9;
  constexpr double kSmallError = 2.7;
  std::vector<int64_t> tiles;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t tile = 2; tile <= kWinogradMaxTile; tile += 2) {
    const auto fits = [&](int64_t kernel, int64_t stride) {
      return kernel == 1 || is_winograd_tile(tile, kernel, stride);
    };
    if (!fits(s.kh, s.stride_h) || !fits(s.kw, s.stride_w)) continue;
    const double error = winograd_error(s, tile);
    if (error > kMaxError) continue;
    const WinogradAxis h = winograd_axis(s.kh, s.stride_h, tile, s.oh, last_tile);
    const WinogradAxis w = winograd_axis(s.kw, s.stride_w, tile, s.ow, last_tile);
    const auto products = static_cast<double>(h.all_points() * w.all_points());
    if (error > kSmallError * (1 + 4.5 / static_cast<double>(s.ic)) && products > kWorthwhile * least) continue;
    least = std::min(least, products);
    tiles.push_back(tile);
  }
  return tiles;
}

}  // namespace neo
