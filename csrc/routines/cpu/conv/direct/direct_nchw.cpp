#include "routines/cpu/conv/direct/direct_nchw.h"

#include <algorithm>

#include "routines/cpu/conv/output_panel.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kInputRowsGoal = 32768;  // floats; stays in the second-level cache

IndexRange panel_vectors(const DirectNchwPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

void set_sides(DirectNchwPlan& plan) {
  const ConvShape& s = plan.shape;
  const int64_t last = s.iw - 1 + s.pad_left - (s.kw - 1) * s.dilation_w;  // where a window inside may begin
  const int64_t begin = std::min(ceil_div(s.pad_left, s.stride_w), s.ow);
  const int64_t end = last < 0 ? begin : std::clamp(last / s.stride_w + 1, begin, s.ow);
  plan.left_end = begin > 0 ? std::min(begin + kTileRows, s.ow) : 0;
  plan.right_begin = end < s.ow ? std::max(end - kTileRows, plan.left_end) : s.ow;
  if ((plan.right_begin - plan.left_end) * 2 < s.ow) {
    plan.left_end = plan.right_begin = s.ow;
    return;
  }
  plan.inside_begin = begin;
  plan.inside_end = end;
}

// The input rows of a task into its buffer, as far as register blocks that read padding need them.
void fill_sides(const DirectNchwPlan& plan, const RowKernels& kernels, const float* plane, int64_t line, int64_t lines,
                float* dst) {
  const ConvShape& s = plan.shape;
  const auto fill = [&](int64_t begin, int64_t end) {
    if (begin >= end) return;
    RowBuffer part = plan.buffer;
    part.width = (end - begin - 1) * s.stride_w + (s.kw - 1) * s.dilation_w + 1;
    part.fill(plan.padded, kernels, plane, line, lines, begin * s.stride_w, dst + begin * s.stride_w);
  };
  fill(0, plan.left_end);
  fill(plan.right_begin, s.ow);
}

}  // namespace

const char* reject_direct_nchw(const ConvShape& s, const DirectNchwSchedule& schedule, int64_t lanes) {
  if (s.groups != 1) return "more than one group";
  if (schedule.oc_bn % lanes != 0) return "the output block must be a multiple of the vector width";
  if (schedule.oc_vectors < 1 || schedule.oc_vectors > kTileVectors) return "oc_vectors must be 1 ... 4";
  if (s.ic * s.taps() > kStemProducts) return "more than 512 products per output";
  return nullptr;
}

DirectNchwPlan plan_direct_nchw(const ConvShape& s, const DirectNchwSchedule& schedule, const TileKernels& kernels) {
  DirectNchwPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.vectors = ceil_div(s.oc, schedule.oc_bn) * schedule.oc_bn / plan.lanes;
  plan.panels = ceil_div(plan.vectors, schedule.oc_vectors);
  plan.padded = s;
  plan.padded.stride_w = 1;
  plan.padded.ow = (s.ow - 1) * s.stride_w + 1;
  set_sides(plan);
  const int64_t row_size = s.ic * RowBuffer::of(plan.padded, 1, plan.padded.ow).row;
  const int64_t wanted = ceil_div(worthwhile_tasks(s.flops()), std::max<int64_t>(1, s.n));
  plan.rows = std::max<int64_t>(1, schedule.lines > 0 ? std::min(schedule.lines, s.oh) : ceil_div(s.oh, wanted));
  plan.rows = max_that_fits(plan.rows, [&](int64_t rows) { return input_rows(s, rows) * row_size <= kInputRowsGoal; });
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.buffer = RowBuffer::of(plan.padded, plan.rows, plan.padded.ow);
  plan.workspace_size = plan.buffer.rows * row_size;
  plan.tasks = s.n * plan.chunks;
  return plan;
}

int64_t direct_nchw_weight_size(const DirectNchwPlan& plan) {
  return plan.vectors * plan.lanes * plan.shape.ic * plan.shape.taps();
}

void pack_direct_nchw_weight(const DirectNchwPlan& plan, const float* weight, float* packed) {
  const int64_t products = plan.shape.ic * plan.shape.taps();
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    for (int64_t k = 0; k < products; ++k) {
      for (int64_t oc = vectors.begin * plan.lanes; oc < vectors.end * plan.lanes; ++oc) {
        *packed++ = oc < plan.shape.oc ? weight[oc * products + k] : 0.0f;
      }
    }
  }
}

