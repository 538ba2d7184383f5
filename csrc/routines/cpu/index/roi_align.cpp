#include "ops/roi_align.h"

#include <algorithm>

#include "base/budget.h"
#include "base/int_math.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/index.h"

namespace neo {
namespace {

// Channels that are summed side by side, a number that loops are vectorized for.
constexpr int64_t kRoiChannels = 16;

// The images with their channels side by side, `stride` floats a pixel: what samples of a pixel read.
struct PixelRows {
  std::vector<float> elements;
  int64_t stride = 0;

  explicit PixelRows(const Tensor& x) {
    const Dims& dims = x.dims();
    const int64_t channels = dims[1], plane = dims[2] * dims[3];
    stride = round_up(channels, kRoiChannels);
    elements = make_scratch<float>(dims[0] * plane * stride);
    constexpr int64_t kPixels = 16;
    for (int64_t image = 0; image < dims[0]; ++image) {
      const float* from = x.as<float>() + image * channels * plane;
      float* to = elements.data() + image * plane * stride;
      for (int64_t first = 0; first < plane; first += kPixels) {
        const int64_t last = std::min(plane, first + kPixels);
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t p = first; p < last; ++p) to[p * stride + c] = from[c * plane + p];
        }
      }
    }
  }
};

// Sums, or the largest of the weighted pixels, of one block of channels.
template <bool max_mode>
void sample_block(const float* image, int64_t stride, std::span<const Bilinear> samples, float* y) {
  float value[kRoiChannels] = {};
  bool first = true;
  for (const Bilinear& sample : samples) {
    const float* p[4];
    float w[4];
    for (int k = 0; k < 4; ++k) {
      p[k] = image + sample.positions[k] * stride;
      w[k] = static_cast<float>(sample.weights[k]);
    }
    for (int64_t c = 0; c < kRoiChannels; ++c) {
      const float a = w[0] * p[0][c], b = w[1] * p[1][c], d = w[2] * p[2][c], e = w[3] * p[3][c];
      if constexpr (max_mode) {
        const float left = a < b ? b : a, right = d < e ? e : d;
        const float largest = left < right ? right : left;
        value[c] = first || value[c] < largest ? largest : value[c];
      } else {
        value[c] += (a + b) + (d + e);
      }
    }
    first = false;
  }
  const float scale = max_mode || samples.empty() ? 1.0F : 1.0F / static_cast<float>(samples.size());
  for (int64_t c = 0; c < kRoiChannels; ++c) y[c] = scale * value[c];
}

}  // namespace

void run_roi_align(ReferenceContext& ctx) {
  const bool max_mode = takes_roi_maximum(ctx.node());
  const Tensor& x = ctx.input(0);
  const Dims& dims = x.dims();
  const int64_t rows = ctx.node().int_attr("output_height", 1), columns = ctx.node().int_attr("output_width", 1);
  const int64_t channels = dims[1], cells = rows * columns;
  const Tensor& y = ctx.output(0, x.dtype(), {ctx.input(2).size(), channels, rows, columns});
  if (y.size() == 0) return;
  const PixelRows pixels(x);
  float block[kRoiChannels];
  for_each_roi_cell(ctx, [&](int64_t region, int64_t image, int64_t cell, std::span<const Bilinear> samples) {
    const float* from = pixels.elements.data() + image * dims[2] * dims[3] * pixels.stride;
    float* to = y.as<float>() + region * channels * cells + cell;
    for (int64_t first = 0; first < channels; first += kRoiChannels) {
      max_mode ? sample_block<true>(from + first, pixels.stride, samples, block)
               : sample_block<false>(from + first, pixels.stride, samples, block);
      const int64_t last = std::min(channels, first + kRoiChannels);
      for (int64_t c = first; c < last; ++c) to[c * cells] = block[c - first];
    }
  });
}

}  // namespace neo
