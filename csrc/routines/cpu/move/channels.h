#pragma once

// Kernels that put channels of NCHW[x]c, x the vector width, into other places. Safe in kernel files.

#include <stdint.h>

namespace neo {

constexpr int kMostChannelLanes = 16;

// What one vector of channels of a result takes from one of a source.
struct ChannelPick {
  const float* src = nullptr;       // of the first pixel
  int32_t lane[kMostChannelLanes];  // by lane of the result; -1: none
};

}  // namespace neo
