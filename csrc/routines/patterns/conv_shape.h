#pragma once

#include <stdint.h>

namespace neo {

// A two-dimensional convolution; one-dimensional ones have ih = oh = kh = 1. Padding after the end is what oh and ow
// imply. A transposed convolution uses the same fields with the roles of input and output as in its own definition.
struct ConvShape {
  int64_t n = 1;
  int64_t groups = 1;
  int64_t ic = 1, ih = 1, iw = 1;
  int64_t oc = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_h = 1, dilation_w = 1;

  int64_t group_ic() const { return ic / groups; }
  int64_t group_oc() const { return oc / groups; }
  int64_t taps() const { return kh * kw; }
  int64_t flops() const { return 2 * n * oc * oh * ow * group_ic() * taps(); }
};

// Axes are depth, height, width; ranks below three leave the leading ones at 1.
struct Im2colConvShape {
  int64_t n = 1, groups = 1, ic = 1, oc = 1;
  int64_t in[3] = {1, 1, 1};
  int64_t out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0};  // before the start; after the end: what `out` implies
  int64_t dilation[3] = {1, 1, 1};
  bool transposed = false;

  int64_t group_ic() const { return ic / groups; }
  int64_t group_oc() const { return oc / groups; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  // At most 2^62: sizes that only a call tells may be estimated to be anything.
  int64_t flops() const {
    const double found = 2.0 * static_cast<double>(n) * static_cast<double>(oc) * static_cast<double>(group_ic()) *
                         static_cast<double>(taps()) * static_cast<double>(transposed ? in_size() : out_size());
    return found < 0x1p62 ? static_cast<int64_t>(found) : int64_t{1} << 62;
  }
};

}  // namespace neo
