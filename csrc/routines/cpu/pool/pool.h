#pragma once

// Kernels of pooling. A maximum passes over NaN, except (as the reference) where the first element below the window is
// one and the layout is not the plain one. Safe in kernel files.

#include <stdint.h>

#include "base/span.h"

namespace neo {

// One spatial axis of a pool. Output o reads the inputs o * stride - pad + tap * dilation that exist.
struct PoolAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;     // before the first element
  int64_t padded = 1;  // size with the padding at both ends
  int64_t src = 0;     // from one element to the next, in floats
  int64_t dst = 0;
};

struct PoolShape {
  static constexpr int64_t kPlainVector = 16;  // lanes of the widest vector
  static constexpr int64_t kMaxTogether = 8;

  PoolAxis axis[3];  // depth, height, width
  int64_t images = 1;
  int64_t planes = 1;    // of one image: channels, or blocks of channels
  int64_t channels = 1;  // without the padding lanes
  int64_t src_image = 0, src_plane = 0;
  int64_t dst_image = 0, dst_plane = 0;
  bool average = false;
  bool include_pad = false;  // an average counts the padding

  // Elements of one window.
  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  int64_t rows() const { return images * planes * axis[0].output * axis[1].output; }

  // Plain layout: floats of a padded row of the input that whole vectors of outputs may read, and of a value per
  // output.
  NEO_INLINE int64_t plain_row() const {
    const PoolAxis& a = axis[2];
    const int64_t read = (plain_outputs() - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 + kPlainVector;
    const int64_t written = a.pad + a.input;
    return ((read > written ? read : written) / kPlainVector + 1) * kPlainVector;
  }
  int64_t plain_outputs() const { return (axis[2].output / kPlainVector + 1) * kPlainVector; }
  // Such rows that the kernel holds at once.
  NEO_INLINE int64_t plain_together() const {
    constexpr int64_t kElements = 4096;
    const int64_t fit = kElements / plain_row();
    return fit < 1 ? 1 : fit < kMaxTogether ? fit : kMaxTogether;
  }
  int64_t plain_workspace() const { return plain_together() * plain_row() + 2 * plain_outputs(); }
};

// A task is a row of the output; of channel blocks they go band by band of rows.
struct PoolArgs {
  PoolShape shape;
  const float* src = nullptr;
  float* dst = nullptr;
  float* workspace = nullptr;  // plain layout: PoolShape::plain_workspace() floats
};

// Every plane of channel blocks to one block. A task is a plane.
struct GlobalPoolArgs {
  int64_t planes = 1;    // of one image
  int64_t channels = 1;  // of one image
  int64_t positions = 1;
  int64_t src_image = 0, src_plane = 0;
  int64_t dst_image = 0, dst_plane = 0;
  bool average = false;
  bool blocked_dst = true;  // else channels are dense, and lanes beyond the last one do not exist
  const float* src = nullptr;
  float* dst = nullptr;
};

}  // namespace neo
