#include "routines/cpu/conv/depthwise.h"

#include <algorithm>

#include "routines/cpu/gemm/split.h"

namespace neo {
const char* reject_depthwise(const ConvShape& s, int64_t block, int64_t lanes) {
  if (s.ic != s.groups || s.oc != s.groups) return "not one input and one output channel per group";
  if (block % lanes != 0) return "the block must be a multiple of the vector width";
  return nullptr;
}

DepthwisePlan plan_depthwise(const ConvShape& s, int64_t block, int64_t lanes) {
  DepthwisePlan plan;
  plan.shape = s;
  plan.block = block;
  // ow * stride - pad >= 0 and ow * stride - pad + (kw - 1) * dilation < iw
  const int64_t reach = s.iw - 1 + s.pad_left - (s.kw - 1) * s.dilation_w;
  plan.inner_begin = std::clamp<int64_t>(ceil_div(std::max<int64_t>(s.pad_left, 0), s.stride_w), 0, s.ow);
  plan.inner_end = reach < 0 ? 0 : std::min(reach / s.stride_w + 1, s.ow);
  plan.inner_end = std::max(plan.inner_end, plan.inner_begin);
  const int64_t vectors = ceil_div(s.ic, block) * (block / lanes);
  const int64_t planes = std::max<int64_t>(1, s.n * vectors);
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(s.flops() / 250000, planes), 1, std::max<int64_t>(1, 48 / planes));
  plan.rows = std::max<int64_t>(1, ceil_div(s.oh, wanted));
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.tasks = s.n * vectors * plan.chunks;
  return plan;
}

int64_t depthwise_weight_size(const DepthwisePlan& plan) {
  return ceil_div(plan.shape.ic, plan.block) * plan.block * plan.shape.taps();
}

void pack_depthwise_weight(const DepthwisePlan& plan, const float* weight, float* packed) {
  const ConvShape& s = plan.shape;
  for (int64_t c0 = 0; c0 < s.ic; c0 += plan.block) {
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      for (int64_t c = c0; c < c0 + plan.block; ++c) *packed++ = c < s.ic ? weight[c * s.taps() + tap] : 0.0f;
    }
  }
}

}  // namespace neo
