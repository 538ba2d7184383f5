#include "routines/cpu/conv/depthwise.h"

#include <algorithm>

#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

// The outputs o with 0 <= o * stride - pad and o * stride - pad + (kernel - 1) * dilation < in.
IndexRange inner_outputs(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t reach = in - 1 + pad - (kernel - 1) * dilation;
  const int64_t begin = std::clamp<int64_t>(ceil_div(std::max<int64_t>(pad, 0), stride), 0, out);
  const int64_t end = reach < 0 ? 0 : std::min(reach / stride + 1, out);
  return {begin, std::max(begin, end)};
}

}  // namespace
const char* reject_depthwise(const ConvShape& s, int64_t block, int64_t lanes) {
  if (s.ic != s.groups || s.oc != s.groups) return "not one input and one output channel per group";
  if (block % lanes != 0) return "the block must be a multiple of the vector width";
  return nullptr;
}

DepthwisePlan plan_depthwise(const ConvShape& s, int64_t block, int64_t lanes) {
  DepthwisePlan plan;
  plan.shape = s;
  plan.block = block;
  const IndexRange columns = inner_outputs(s.iw, s.ow, s.kw, s.stride_w, s.pad_left, s.dilation_w);
  const IndexRange rows = inner_outputs(s.ih, s.oh, s.kh, s.stride_h, s.pad_top, s.dilation_h);
  plan.inner_left = columns.begin;
  plan.inner_right = columns.end;
  plan.inner_top = rows.begin;
  plan.inner_bottom = rows.end;
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
