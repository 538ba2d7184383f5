#pragma once

// Kernels of GridSample: over planes by nearest or by linear interpolation; over lines and volumes, and by a cubic, as
// sums of weighted pixels. Over planes every product and sum is rounded on its own and in the order of onnxruntime's
// kernel, so that every instruction set gives the same bits: linear is
//   dy2 * (dx2 * p11 + dx1 * p12) + dy1 * (dx2 * p21 + dx1 * p22)
// and with zeros around planes whose corners are not aligned
//   (dy2 * dx2) * p11 + (dy2 * dx1) * p12 + (dy1 * dx2) * p21 + (dy1 * dx1) * p22.
// Safe in kernel files.

#include <stdint.h>

namespace neo {

enum class GridPadding : uint8_t { Zeros, Border, Reflection };

constexpr int64_t kGridPoints = 64;    // of a task
constexpr int64_t kGridChannels = 32;  // of a task
constexpr int kMaxGridAxes = 3;

// A task is a part of the points and of the channels of one image.
struct GridSampleArgs {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t points = 1;
  int axes = 2;                      // that are sampled, 1 to 3
  int64_t sizes[kMaxGridAxes] = {};  // of x along them, the outermost first; their product fits int32_t
  bool nearest = false;
  bool cubic = false;
  bool align_corners = false;
  GridPadding padding = GridPadding::Zeros;
  const float* x = nullptr;     // [images, channels, sizes...]
  const float* grid = nullptr;  // [images, points, axes]: the innermost axis first
  float* y = nullptr;           // [images, channels, points]
};

}  // namespace neo
