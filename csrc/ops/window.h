#pragma once

#include <functional>

#include "ops/op.h"

// The sliding window of convolutions and pools: the attributes kernel_shape, strides, dilations, pads, auto_pad and
// ceil_mode over the spatial axes, which follow batch and channels.

namespace neo {

enum class AutoPad : uint8_t { NotSet, SameUpper, SameLower };  // VALID is NotSet with pads of 0

struct Window {
  std::vector<int64_t> kernel;  // empty: that of the weights
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  // beginnings, then ends; what auto_pad asks for is not in it
  AutoPad auto_pad = AutoPad::NotSet;
  bool ceil_mode = false;

  int rank() const { return static_cast<int>(strides.size()); }
};

// Reads and checks the attributes; a Model error that names the node where one is out of range.
Window read_window(const Node& node, int spatial_rank);
AutoPad read_auto_pad(const Node& node);

// How many elements of the input one window covers on an axis.
Dim window_extent(const Window& window, int axis, const Dim& kernel);
// The size of an output axis.
Dim window_output(const Window& window, int axis, const Dim& kernel, const Dim& input);
// The padding before the first element of an axis of known size.
int64_t window_pad_begin(const Window& window, int axis, int64_t kernel, int64_t input);
// The padding of an axis at both ends together.
int64_t window_pad_total(const Window& window, int axis, int64_t kernel, int64_t input);

// A window over axes of known size.
struct WindowSizes {
  Dims input;
  Dims kernel;
  Dims output;
  Dims strides;
  Dims dilations;
  Dims pads_begin;

  int rank() const { return static_cast<int>(input.size()); }
};
WindowSizes window_sizes(const ReferenceContext& ctx, const Window& window, const Dims& kernel, const Dims& input);

// A range of positions on one axis.
struct OutputRange {
  int64_t begin = 0;
  int64_t end = 0;
};
// The output positions at which tap `tap` of the window lies inside the input.
OutputRange valid_outputs(const WindowSizes& sizes, int axis, int64_t tap);

// Calls body(input, output, count) for runs of elements along the last axis: tap `tap` of the window of the output
// elements output, output + 1, ... lies on the input elements input, input + stride, ...
void for_each_run(const WindowSizes& sizes, const Dims& tap,
                  const std::function<void(int64_t input, int64_t output, int64_t count)>& body);

}  // namespace neo
