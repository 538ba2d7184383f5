#pragma once

// Kernels of GridSample over planes, by nearest or by linear interpolation. Every product and sum is rounded on its
// own and in the order of onnxruntime's kernel, so that every instruction set gives the same bits: linear is
//   dy2 * (dx2 * p11 + dx1 * p12) + dy1 * (dx2 * p21 + dx1 * p22)
// and with zeros around planes whose corners are not aligned
//   (dy2 * dx2) * p11 + (dy2 * dx1) * p12 + (dy1 * dx2) * p21 + (dy1 * dx1) * p22.
// Safe in kernel files.

#include <stdint.h>

namespace neo {

enum class GridPadding : uint8_t { Zeros, Border, Reflection };

constexpr int64_t kGridPoints = 64;    // of a task
constexpr int64_t kGridChannels = 32;  // of a task

// A task is a part of the points and of the channels of one image.
struct GridSampleArgs {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t points = 1;
  int64_t rows = 1, columns = 1;  // of a plane of x; their product fits int32_t
  bool nearest = false;
  bool align_corners = false;
  GridPadding padding = GridPadding::Zeros;
  const float* x = nullptr;     // [images, channels, rows, columns]
  const float* grid = nullptr;  // [images, points, 2]: column and row
  float* y = nullptr;           // [images, channels, points]
};

}  // namespace neo
