#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace neo {

// A Conv, ConvTranspose, Gemm or MatMul for folds into it: the place of its output channels.
struct LinearNode {
  static constexpr size_t kBias = 2;  // the input, of a MatMul too
  Node* node = nullptr;
  int64_t channels = 0;  // output channels; the length of the bias
  int channel_axis = 0;  // of the output
};

// The node, when its weights are a float constant of known shape and its bias, if any, a constant vector; without a
// clamp, unless that is asked for.
std::optional<LinearNode> as_linear(Node& node, bool may_clamp = false);

// The bias as doubles, zeros where there is none.
std::vector<double> bias_of(const LinearNode& linear);
void set_bias(Rewriter& rewriter, const LinearNode& linear, const std::vector<double>& bias);
// Scales the weights of output channel c by scale[c].
void set_weights(Rewriter& rewriter, const LinearNode& linear, const std::vector<double>& scale);

// A constant that holds one number per channel of a value of this rank, or one for all; as numbers per channel.
std::optional<std::vector<double>> per_channel(const Value& constant, int rank, int channel_axis, int64_t channels);

}  // namespace neo
