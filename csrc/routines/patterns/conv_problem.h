#pragma once

#include <optional>
#include <string>

#include "ops/window.h"
#include "routines/patterns/conv_shape.h"
#include "routines/patterns/epilogue.h"

namespace neo {

// A convolution apart from the sizes of batch and space. Spatial axes are depth, height, width; a tensor with
// fewer has the last ones.
struct ConvGeometry {
  bool transposed = false;
  int axes = 0;  // spatial
  int64_t groups = 1, ic = 0, oc = 0;
  int64_t kernel[3] = {1, 1, 1};
  Window window;
  bool pads_from_output = false;  // transposed: the padding is what the output leaves over
  bool pools = false;  // the output has the largest of every 2x2 results, those of an odd last row or column left out
  std::vector<int64_t> output_padding;

  bool is_depthwise() const { return !transposed && groups > 1 && ic == groups && oc == groups; }
  // One tap of one group, without padding; and in every pixel, so that each reads the one that it writes.
  bool is_sampling_pointwise() const;
  bool is_pointwise() const;
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // The padding before the start of spatial axis `axis` of the tensor.
  int64_t pad_begin(int axis, int64_t input, int64_t output) const;

  Dims output(const Dims& x) const;                     // not transposed
  Dims results(Dims y) const;                           // that become the output
  ConvShape shape(const Dims& x, const Dims& y) const;  // one or two spatial axes; of the results
  Im2colConvShape panel_shape(const Dims& x, const Dims& y) const;
  // The same for weights of these sizes.
  ConvGeometry of_weight(const Dims& weight) const;
};

// Reads a Conv or ConvTranspose; false where a size of the weights is not a positive constant, and the channels and the
// kernel are those of the hint.
bool read_conv_geometry(const Node& node, const Shape& weight, ConvGeometry& geometry);

// A group that begins with a Conv or ConvTranspose, as a routine sees it.
struct ConvProblem {
  ConvGeometry geometry;
  const Value* x = nullptr;
  const Value* weight = nullptr;
  const Value* bias = nullptr;  // or null
  const Value* y = nullptr;
  Epilogue epilogue;

  int rank() const { return geometry.axes + 2; }
  // Sizes that costs are taken at, at least 1.
  Dims x_hint() const;
  Dims y_hint() const;
  ConvShape hint_shape() const;
  Im2colConvShape hint_panel_shape() const;
  // Sizes of 1 for batch and space, on which neither packed weights nor most rejections depend.
  ConvShape unit_shape() const;
  Im2colConvShape unit_panel_shape() const;
  // Bytes of input, results and residual at the hint, with channels padded to blocks where those are blocked. Pooled
  // results count as if they were stored: figures for such a group were not learned.
  double traffic_bytes(int64_t x_block, int64_t y_block) const;
};

// A Conv and the MaxPool of every 2x2 of its results, where no other node reads these and `root` is that; else none.
std::vector<Workload> match_pooled_conv(const Node& root, const Graph::Users& users, const Graph& graph);

// None, with the reason, where no float32 routine takes it. `takes_open` tells that the caller takes weights whose
// sizes only a call tells: it then has those of the hint, and each call asks of_weight() for its own. `dtype` is that
// of every operand.
std::optional<ConvProblem> read_conv(const Workload& workload, std::string* why, bool takes_open = false,
                                     DType dtype = DType::Float32);

// Why weights and bias cannot be packed at compile time; null where they can.
const char* reject_run_time_weights(const ConvProblem& problem);

}  // namespace neo
