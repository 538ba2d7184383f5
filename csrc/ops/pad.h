#pragma once

#include <vector>

#include "ops/op.h"

namespace neo {

// The elements that a Pad or a CenterCropPad puts before and behind every axis; negative: those that it takes away.
struct PadSizes {
  std::vector<int64_t> begin, end;
  Dims output;
};

// As the operands of a call say; a Shape error where they do not fit the input.
PadSizes pad_sizes(const ReferenceContext& ctx);

}  // namespace neo
