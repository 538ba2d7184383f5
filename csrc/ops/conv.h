#pragma once

#include "ops/window.h"

// Convolution as the float and the quantized operators share it.

namespace neo {

// Sets output 0: the shape of a convolution of input `x` with the weights `w`.
void infer_convolution(InferContext& ctx, int x, int w, DType output);
// Checks a bias of one element per output channel.
void infer_channel_vector(InferContext& ctx, int input, const Dim& channels, std::string_view what);

struct ConvSizes {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t in_channels = 0;   // of one group
  int64_t out_channels = 0;  // of one group
  WindowSizes window;

  Dims output_dims() const;
};
ConvSizes conv_sizes(const ReferenceContext& ctx, const Dims& x, const Dims& w);

// The sums of products, without bias. Instantiated for double and int64_t.
template <class T>
std::vector<T> convolve(const ConvSizes& sizes, const std::vector<T>& x, const std::vector<T>& w);

// 2 x output elements x (weights per output channel), and all operands; `w` is the input that holds the weights.
Work convolution_work(const Node& node, size_t w);

// Applies the attributes clamp_min and clamp_max where the node has them.
void clamp_result(const Node& node, std::vector<double>& elements);

}  // namespace neo
