#pragma once

// Kernels that put channels of NCHW[x]c, x the vector width, into other places. Safe in kernel files.

#include <stdint.h>

namespace neo {

// The lanes that one vector of channels of a result takes from one of a source.
struct ChannelPick {
  const float* src = nullptr;     // of the first pixel
  const int32_t* lane = nullptr;  // by lane of the result; -1: none
};

}  // namespace neo
