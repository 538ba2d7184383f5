#pragma once

#include "ops/op.h"

namespace neo {

// How one axis is resized.
struct AxisResize {
  int axis = 0;
  int64_t input = 0;
  int64_t output = 0;
  double scale = 1;
  double width = 0;  // the output's size before it was rounded to an integer
  double begin = 0;  // of the region
  double end = 1;

  // Whether every element stays where it is.
  bool is_kept() const { return input == output && scale == 1 && begin == 0 && end == 1; }
};

// The input elements that make the output elements of an axis: tap t of output o is at [t * outputs + o]. Positions
// beyond the ends repeat the ends. All taps of an output that takes the extrapolation value are at -1.
struct ResizeTaps {
  int64_t taps = 1;
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

// The taps of an axis, as a Resize node's attributes say.
ResizeTaps resize_taps(const Node& node, const AxisResize& axis);

// The axes that a Resize is given, in the order of its list, as a call's operands say; a Shape error where they do not
// fit its input.
std::vector<AxisResize> resize_axes(const ReferenceContext& ctx);

}  // namespace neo
