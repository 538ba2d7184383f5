#pragma once

#include "ir/graph.h"

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
};

// The input elements that make one output element; positions beyond the ends repeat the ends.
struct ResizeTaps {
  bool outside = false;  // takes the extrapolation value
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

// The taps of every output position of an axis, as a Resize node's attributes say.
std::vector<ResizeTaps> resize_taps(const Node& node, const AxisResize& axis);

}  // namespace neo
