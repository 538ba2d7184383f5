#pragma once

// Convolution problems for the kernel tests: generated shapes, a reference in plain loops and double, and tensors in
// blocked layouts with poisoned surroundings.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "routines/patterns/conv_shape.h"

namespace neo::testing {

inline std::string describe(const ConvShape& s) {
  std::ostringstream out;
  out << "conv n" << s.n << " g" << s.groups << " c" << s.ic << " h" << s.ih << " w" << s.iw << " k" << s.oc << " oh"
      << s.oh << " ow" << s.ow << " f" << s.kh << "x" << s.kw << " s" << s.stride_h << "," << s.stride_w << " p"
      << s.pad_top << "," << s.pad_left << " d" << s.dilation_h << "," << s.dilation_w;
  return out.str();
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t range(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(engine_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[range(0, static_cast<int64_t>(values.size()) - 1)];
  }
  std::vector<float> floats(int64_t n) {
    std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
    std::vector<float> x(n);
    for (float& v : x) v = draw(engine_);
    return x;
  }

 private:
  std::mt19937 engine_;
};

// Sets kernel, strides, padding (asymmetric, possibly larger than the kernel) and from them the output size.
inline void draw_window(Random& random, ConvShape& s, int64_t max_kernel, int64_t max_image) {
  for (;;) {
    s.kh = random.chance(0.1) ? 1 : random.range(1, max_kernel);
    s.kw = random.chance(0.2) ? s.kh : random.range(1, max_kernel);
    s.ih = random.chance(0.15) ? 1 : random.range(1, max_image);
    s.iw = random.range(1, max_image);
    s.stride_h = random.range(1, 3);
    s.stride_w = random.range(1, 3);
    s.dilation_h = random.chance(0.7) ? 1 : random.range(2, 3);
    s.dilation_w = random.chance(0.7) ? 1 : random.range(2, 3);
    s.pad_top = random.chance(0.4) ? 0 : random.range(0, s.kh);
    s.pad_left = random.chance(0.4) ? 0 : random.range(0, s.kw);
    const int64_t bottom = random.chance(0.5) ? s.pad_top : random.range(0, s.kh);
    const int64_t right = random.chance(0.5) ? s.pad_left : random.range(0, s.kw);
    const int64_t h = s.ih + s.pad_top + bottom - (s.kh - 1) * s.dilation_h - 1;
    const int64_t w = s.iw + s.pad_left + right - (s.kw - 1) * s.dilation_w - 1;
    if (h < 0 || w < 0) continue;
    s.oh = h / s.stride_h + 1;
    s.ow = w / s.stride_w + 1;
    return;
  }
}

// The exact result and, per output, the sum of magnitudes that bounds its rounding.
struct Reference {
  std::vector<double> value, magnitude;
};

// NCHW, OIHW; residual may be empty.
inline Reference convolve(const ConvShape& s, const std::vector<float>& src, const std::vector<float>& weight,
                          const std::vector<float>& bias, const std::vector<float>& residual, float lo, float hi) {
  Reference r;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t oc = 0; oc < s.oc; ++oc) {
      for (int64_t oh = 0; oh < s.oh; ++oh) {
        for (int64_t ow = 0; ow < s.ow; ++ow) {
          double sum = bias.empty() ? 0.0 : bias[oc];
          double magnitude = std::fabs(sum);
          if (!residual.empty()) {
            sum += residual[r.value.size()];
            magnitude += std::fabs(residual[r.value.size()]);
          }
          for (int64_t c = 0; c < group_ic; ++c) {
            for (int64_t i = 0; i < s.kh; ++i) {
              for (int64_t j = 0; j < s.kw; ++j) {
                const int64_t ih = oh * s.stride_h - s.pad_top + i * s.dilation_h;
                const int64_t iw = ow * s.stride_w - s.pad_left + j * s.dilation_w;
                if (ih < 0 || ih >= s.ih || iw < 0 || iw >= s.iw) continue;
                const int64_t channel = oc / group_oc * group_ic + c;
                const double product = double(src[((n * s.ic + channel) * s.ih + ih) * s.iw + iw]) *
                                       weight[((oc * group_ic + c) * s.kh + i) * s.kw + j];
                sum += product;
                magnitude += std::fabs(product);
              }
            }
          }
          r.value.push_back(std::clamp<double>(sum, lo, hi));
          r.magnitude.push_back(magnitude);
        }
      }
    }
  }
  return r;
}

// An NCHW[block]c tensor inside a larger one (a piece of a concat) whose every other element is poison.
struct BlockedTensor {
  int64_t n, c, plane, block, blocks, batch_stride, block_stride;
  std::vector<float> data;
  int64_t start;

  BlockedTensor(int64_t n, int64_t c, int64_t plane, int64_t block, bool view)
      : n(n), c(c), plane(plane), block(block), blocks((c + block - 1) / block) {
    block_stride = plane * block;
    batch_stride = blocks * block_stride + (view ? 2 * block_stride : 0);
    start = view ? block_stride : 0;
    data.assign(n * batch_stride, std::numeric_limits<float>::quiet_NaN());
  }
  float* base() { return data.data() + start; }
  float& at(int64_t image, int64_t channel, int64_t pixel) {
    return data[start + image * batch_stride + channel / block * block_stride + pixel * block + channel % block];
  }
  void fill(const std::vector<float>& nchw) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t channel = 0; channel < blocks * block; ++channel) {
        for (int64_t p = 0; p < plane; ++p) {
          at(i, channel, p) = channel < c ? nchw[(i * c + channel) * plane + p] : 0.0f;
        }
      }
    }
  }
  // Padding lanes are zero and nothing around the tensor was written.
  void check_surroundings() {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t channel = c; channel < blocks * block; ++channel) {
        for (int64_t p = 0; p < plane; ++p) ASSERT_EQ(at(i, channel, p), 0.0f) << "padding lane " << channel;
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < batch_stride; ++k) {
        const bool inside = k >= start && k < start + blocks * block_stride;
        ASSERT_TRUE(inside || std::isnan(data[i * batch_stride + k])) << "written outside at " << k;
      }
    }
  }
};

// Rounding of a sum in float: a few eps of the sum of the terms' magnitudes, which is far below one missing term.
inline void expect_near(float y, double exact, double magnitude, const std::string& where) {
  constexpr double kK = 4.0;
  const double tolerance = kK * std::numeric_limits<float>::epsilon() * magnitude + 1e-37;
  ASSERT_LE(std::fabs(y - exact), tolerance) << where << ": " << y << ", exact " << exact;
}

// Calls run(begin, end, member) over [0, tasks) in shuffled pieces, as a team might.
template <class Run>
void run_as_team(Random& random, int64_t tasks, Run&& run) {
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (int64_t t = 0; t < tasks;) {
    const int64_t size = std::min<int64_t>(tasks - t, random.range(1, 4));
    pieces.push_back({t, t + size});
    t += size;
  }
  for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.range(0, int64_t(i) - 1)]);
  for (const auto& [begin, end] : pieces) run(begin, end, int(random.range(0, 1)));
}

}  // namespace neo::testing
