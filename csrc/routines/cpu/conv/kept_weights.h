#pragma once

#include <cstdint>

#include "routines/cost/target.h"

namespace neo {

// The weights that the tiles of a convolution read one after the other.
struct KeptWeights {
  int64_t channels = 0;       // input channels per group
  int64_t channel_bytes = 0;  // weights of a channel and a panel of output channels
  int64_t image_bytes = 0;    // of a group's input

  // Whether the private cache keeps `bytes` of them for all tiles that read them, beside those that are fetched
  // meanwhile and what is read of the image.
  bool keeps(double bytes, const Target& target) const;
  // Input channels whose weights the private cache keeps for many tiles; 0: it keeps those of all.
  int64_t near_channels(const Target& target) const;
};

}  // namespace neo
