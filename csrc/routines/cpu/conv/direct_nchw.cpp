#include "routines/cpu/conv/direct_nchw.h"

#include <algorithm>

#include "routines/cpu/conv/output_panel.h"
#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

constexpr int64_t kMaxProducts = 512;      // ic * kh * kw
constexpr int64_t kWorkspaceGoal = 32768;  // floats; stays in the second-level cache

IndexRange panel_vectors(const FirstLayerPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

}  // namespace

const char* reject_first_layer(const ConvShape& s, const FirstLayerSchedule& schedule, int64_t lanes) {
  if (s.groups != 1) return "more than one group";
  if (schedule.oc_bn % lanes != 0) return "the output block must be a multiple of the vector width";
  if (schedule.oc_vectors < 1 || schedule.oc_vectors > kTileVectors) return "oc_vectors must be 1 ... 4";
  if (s.ic * s.taps() > kMaxProducts) return "more than 512 products per output";
  return nullptr;
}

FirstLayerPlan plan_first_layer(const ConvShape& s, const FirstLayerSchedule& schedule, const TileKernels& kernels) {
  FirstLayerPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.vectors = ceil_div(s.oc, schedule.oc_bn) * schedule.oc_bn / plan.lanes;
  plan.panels = ceil_div(plan.vectors, schedule.oc_vectors);
  const int64_t row_size = s.ic * RowBuffer::of(s, 1, s.ow).row;
  const int64_t wanted = ceil_div(worthwhile_tasks(s.flops()), std::max<int64_t>(1, s.n));
  plan.rows = std::max<int64_t>(1, schedule.lines > 0 ? std::min(schedule.lines, s.oh) : ceil_div(s.oh, wanted));
  while (plan.rows > 1 && input_rows(s, plan.rows) * row_size > kWorkspaceGoal) --plan.rows;
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.buffer = RowBuffer::of(s, plan.rows, s.ow);
  plan.workspace_size = plan.buffer.rows * row_size;
  plan.tasks = s.n * plan.chunks;
  return plan;
}

int64_t first_layer_weight_size(const FirstLayerPlan& plan) {
  return plan.vectors * plan.lanes * plan.shape.ic * plan.shape.taps();
}

void pack_first_layer_weight(const FirstLayerPlan& plan, const float* weight, float* packed) {
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

void run_first_layer(const FirstLayerPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, int member) {
  const ConvShape& s = plan.shape;
  float* buffer = args.workspace + member * plan.workspace_size;
  const int64_t channel = plan.buffer.rows * plan.buffer.row;
  TileTap taps[kMaxProducts];
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t image = task / plan.chunks, first_line = task % plan.chunks * plan.rows;
    const int64_t lines = std::min(plan.rows, s.oh - first_line);
    const int64_t top = first_line * s.stride_h - s.pad_top;
    for (int64_t c = 0; c < s.ic; ++c) {
      const float* plane = args.src + image * args.src_batch + c * args.src_channel;
      plan.buffer.fill(s, row_kernels, plane, first_line, lines, 0, buffer + c * channel);
    }
    BlockedOutput output;
    output.dst = args.dst + image * args.dst_batch;
    output.dst_block = args.dst_channel;
    if (args.residual) output.residual = args.residual + image * args.residual_batch;
    output.residual_block = args.residual_channel;
    output.oc_bn = plan.schedule.oc_bn;
    output.lo = args.lo;
    output.hi = args.hi;
    output.activation = args.activation;
    for (int64_t line = 0; line < lines; ++line) {
      int64_t count = 0;
      for (int64_t c = 0; c < s.ic; ++c) {
        for (int64_t i = 0; i < s.kh; ++i) {
          const int64_t b = line * s.stride_h + i * s.dilation_h;
          if (top + b < 0 || top + b >= s.ih) continue;
          for (int64_t j = 0; j < s.kw; ++j) {
            const int64_t column = j * s.dilation_w;
            taps[count].offset = c * channel + b * plan.buffer.row + plan.buffer.offset(s, column);
            taps[count].index = (c * s.kh + i) * s.kw + j;
            ++count;
          }
        }
      }
      for (int64_t p = 0; p < plan.panels; ++p) {
        const IndexRange vectors = panel_vectors(plan, p);
        const int64_t oc = vectors.begin * plan.lanes;
        const OutputPanel panel =
            make_output_panel(output, oc, vectors.size(), plan.lanes, std::min(vectors.size() * plan.lanes, s.oc - oc));
        Tile tile;
        tile.block_size = tile.last_size = 1;
        tile.taps = taps;
        tile.tap_count = count;
        tile.weight = args.weight + oc * s.ic * s.taps();
        tile.weight_step = vectors.size() * plan.lanes;
        if (args.bias) tile.bias = args.bias + oc;
        const int64_t limit = kernels.max_rows[vectors.size()];
        const int64_t most = plan.schedule.reg_n > 0 ? std::min(plan.schedule.reg_n, limit) : limit;
        const int64_t tiles = ceil_div(s.ow, most);
        for (int64_t i = 0; i < tiles; ++i) {
          const IndexRange part = even_part(s.ow, tiles, i);
          tile.src = buffer + part.begin;
          run_output_tile(kernels.columns[vectors.size()][part.size()], kernels, tile, panel,
                          (first_line + line) * s.ow + part.begin, part.size());
        }
        activate_output(panel, (first_line + line) * s.ow, s.ow);
      }
    }
  }
}

}  // namespace neo
