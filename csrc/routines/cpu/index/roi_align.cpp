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

// The images as samples read them: with their channels side by side where there are more samples than pixels. A pixel's
// channels are then padded.
struct PixelRows {
  std::vector<float> elements;
  const float* first = nullptr;
  int64_t stride = 1, channel = 1, image = 0;  // floats from one pixel, channel, image to the next

  PixelRows(const Tensor& x, int64_t samples) {
    const Dims& dims = x.dims();
    const int64_t channels = dims[1], plane = dims[2] * dims[3];
    if (plane > 1 && samples < dims[0] * plane) {
      first = x.as<float>();
      channel = plane;
      image = channels * plane;
      return;
    }
    stride = round_up(channels, kRoiChannels);
    image = plane * stride;
    elements = make_scratch<float>(dims[0] * plane * stride);
    constexpr int64_t kPixels = 16;
    for (int64_t i = 0; i < dims[0]; ++i) {
      const float* from = x.as<float>() + i * channels * plane;
      float* to = elements.data() + i * image;
      for (int64_t begin = 0; begin < plane; begin += kPixels) {
        const int64_t last = std::min(plane, begin + kPixels);
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t p = begin; p < last; ++p) to[p * stride + c] = from[c * plane + p];
        }
      }
    }
    first = elements.data();
  }
};

// Sums, or the largest of the weighted pixels, of a block of channels that lie `channel` floats apart.
template <bool max_mode>
void sample_block(const float* image, int64_t stride, int64_t channel, int64_t channels,
                  std::span<const Bilinear> samples, float* y) {
  float value[kRoiChannels] = {};
  bool first = true;
  for (const Bilinear& sample : samples) {
    const float* p[4];
    float w[4];
    for (int k = 0; k < 4; ++k) {
      p[k] = image + sample.positions[k] * stride;
      w[k] = static_cast<float>(sample.weights[k]);
    }
    const auto take = [&](int64_t c, int64_t at) {
      const float a = w[0] * p[0][at], b = w[1] * p[1][at], d = w[2] * p[2][at], e = w[3] * p[3][at];
      if constexpr (max_mode) {
        const float left = a < b ? b : a, right = d < e ? e : d;
        const float largest = left < right ? right : left;
        value[c] = first || value[c] < largest ? largest : value[c];
      } else {
        value[c] += (a + b) + (d + e);
      }
    };
    if (channel == 1) {
      for (int64_t c = 0; c < kRoiChannels; ++c) take(c, c);
    } else {
      for (int64_t c = 0; c < channels; ++c) take(c, c * channel);
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
  // Where nobody says how many samples a cell has, it has about this many.
  constexpr int64_t kSamples = 4;
  const int64_t ratio = ctx.node().int_attr("sampling_ratio", 0);
  const PixelRows pixels(x, ctx.input(2).size() * cells * (ratio > 0 ? ratio * ratio : kSamples));
  float block[kRoiChannels];
  for_each_roi_cell(ctx, [&](int64_t region, int64_t image, int64_t cell, std::span<const Bilinear> samples) {
    float* to = y.as<float>() + region * channels * cells + cell;
    for (int64_t first = 0; first < channels; first += kRoiChannels) {
      const float* from = pixels.first + image * pixels.image + first * pixels.channel;
      const int64_t count = std::min(kRoiChannels, channels - first);
      max_mode ? sample_block<true>(from, pixels.stride, pixels.channel, count, samples, block)
               : sample_block<false>(from, pixels.stride, pixels.channel, count, samples, block);
      for (int64_t c = 0; c < count; ++c) to[(first + c) * cells] = block[c];
    }
  });
}

}  // namespace neo
