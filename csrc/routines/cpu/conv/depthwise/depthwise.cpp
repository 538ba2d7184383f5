#include "routines/cpu/conv/depthwise/depthwise.h"

#include <algorithm>

#include "base/int_math.h"

namespace neo {

const char* reject_depthwise(const ConvShape& s) {
  if (s.ic != s.groups || s.oc != s.groups) return "not one input and one output channel per group";
  if (s.kh > kDepthwiseMaxRows) return "the kernel has more than 64 rows";
  return nullptr;
}

DepthwisePlan plan_depthwise(const ConvShape& s, int64_t lanes, int64_t lines) {
  DepthwisePlan plan;
  plan.shape = s;
  plan.lanes = lanes;
  const int64_t vectors = ceil_div(s.ic, lanes);
  const int64_t planes = std::max<int64_t>(1, s.n * vectors);
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(s.flops() / 250000, planes), 1, std::max<int64_t>(1, 48 / planes));
  plan.rows = std::max<int64_t>(1, lines > 0 ? std::min(lines, s.oh) : ceil_div(s.oh, wanted));
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.tasks = s.n * vectors * plan.chunks;
  return plan;
}

void run_depthwise(const DepthwisePlan& plan, const DepthwiseKernels& kernels, const ConvOperands& args,
                   int64_t task_begin, int64_t task_end) {
  if (!args.activation) {
    kernels.run(plan, args, task_begin, task_end);
    return;
  }
  const ConvShape& s = plan.shape;
  const int64_t vectors = ceil_div(s.ic, plan.lanes);
  for (int64_t task = task_begin; task < task_end; ++task) {
    kernels.run(plan, args, task, task + 1);
    const int64_t first = task % plan.chunks * plan.rows, rows = std::min(plan.rows, s.oh - first);
    const int64_t vector = task / plan.chunks % vectors, image = task / (plan.chunks * vectors);
    args.activation(args.dst + image * args.dst_batch + vector * args.dst_channel + first * s.ow * plan.lanes,
                    rows * s.ow * plan.lanes);
  }
}

double depthwise_efficiency(const ConvShape& s) {
  const bool dense = s.dilation_w == 1 && (s.kw == 3 || s.kw == 5 || s.kw == 7) && s.stride_w <= (s.kw == 7 ? 1 : 2);
  if (!dense) return 0.5;
  if (s.stride_w == 2) return s.kw == 3 ? 0.55 : 0.8;
  return s.kw == 3 ? 0.8 : 0.9;
}

int64_t depthwise_weight_size(const DepthwisePlan& plan) {
  return ceil_div(plan.shape.ic, plan.lanes) * plan.lanes * plan.shape.taps();
}

void pack_depthwise_weight(const DepthwisePlan& plan, const float* weight, float* packed) {
  const ConvShape& s = plan.shape;
  for (int64_t c0 = 0; c0 < s.ic; c0 += plan.lanes) {
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      for (int64_t c = c0; c < c0 + plan.lanes; ++c) *packed++ = c < s.ic ? weight[c * s.taps() + tap] : 0.0f;
    }
  }
}

}  // namespace neo
