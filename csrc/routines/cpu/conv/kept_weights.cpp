#include "routines/cpu/conv/kept_weights.h"

#include <algorithm>

namespace neo {

bool KeptWeights::keeps(double bytes, const Target& target) const {
  constexpr double kUsed = 0.85, kOfImage = 0.25;
  const auto cache = static_cast<double>(private_caches(target).l2_bytes);
  return 2 * bytes + std::min(static_cast<double>(image_bytes), kOfImage * cache) <= kUsed * cache;
}

int64_t KeptWeights::near_channels(const Target& target) const {
  const int64_t kept = private_caches(target).l2_bytes / 4;
  if (keeps(static_cast<double>(channels * channel_bytes), target)) return 0;
  int64_t near = target.lanes();
  while (2 * near * channel_bytes <= kept && 2 * near < channels) near *= 2;
  return near;
}

}  // namespace neo
