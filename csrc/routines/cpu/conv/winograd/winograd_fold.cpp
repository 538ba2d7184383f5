#include "routines/cpu/conv/winograd/winograd_fold.h"

#include <algorithm>

#include "base/int_math.h"

namespace neo {
namespace {

// Folds one channel and one remainder of the rows: the S floats of each pixel lie together.
template <int S>
void fold_line(const float* row, int64_t x, int64_t width, int64_t columns, int64_t lanes, float* to) {
  // Columns [begin, end) have all of their samples.
  const int64_t begin = std::clamp<int64_t>(ceil_div(std::max<int64_t>(-x, 0), S), 0, columns);
  const int64_t end = std::clamp<int64_t>(width - x >= 0 ? (width - x) / S : 0, begin, columns);
  const auto partly = [&](int64_t i) {
    for (int64_t b = 0; b < S; ++b) {
      const int64_t at = x + i * S + b;
      if (at >= 0 && at < width) to[i * lanes + b] = row[at];
    }
  };
  if (begin > 0) partly(begin - 1);
  for (int64_t i = begin; i < end; ++i) std::copy_n(row + (x + i * S), S, to + i * lanes);
  if (end < columns) partly(end);
}

}  // namespace

int64_t winograd_fold(const ConvShape& s) {
  constexpr int64_t kMaxChannels = 4;
  const int64_t stride = s.stride_h;
  if (s.groups != 1 || s.dilation_h != 1 || s.dilation_w != 1 || s.ic > kMaxChannels) return 1;
  if ((stride != 2 && stride != 4) || s.stride_w != stride) return 1;
  // With fewer taps, the transforms cost what they save.
  return std::min(s.kh, s.kw) > 2 * stride ? stride : 1;
}

ConvShape fold_shape(const ConvShape& shape) {
  const int64_t fold = winograd_fold(shape);
  if (fold == 1) return shape;
  ConvShape s = shape;
  s.ic *= fold * fold;
  s.kh = ceil_div(shape.kh, fold);
  s.kw = ceil_div(shape.kw, fold);
  s.ih = s.oh + s.kh - 1;
  s.iw = s.ow + s.kw - 1;
  s.stride_h = s.stride_w = 1;
  s.pad_top = s.pad_left = 0;
  return s;
}

std::vector<float> fold_weight(const ConvShape& shape, const float* weight) {
  const int64_t fold = winograd_fold(shape);
  const ConvShape s = fold_shape(shape);
  std::vector<float> folded(static_cast<size_t>(s.oc * s.ic * s.taps()), 0.0f);
  for (int64_t i = 0; i < shape.oc * shape.ic; ++i) {
    for (int64_t h = 0; h < shape.kh; ++h) {
      for (int64_t w = 0; w < shape.kw; ++w) {
        const int64_t channel = (i * fold + h % fold) * fold + w % fold;
        folded[static_cast<size_t>((channel * s.kh + h / fold) * s.kw + w / fold)] = *weight++;
      }
    }
  }
  return folded;
}

void fold_window(const ConvShape& shape, const ConvOperands& args, const float* src, int64_t top, int64_t left,
                 int64_t rows, int64_t columns, int64_t lanes, float* window) {
  const int64_t fold = winograd_fold(shape), block = rows * columns * lanes;
  std::fill_n(window, ceil_div(shape.ic * fold * fold, lanes) * block, 0.0f);
  const auto line = fold == 2 ? fold_line<2> : fold_line<4>;
  for (int64_t c = 0; c < shape.ic; ++c) {
    for (int64_t a = 0; a < fold; ++a) {
      const int64_t channel = (c * fold + a) * fold;
      float* to = window + channel / lanes * block + channel % lanes;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t y = (top + r) * fold + a - shape.pad_top;
        if (y < 0 || y >= shape.ih) continue;
        line(src + c * args.src_channel + y * shape.iw, left * fold - shape.pad_left, shape.iw, columns, lanes,
             to + r * columns * lanes);
      }
    }
  }
}

}  // namespace neo
