#include "routines/cpu/conv/transposed/subpixel_winograd.h"

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "routines/patterns/transposed_taps.h"
#include "routines/patterns/winograd_form.h"

namespace neo {
namespace {

constexpr int64_t kWidest = 16;  // lanes

}  // namespace

const char* reject_subpixel_winograd(const Im2colConvShape& s, int64_t lanes) {
  if (s.groups != 1) return "more than one group";
  if (s.dilation[1] != 1 || s.dilation[2] != 1) return "a dilation";
  return reject_winograd(subpixel_conv(s, lanes));
}

ConvShape subpixel_conv(const Im2colConvShape& s, int64_t lanes) {
  ConvShape c;
  c.n = s.n;
  c.ic = s.ic;
  c.oc = s.stride[1] * s.stride[2] * round_up(s.oc, lanes);
  c.ih = s.in[1];
  c.iw = s.in[2];
  c.kh = ceil_div(s.kernel[1], s.stride[1]);
  c.kw = ceil_div(s.kernel[2], s.stride[2]);
  c.pad_top = c.kh - 1;
  c.pad_left = c.kw - 1;
  c.oh = c.ih + c.kh - 1;
  c.ow = c.iw + c.kw - 1;
  return c;
}

SubpixelWinogradPlan plan_subpixel_winograd(const Im2colConvShape& s, const WinogradSchedule& schedule, int64_t lanes) {
  constexpr int64_t kTaskFloats = 32768, kMaxTasks = 48;
  SubpixelWinogradPlan plan;
  plan.shape = s;
  plan.lanes = lanes;
  plan.vectors = ceil_div(s.oc, lanes);
  const ConvShape conv = subpixel_conv(s, lanes);
  plan.winograd = plan_winograd(conv, schedule, lanes);
  plan.sums_size = conv.n * conv.oc * conv.oh * conv.ow;
  const int64_t planes = std::max<int64_t>(1, s.n * plan.vectors);
  const int64_t floats = planes * lanes * s.out_size();
  const int64_t tasks = std::clamp<int64_t>(floats / kTaskFloats, 1, kMaxTasks);
  plan.line_chunk = std::max<int64_t>(1, ceil_div(s.out[1], ceil_div(tasks, planes)));
  plan.line_chunks = ceil_div(s.out[1], plan.line_chunk);
  plan.tasks = s.out[2] == 0 ? 0 : s.n * plan.vectors * plan.line_chunks;
  return plan;
}

void pack_subpixel_winograd_weight(const SubpixelWinogradPlan& plan, const WinogradKernels& kernels,
                                   const float* weight, float* packed) {
  const Im2colConvShape& s = plan.shape;
  const ConvShape c = subpixel_conv(s, plan.lanes);
  const int64_t padded = plan.vectors * plan.lanes;
  std::vector<float> turned(static_cast<size_t>(c.oc * c.ic * c.taps()));
  const auto filter = [&](int64_t h, int64_t w, int64_t oc, int64_t ic) {
    return turned.data() + (((h * s.stride[2] + w) * padded + oc) * c.ic + ic) * c.taps();
  };
  for (int64_t ic = 0; ic < s.ic; ++ic) {
    for (int64_t oc = 0; oc < s.oc; ++oc) {
      for (int64_t h = 0; h < s.kernel[1]; ++h) {
        for (int64_t w = 0; w < s.kernel[2]; ++w) {
          const int64_t row = c.kh - 1 - h / s.stride[1], column = c.kw - 1 - w / s.stride[2];
          filter(h % s.stride[1], w % s.stride[2], oc, ic)[row * c.kw + column] = *weight++;
        }
      }
    }
  }
  pack_winograd_weight(plan.winograd, kernels, turned.data(), packed);
}

void spread_residues(const SubpixelWinogradPlan& plan, const TransposedDepthwiseKernels& kernels, const float* sums,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end) {
  const Im2colConvShape& s = plan.shape;
  const ConvShape& c = plan.winograd.source;
  const int64_t lanes = plan.lanes, columns = phase_count(s, 2);
  OutputPhase widths[kMaxRowStride];
  for (int64_t w = 0; w < columns; ++w) widths[w] = OutputPhase::of(s, 2, w);
  // A depthwise convolution of one tap, which is one.
  float ones[kWidest];
  std::fill_n(ones, lanes, 1.0f);
  const float *row = nullptr, *weight = ones;
  TransposedLine line;
  line.rows = &row;
  line.weights = &weight;
  line.taps = 1;
  line.columns = c.ow;
  line.dst_step = s.stride[2] * lanes;
  line.lo = args.lo;
  line.hi = args.hi;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t vector = task % plan.vectors, chunk = task / plan.vectors % plan.line_chunks;
    const int64_t image = task / (plan.vectors * plan.line_chunks);
    line.valid = std::min(lanes, s.oc - vector * lanes);
    if (args.bias) line.bias = args.bias + vector * lanes;
    const int64_t last = std::min((chunk + 1) * plan.line_chunk, s.out[1]);
    for (int64_t oh = chunk * plan.line_chunk; oh < last; ++oh) {
      const int64_t at = oh + s.pad[1], rest = at % s.stride[1], residue = rest < 0 ? rest + s.stride[1] : rest;
      const int64_t u = (at - residue) / s.stride[1];
      // Rows and columns that no tap reaches have the bias alone.
      line.row_count = u >= 0 && u < c.oh ? 1 : 0;
      const int64_t first = oh * s.out[2] * lanes;
      float* dst = args.dst + image * args.dst_batch + vector * args.dst_channel + first;
      const float* residual = args.residual;
      if (residual) residual += image * args.residual_batch + vector * args.residual_channel + first;
      for (int64_t w = 0; w < columns; ++w) {
        const int64_t block = (residue * s.stride[2] + widths[w].residue) * plan.vectors + vector;
        row = sums + (((image * (c.oc / lanes) + block) * c.oh + u) * c.ow) * lanes;
        line.first_offset = (w + s.pad[2] - widths[w].residue) / s.stride[2];
        line.count = widths[w].count;
        line.dst = dst + w * lanes;
        line.residual = residual ? residual + w * lanes : nullptr;
        kernels.line(line);
      }
      if (args.activation) args.activation(dst, s.out[2] * lanes);
    }
  }
}

}  // namespace neo
