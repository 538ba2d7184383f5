#include "routines/cpu/conv/transposed/transposed_depthwise.h"

#include <algorithm>

#include "base/int_math.h"
#include "routines/patterns/transposed_taps.h"

namespace neo {
namespace {

constexpr int64_t kMaxDepthwiseTaps = 64;  // that reach an output

}  // namespace

const char* reject_transposed_depthwise(const Im2colConvShape& s) {
  if (s.ic != s.groups || s.oc != s.groups || s.groups == 1) return "not one input and one output channel per group";
  if (s.stride[2] > kMaxRowStride) return "a stride of more than 64 pixels";
  if (ResidueTaps::of(s, 0, 0).count * ResidueTaps::of(s, 1, 0).count > kMaxDepthwiseTaps) {
    return "more than 64 rows of taps reach an output";
  }
  return nullptr;
}

TransposedDepthwisePlan plan_transposed_depthwise(const Im2colConvShape& s, int64_t lanes, int64_t bands) {
  constexpr int64_t kTaskFlops = 250000, kMaxTasks = 48;
  TransposedDepthwisePlan plan;
  plan.shape = s;
  plan.lanes = lanes;
  plan.vectors = ceil_div(s.ic, lanes);
  plan.depths = ceil_div(s.out[0], s.stride[0]);
  plan.lines = ceil_div(s.out[1], s.stride[1]);
  const int64_t planes = std::max<int64_t>(1, s.n * plan.vectors), all = std::max<int64_t>(1, plan.depths * plan.lines);
  const int64_t wanted = std::clamp<int64_t>(ceil_div(transposed_depthwise_flops(plan) / kTaskFlops, planes), 1,
                                             std::max<int64_t>(1, kMaxTasks / planes));
  plan.band_chunk = bands > 0 ? std::min(bands, all) : ceil_div(all, wanted);
  plan.chunks = ceil_div(plan.depths * plan.lines, plan.band_chunk);
  plan.tasks = s.out[2] == 0 ? 0 : s.n * plan.vectors * plan.chunks;
  return plan;
}

int64_t transposed_depthwise_flops(const TransposedDepthwisePlan& plan) {
  return 2 * plan.shape.n * plan.vectors * plan.lanes * output_products(plan.shape);
}

int64_t transposed_depthwise_weight_size(const TransposedDepthwisePlan& plan) {
  return plan.vectors * plan.lanes * plan.shape.taps();
}

void pack_transposed_depthwise_weight(const TransposedDepthwisePlan& plan, const float* weight, float* packed) {
  const Im2colConvShape& s = plan.shape;
  for (int64_t first = 0; first < s.ic; first += plan.lanes) {
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      for (int64_t c = first; c < first + plan.lanes; ++c) *packed++ = c < s.ic ? weight[c * s.taps() + tap] : 0.0f;
    }
  }
}

void run_transposed_depthwise(const TransposedDepthwisePlan& plan, const TransposedDepthwiseKernels& kernels,
                              const ConvOperands& args, int64_t task_begin, int64_t task_end) {
  const Im2colConvShape& s = plan.shape;
  const int64_t lanes = plan.lanes, columns = phase_count(s, 2);
  OutputPhase widths[kMaxRowStride];
  for (int64_t w = 0; w < columns; ++w) widths[w] = OutputPhase::of(s, 2, w);
  const float* rows[kMaxDepthwiseTaps];
  const float* weights[kMaxDepthwiseTaps];
  TransposedLine line;
  line.rows = rows;
  line.weights = weights;
  line.columns = s.in[2];
  line.dst_step = s.stride[2] * lanes;
  line.lo = args.lo;
  line.hi = args.hi;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks, vector = task / plan.chunks % plan.vectors;
    const int64_t image = task / (plan.chunks * plan.vectors);
    const float* src = args.src + image * args.src_batch + vector * args.src_channel;
    float* dst = args.dst + image * args.dst_batch + vector * args.dst_channel;
    const float* residual = args.residual;
    if (residual) residual += image * args.residual_batch + vector * args.residual_channel;
    const float* weight = args.weight + vector * lanes * s.taps();
    line.valid = std::min(lanes, s.ic - vector * lanes);
    if (args.bias) line.bias = args.bias + vector * lanes;

    // One output row of a residue along depth and height.
    const auto run_row = [&](const OutputPhase& depth, const OutputPhase& height, int64_t at_depth, int64_t at) {
      line.row_count = 0;
      for (int64_t d = 0; d < depth.taps.count; ++d) {
        for (int64_t h = 0; h < height.taps.count; ++h) {
          const int64_t id = at_depth + depth.offset(d), ih = at + height.offset(h);
          if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) continue;
          const int64_t kd = depth.taps.first + d * depth.taps.step, kh = height.taps.first + h * height.taps.step;
          rows[line.row_count] = src + (id * s.in[1] + ih) * s.in[2] * lanes;
          weights[line.row_count++] = weight + (kd * s.kernel[1] + kh) * s.kernel[2] * lanes;
        }
      }
      const int64_t od = depth.begin + at_depth * s.stride[0], oh = height.begin + at * s.stride[1];
      const int64_t row = (od * s.out[1] + oh) * s.out[2] * lanes;
      for (int64_t w = 0; w < columns; ++w) {
        const OutputPhase& width = widths[w];
        line.taps = width.taps.count;
        line.first_weight = width.taps.first * lanes;
        line.weight_step = width.taps.step * lanes;
        line.first_offset = width.first_offset;
        line.offset_step = width.offset_step;
        line.count = width.count;
        line.dst = dst + row + width.begin * lanes;
        line.residual = residual ? residual + row + width.begin * lanes : nullptr;
        kernels.line(line);
      }
      if (args.activation) args.activation(dst + row, s.out[2] * lanes);
    };
    const int64_t first = chunk * plan.band_chunk, last = std::min(first + plan.band_chunk, plan.depths * plan.lines);
    for (int64_t d = 0; d < phase_count(s, 0); ++d) {
      const OutputPhase depth = OutputPhase::of(s, 0, d);
      for (int64_t h = 0; h < phase_count(s, 1); ++h) {
        const OutputPhase height = OutputPhase::of(s, 1, h);
        for (int64_t band = first; band < last; ++band) {
          const int64_t at = band % plan.lines, at_depth = band / plan.lines;
          if (at < height.count && at_depth < depth.count) run_row(depth, height, at_depth, at);
        }
      }
    }
  }
}

}  // namespace neo
