#pragma once

#include <cstdint>

namespace neo {

// The bias of a convolution in the order of its panels of output channels, each group's padded with zeros to whole
// vectors. A plan has the shape, `group_vectors` and `lanes`.
template <class Plan>
int64_t packed_bias_size(const Plan& plan) {
  return plan.shape.groups * plan.group_vectors * plan.lanes;
}

template <class Plan>
void pack_bias(const Plan& plan, const float* bias, float* packed) {
  const int64_t group_oc = plan.shape.group_oc(), padded = plan.group_vectors * plan.lanes;
  for (int64_t g = 0; g < plan.shape.groups; ++g) {
    for (int64_t c = 0; c < padded; ++c) packed[g * padded + c] = c < group_oc ? bias[g * group_oc + c] : 0.0f;
  }
}

}  // namespace neo
