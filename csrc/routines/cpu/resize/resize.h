#pragma once

// Kernels that resize the last two axes: rows are mixed first, then the elements of the mixed row. Safe in kernel
// files.

#include <stdint.h>

namespace neo {

// Every output position is the sum of `taps` inputs: tap t of position o is at [t * outputs + o].
struct ResizeTable {
  int64_t taps = 1;  // 1: the element itself, weight 1
  int64_t outputs = 1;
  const int32_t* position = nullptr;
  const float* weight = nullptr;
};

struct ResizeArgs {
  int64_t planes = 1;
  int64_t input_rows = 1, input_columns = 1;
  int64_t rows = 1, columns = 1;  // of the output
  ResizeTable row, column;
  const float* src = nullptr;  // dense planes; channel blocks have kLanes floats per element
  float* dst = nullptr;
  float* workspace = nullptr;  // one input row
  // Of channel blocks: a plane has a block for every kLanes of so many channels, and the output holds the channels of a
  // pixel side by side. kLanes: the output has blocks too.
  int64_t channels = 1;
};

}  // namespace neo
