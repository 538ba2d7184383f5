#pragma once

// A transposed convolution cut by the residues of its outputs modulo the stride: the outputs of one residue along each
// axis are an ordinary convolution of stride one, over the taps that reach them. An ordinary convolution has one
// residue.

#include <stdint.h>

#include "routines/patterns/conv_shape.h"

namespace neo {

// The taps of one axis whose distance from the first one has a given residue modulo the stride, whatever the padding:
// kernel positions first + i * step, 0 <= i < count.
struct ResidueTaps {
  int64_t first = 0, step = 1, count = 0;

  static ResidueTaps of(const Im2colConvShape& shape, int axis, int64_t residue);
};

// Output positions begin + q * output_step() of one axis, 0 <= q < count. Tap i of them reads the input at
// q * in_step + first_offset + i * offset_step.
struct OutputPhase {
  int64_t begin = 0, count = 0, in_step = 1;
  int64_t residue = 0;  // of their taps
  ResidueTaps taps;
  int64_t first_offset = 0, offset_step = 0;

  static OutputPhase of(const Im2colConvShape& shape, int axis, int64_t begin);
  int64_t offset(int64_t tap) const { return first_offset + tap * offset_step; }
};

// The longest stride along a row that the routines of transposed convolutions take: they keep a row's phases.
inline constexpr int64_t kMaxRowStride = 64;

// Residues of an axis, which is also how far apart the outputs of one are.
inline int64_t output_step(const Im2colConvShape& shape, int axis) {
  return shape.transposed ? shape.stride[axis] : 1;
}

// Phases of an axis that have outputs.
int64_t phase_count(const Im2colConvShape& shape, int axis);
// Products of one input and one output channel, of all outputs together: those with elements beyond the input count.
int64_t output_products(const Im2colConvShape& shape);

// Packed weights hold the taps of all residues of the depth, the height and the width, one after the other.
// Taps before those of the given residues:
int64_t taps_before(const Im2colConvShape& shape, const int64_t (&residues)[3]);
// f(depth, height, width) of the taps of each combination of residues that has some, in that order.
template <class F>
void for_each_residue(const Im2colConvShape& shape, F&& f) {
  for (int64_t d = 0; d < output_step(shape, 0); ++d) {
    const ResidueTaps depth = ResidueTaps::of(shape, 0, d);
    for (int64_t h = 0; depth.count > 0 && h < output_step(shape, 1); ++h) {
      const ResidueTaps height = ResidueTaps::of(shape, 1, h);
      for (int64_t w = 0; height.count > 0 && w < output_step(shape, 2); ++w) {
        const ResidueTaps width = ResidueTaps::of(shape, 2, w);
        if (width.count > 0) f(depth, height, width);
      }
    }
  }
}

}  // namespace neo