void DirectNchwLines::read(const float* src, IndexRange lines) {
  const ConvShape& s = plan_.shape;
  src_ = src;
  fetched_line_ = -1;
  first_line_ = lines.begin;
  top_ = lines.begin * s.stride_h - s.pad_top;
  for (int64_t c = 0; c < s.ic; ++c) {
    fill_sides(plan_, kernels_, src + c * channel_, lines.begin, lines.size(),
               workspace_ + c * plan_.buffer.rows * plan_.buffer.row);
  }
}

void DirectNchwLines::set_taps(int64_t top, int64_t weight_step) {
  const ConvShape& s = plan_.shape;
  const auto row_at = [&](int64_t at) { return std::clamp<int64_t>(ceil_div(at, s.dilation_h), 0, s.kh); };
  const IndexRange rows = {top < 0 ? row_at(-top) : 0, top < s.ih ? row_at(s.ih - top) : 0};
  if (rows.begin == rows_.begin && rows.end == rows_.end && weight_step == weight_step_) return;
  rows_ = rows;
  weight_step_ = weight_step;
  tap_count_ = 0;
  const int64_t channel = plan_.buffer.rows * plan_.buffer.row;
  for (int64_t c = 0; c < s.ic; ++c) {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t row = i * s.dilation_h, column = j * s.dilation_w;
        const int64_t weight = ((c * s.kh + i) * s.kw + j) * weight_step;
        padded_[tap_count_] = {c * channel + row * plan_.buffer.row + column, nullptr, 0, weight};
        inside_[tap_count_] = {c * channel_ + row * s.iw + column - s.pad_left, nullptr, 0, weight};
        ++tap_count_;
      }
    }
  }
}

void DirectNchwLines::fetch(int64_t top, IndexRange columns) const {
  constexpr int64_t kLine = 16;
  const ConvShape& s = plan_.shape;
  const int64_t first = top + (s.kh - 1) * s.dilation_h + 1;
  const IndexRange rows = {std::clamp<int64_t>(first, 0, s.ih), std::clamp<int64_t>(first + s.stride_h, 0, s.ih)};
  for (int64_t c = 0; c < s.ic; ++c) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const float* line = src_ + c * channel_ + row * s.iw;
      const int64_t end = std::min(columns.end * s.stride_w, s.iw);
      for (int64_t i = columns.begin * s.stride_w; i < end; i += kLine) __builtin_prefetch(line + i);
    }
  }
}

void run_direct_nchw(const DirectNchwPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace) {
  const ConvShape& s = plan.shape;
  DirectNchwLines lines(plan, row_kernels, args.src_channel, workspace);
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t image = task / plan.chunks, first = task % plan.chunks * plan.rows;
    const IndexRange part = {first, std::min(first + plan.rows, s.oh)};
    lines.read(args.src + image * args.src_batch, part);
    BlockedOutput output;
    output.dst = args.dst + image * args.dst_batch;
    output.dst_block = args.dst_channel;
    if (args.residual) output.residual = args.residual + image * args.residual_batch;
    output.residual_block = args.residual_channel;
    output.oc_bn = plan.schedule.oc_bn;
    output.lo = args.lo;
    output.hi = args.hi;
    output.activation = args.activation;
    OutputPanel panel;
    int64_t made = -1;
    for (int64_t line = part.begin; line < part.end; ++line) {
      for (int64_t p = 0; p < plan.panels; ++p) {
        const IndexRange vectors = panel_vectors(plan, p);
        const int64_t oc = vectors.begin * plan.lanes;
        if (p != made) {
          panel = make_output_panel(output, oc, vectors.size(), plan.lanes,
                                    std::min(vectors.size() * plan.lanes, s.oc - oc));
          made = p;
        }
        Tile tile;
        tile.weight = args.weight + oc * s.ic * s.taps();
        tile.weight_step = vectors.size() * plan.lanes;
        if (args.bias) tile.bias = args.bias + oc;
        const int64_t limit = kernels.max_rows[vectors.size()];
        const int64_t most = plan.schedule.reg_n > 0 ? std::min(plan.schedule.reg_n, limit) : limit;
        lines.each_tile(line, most, tile, [&](IndexRange columns) {
          run_output_tile(kernels.rows[vectors.size()][columns.size()], kernels, tile, panel,
                          line * s.ow + columns.begin, columns.size());
        });
        activate_output(panel, line * s.ow, s.ow);
      }
    }
  }
}

}  // namespace neo
