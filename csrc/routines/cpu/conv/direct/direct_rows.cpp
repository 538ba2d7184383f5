#include "routines/cpu/conv/direct/direct_rows.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "routines/cpu/microkernel/microkernel_edge.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kMaxWindowTaps = 1024;
constexpr int64_t kLinesGoal = 98304;  // floats; stays in the second-level cache

// Columns of a window's row that lie in the same phase of the stride: every `period`-th.
int64_t phase_period(const ConvShape& s) {
  return s.stride_w / std::gcd(s.stride_w, s.dilation_w);
}

IndexRange tile_channels(const DirectRowsPlan& plan, int64_t tile) {
  return even_part(plan.shape.group_oc(), plan.channel_tiles, tile);
}

// Whether the columns of a window's row make equal runs, and longer ones than the input channels.
bool runs_along_row(const ConvShape& s) {
  const int64_t period = phase_period(s);
  return s.kw % period == 0 && s.kw / period >= s.group_ic();
}

int64_t tap_count(const ConvShape& s) {
  return runs_along_row(s) ? s.group_ic() * s.kh * phase_period(s) : s.taps();
}

// f(tap, input channel, window row, first window column) for the inner sums of an output.
template <class F>
void for_each_tap(const DirectRowsPlan& plan, F&& f) {
  const ConvShape& s = plan.shape;
  const int64_t channels = plan.along_row ? s.group_ic() : 1;
  const int64_t columns = plan.along_row ? phase_period(s) : s.kw;
  int64_t tap = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t j = 0; j < columns; ++j) f(tap++, c, i, j);
    }
  }
}

}  // namespace

const char* reject_direct_rows(const ConvShape& s) {
  return tap_count(s) > kMaxWindowTaps ? "the window has too many taps" : nullptr;
}

DirectRowsPlan plan_direct_rows(const ConvShape& s, const DirectRowsSchedule& schedule, const TileKernels& kernels) {
  DirectRowsPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.along_row = runs_along_row(s);
  plan.inner = plan.along_row ? s.kw / phase_period(s) : s.group_ic();
  plan.taps = tap_count(s);
  const int64_t most_rows = kernels.max_rows[schedule.vectors];
  plan.channel_tiles = ceil_div(s.group_oc(), schedule.rows > 0 ? std::min(schedule.rows, most_rows) : most_rows);

  const int64_t panel = schedule.vectors * plan.lanes;
  const int64_t wanted = ceil_div(worthwhile_tasks(s.flops()), std::max<int64_t>(1, s.n * s.groups));
  const auto workspace_of = [&](int64_t lines) {
    plan.buffer = RowBuffer::of(s, lines, round_up(plan.columns, plan.lanes));
    return s.group_ic() * plan.buffer.rows * plan.buffer.row;
  };
  const auto workspace = [&] { return workspace_of(plan.lines); };
  plan.lines = std::max<int64_t>(1, schedule.lines > 0 ? std::min(schedule.lines, s.oh) : ceil_div(s.oh, wanted));
  const int64_t fitting = s.oh < wanted ? ceil_div(wanted, std::max<int64_t>(1, s.oh)) : 1;
  const int64_t parts = schedule.parts > 0 ? schedule.parts : fitting;
  plan.columns = parts == 1 ? s.ow : round_up(ceil_div(s.ow, parts), schedule.parts > 0 ? panel : 2 * panel);
  plan.lines = max_that_fits(plan.lines, [&](int64_t lines) { return workspace_of(lines) <= kLinesGoal; });
  while (plan.columns > panel && workspace() > kLinesGoal) plan.columns = round_up(plan.columns / 2, panel);
  plan.workspace_size = workspace();
  plan.inner_step = plan.along_row ? phase_period(s) * s.dilation_w / s.stride_w : plan.buffer.rows * plan.buffer.row;
  plan.line_chunks = ceil_div(s.oh, plan.lines);
  plan.column_chunks = plan.columns > 0 ? ceil_div(s.ow, plan.columns) : 0;
  plan.tasks = s.n * s.groups * plan.line_chunks * plan.column_chunks;
  return plan;
}

