#pragma once

// Kernels of LRN: y = x / (bias + scale * (the squares of the window's channels))^beta. Safe in kernel files.

#include <stdint.h>

namespace neo {

constexpr int64_t kLrnPixels = 128;   // plain layout: pixels of a task
constexpr int64_t kLrnChannels = 16;  // plain layout: channels of a task
constexpr int64_t kLrnBlock = 32;     // channel blocks: pixels of a task

// A task is a part of the pixels of some channels of one image; both are counted by the constants above, and every task
// of channel blocks is one block.
struct LrnArgs {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t pixels = 1;
  int64_t image = 0;   // from one image to the next, in floats
  int64_t before = 0;  // channels of a window before its own, and behind it
  int64_t after = 0;
  float scale = 0;
  float bias = 1;
  float beta = 0.75f;
  const float* src = nullptr;
  float* dst = nullptr;
};

}  // namespace neo
