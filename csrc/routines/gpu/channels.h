#pragma once

#include <cstdint>
#include <string>

#include "ir/layout.h"

namespace neo::gpu {

// How many channels, axis 1 of a value, lie together in memory. 1: each plane by itself (NCHW); 4, 8, 16: blocks of so
// many (NCHW[x]c); kAllChannels: all of them, behind the other axes (NHWC).
constexpr int64_t kAllChannels = 0;

// "nchw", "nchw8c", "nhwc".
std::string channels_tag(int64_t together);

// The layout of a value of this rank whose channels are along `axis`.
Layout channels_layout(int rank, int64_t together, int axis = 1);

// NHWC is in memory what NCHW[x]c is with one block: programs know blocks alone.
inline int64_t channels_block(int64_t together, int64_t channels) {
  return together == kAllChannels ? channels : together;
}

}  // namespace neo::gpu