void pack_direct_rows_weight(const DirectRowsPlan& plan, const float* weight, float* packed) {
  const ConvShape& s = plan.shape;
  const int64_t period = phase_period(s);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t t = 0; t < plan.channel_tiles; ++t) {
      const IndexRange channels = tile_channels(plan, t);
      for_each_tap(plan, [&](int64_t, int64_t channel, int64_t i, int64_t j) {
        for (int64_t k = 0; k < plan.inner; ++k) {
          const int64_t c = plan.along_row ? channel : k, column = plan.along_row ? j + k * period : j;
          for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
            *packed++ = weight[(((g * s.group_oc() + oc) * s.group_ic() + c) * s.kh + i) * s.kw + column];
          }
        }
      });
    }
  }
}

void run_direct_rows(const DirectRowsPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace) {
  const ConvShape& s = plan.shape;
  const int64_t channel_size = plan.buffer.rows * plan.buffer.row, sums = plan.taps * plan.inner;
  TileTap taps[kMaxWindowTaps];
  int64_t tap_index[kMaxWindowTaps];
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t first_column = task % plan.column_chunks * plan.columns;
    const int64_t first_line = task / plan.column_chunks % plan.line_chunks * plan.lines;
    const int64_t group = task / (plan.column_chunks * plan.line_chunks) % s.groups;
    const int64_t image = task / (plan.column_chunks * plan.line_chunks * s.groups);
    const int64_t lines = std::min(plan.lines, s.oh - first_line);
    const int64_t columns = std::min(plan.columns, s.ow - first_column);
    const int64_t top = first_line * s.stride_h - s.pad_top;
    const float* src = args.src + image * args.src_batch + group * s.group_ic() * args.src_channel;
    for (int64_t c = 0; c < s.group_ic(); ++c) {
      plan.buffer.fill(s, row_kernels, src + c * args.src_channel, first_line, lines, first_column,
                       workspace + c * channel_size);
    }
    const int64_t first_oc = group * s.group_oc();
    const int64_t vectors = ceil_div(columns, plan.lanes), panels = ceil_div(vectors, plan.schedule.vectors);
    for (int64_t line = 0; line < lines; ++line) {
      int64_t count = 0;
      for_each_tap(plan, [&](int64_t tap, int64_t channel, int64_t i, int64_t j) {
        const int64_t b = line * s.stride_h + i * s.dilation_h;
        if (top + b < 0 || top + b >= s.ih) return;
        const int64_t column = plan.buffer.offset(s, j * s.dilation_w);
        taps[count] = {0, nullptr, 0, channel * channel_size + b * plan.buffer.row + column};
        tap_index[count++] = tap;
      });
      const int64_t pixel = (first_line + line) * s.ow + first_column;
      for (int64_t t = 0; t < plan.channel_tiles; ++t) {
        const IndexRange channels = tile_channels(plan, t);
        const int64_t rows = channels.size(), oc = first_oc + channels.begin;
        for (int64_t i = 0; i < count; ++i) taps[i].offset = tap_index[i] * plan.inner * rows;
        Tile tile;
        tile.taps = taps;
        tile.tap_count = count;
        tile.src = args.weight + oc * sums;
        tile.step = rows;
        tile.block_size = tile.last_size = plan.inner;
        tile.weight_step = plan.inner_step;
        if (args.bias) tile.row_bias = args.bias + oc;
        tile.init_row = args.residual_channel;
        tile.dst_row = args.dst_channel;
        for (int64_t v = 0; v < plan.schedule.vectors; ++v) tile.init_vector[v] = tile.dst_vector[v] = v * plan.lanes;
        tile.lo = args.lo;
        tile.hi = args.hi;
        for (int64_t p = 0; p < panels; ++p) {
          const IndexRange part = even_part(vectors, panels, p);
          const int64_t at = part.begin * plan.lanes;
          tile.weight = workspace + at;
          tile.dst = args.dst + image * args.dst_batch + oc * args.dst_channel + pixel + at;
          if (args.residual) {
            tile.init = args.residual + image * args.residual_batch + oc * args.residual_channel + pixel + at;
          }
          run_microkernel_edge(kernels.columns[part.size()][rows], kernels, tile, rows, part.size(),
                               std::min(part.size() * plan.lanes, columns - at));
        }
        if (args.activation) {
          args.activation(args.dst + image * args.dst_batch + oc * args.dst_channel + pixel, rows, args.dst_channel,
                          columns);
        }
      }
    }
  }
}

}  // namespace neo
