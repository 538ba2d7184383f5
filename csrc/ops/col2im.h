#pragma once

#include "ops/op.h"

namespace neo {

// The blocks of an image that the columns of a Col2Im are added to, by spatial axis.
struct ImageBlocks {
  Dims image, block;
  Dims positions;  // of the block in the image
  std::vector<int64_t> strides, dilations, pads;
  Dims output;

  // The place on an axis of tap `tap` of the block at `position`; maybe outside the image.
  int64_t place(size_t axis, int64_t position, int64_t tap) const {
    return position * strides[axis] + tap * dilations[axis] - pads[axis];
  }
};

// As the operands of a call say; a Shape error where they do not fit each other.
ImageBlocks image_blocks(const ReferenceContext& ctx);

}  // namespace neo
