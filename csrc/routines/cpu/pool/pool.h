#pragma once

// Kernels of pooling. A maximum passes over NaN, except where the first element below the window is one (as the
// reference). Safe in kernel files.

#include <stdint.h>

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
  PoolAxis axis[3];  // depth, height, width
  int64_t images = 1;
  int64_t planes = 1;    // of one image: channels, or blocks of channels
  int64_t channels = 1;  // without the padding lanes
  int64_t src_image = 0, src_plane = 0;
  int64_t dst_image = 0, dst_plane = 0;
  bool average = false;
  bool include_pad = false;  // an average counts the padding

  int64_t rows() const { return images * planes * axis[0].output * axis[1].output; }
};

// A task is a row of the output.
struct PoolArgs {
  PoolShape shape;
  const float* src = nullptr;
  float* dst = nullptr;
  float* workspace = nullptr;  // plain layout: a row of the input
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
