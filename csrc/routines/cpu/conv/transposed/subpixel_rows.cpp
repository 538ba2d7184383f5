#include "routines/cpu/conv/transposed/subpixel_rows.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/tasks.h"
#include "routines/patterns/transposed_taps.h"

namespace neo {
namespace {

constexpr int64_t kMaxTaps = 256;      // that reach an output
constexpr int64_t kInputGoal = 65536;  // floats; stays in the second-level cache

// Input positions that the outputs at one position of the stride read, beside that position.
struct Reach {
  int64_t first = 0, last = 0;

  static Reach of(const Im2colConvShape& s, int axis) {
    Reach reach = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (int64_t p = 0; p < phase_count(s, axis); ++p) {
      const OutputPhase phase = OutputPhase::of(s, axis, p);
      if (phase.taps.count == 0) continue;
      reach.first = std::min(reach.first, phase.offset(phase.taps.count - 1));
      reach.last = std::max(reach.last, phase.first_offset);
    }
    return reach.first > reach.last ? Reach{} : reach;
  }
};

int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -ceil_div(-a, b);
}

// Positions along a row.
int64_t row_positions(const SubpixelRowsPlan& plan) {
  const Im2colConvShape& s = plan.shape;
  if (plan.schedule.joined == 0) return ceil_div(s.out[2], s.stride[2]);
  return s.out[2] == 0 ? 0 : floor_div(s.out[2] - 1 + s.pad[2], s.stride[2]) - plan.first + 1;
}

IndexRange tile_channels(const SubpixelRowsPlan& plan, int64_t tile) {
  return even_part(plan.shape.group_oc(), plan.channel_tiles, tile);
}

class SubpixelRowsTask {
 public:
  SubpixelRowsTask(const SubpixelRowsPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                   const ConvOperands& args, float* workspace)
      : plan_(plan),
        kernels_(kernels),
        row_kernels_(row_kernels),
        args_(args),
        s_(plan.shape),
        workspace_(workspace),
        residues_(phase_count(plan.shape, 2)) {
    for (int64_t w = 0; w < residues_; ++w) widths_[w] = OutputPhase::of(s_, 2, w);
  }

  void run(int64_t task) {
    first_column_ = task % plan_.column_chunks * plan_.columns;
    first_band_ = task / plan_.column_chunks % plan_.band_chunks * plan_.bands;
    group_ = task / (plan_.column_chunks * plan_.band_chunks) % s_.groups;
    image_ = task / (plan_.column_chunks * plan_.band_chunks * s_.groups);
    columns_ = std::min(plan_.columns, row_positions(plan_) - first_column_);
    const int64_t lines = ceil_div(s_.out[1], s_.stride[1]), bands = std::min(plan_.bands, lines - first_band_);
    copy_input(bands);
    for (int64_t h = 0; h < phase_count(s_, 1); ++h) {
      const OutputPhase height = OutputPhase::of(s_, 1, h);
      for (int64_t t = 0; t < plan_.channel_tiles; ++t) {
        for (int64_t w = 0; w < residues_; ++w) before_[w] = taps_before(s_, {0, height.residue, widths_[w].residue});
        for (int64_t band = 0; band < bands && first_band_ + band < height.count; ++band) {
          if (plan_.schedule.joined != 0) {
            run_joined_line(height, t, band);
          } else {
            run_line(height, t, band);
          }
        }
      }
    }
  }

 private:
  // Rows outside the image are left as they are.
  void copy_input(int64_t bands) {
    const float* src = args_.src + image_ * args_.src_batch + group_ * s_.group_ic() * args_.src_channel;
    const int64_t left = first_column_ + plan_.left;  // input column of a copied row's first float
    const int64_t begin = std::clamp<int64_t>(-left, 0, plan_.row), end = std::clamp(s_.in[2] - left, begin, plan_.row);
    for (int64_t c = 0; c < s_.group_ic(); ++c) {
      for (int64_t i = 0; i < bands + plan_.extra_rows; ++i) {
        const int64_t ih = first_band_ + plan_.top + i;
        if (ih < 0 || ih >= s_.in[1]) continue;
        float* to = workspace_ + c * plan_.channel() + i * plan_.row;
        std::fill(to, to + begin, 0.0f);
        if (begin < end)
          std::copy_n(src + c * args_.src_channel + ih * s_.in[2] + left + begin, end - begin, to + begin);
        std::fill(to + end, to + plan_.row, 0.0f);
      }
    }
  }

  // One output row of a register block's channels: the sums of every residue, interleaved.
  void run_line(const OutputPhase& height, int64_t channel_tile, int64_t band) {
    const IndexRange channels = tile_channels(plan_, channel_tile);
    const int64_t rows = channels.size(), oc = group_ * s_.group_oc() + channels.begin;
    float* sums = workspace_ + plan_.sums;
    const bool is_empty = height.taps.count == 0;
    for (int64_t w = 0; w < residues_ && !is_empty; ++w) {
      sum_residue(height, widths_[w], before_[w], channels, band, sums + w * rows * plan_.pitch);
    }
    const int64_t line = height.begin + (first_band_ + band) * s_.stride[1], column = first_column_ * s_.stride[2];
    const int64_t count = std::min(s_.out[2] - column, columns_ * s_.stride[2]), at = line * s_.out[2] + column;
    for (int64_t r = 0; r < rows; ++r) {
      float* dst = args_.dst + image_ * args_.dst_batch + (oc + r) * args_.dst_channel + at;
      const float* residual = args_.residual;
      if (residual) residual += image_ * args_.residual_batch + (oc + r) * args_.residual_channel + at;
      if (is_empty) {
        std::fill_n(sums, count, args_.bias ? args_.bias[oc + r] : 0.0f);
        row_kernels_.interleave(sums, 0, 1, count, residual, args_.lo, args_.hi, dst);
      } else {
        row_kernels_.interleave(sums + r * plan_.pitch, rows * plan_.pitch, residues_, count, residual, args_.lo,
                                args_.hi, dst);
      }
      if (args_.activation) args_.activation(dst, count);
    }
  }

  // The same with the sums of all residues at once: interleaved they are the row, some pixels before it and behind it.
  void run_joined_line(const OutputPhase& height, int64_t channel_tile, int64_t band) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const IndexRange channels = tile_channels(plan_, channel_tile);
    const int64_t stride = s_.stride[2], ic = s_.group_ic(), count = channels.size(), rows = stride * count;
    const int64_t oc = group_ * s_.group_oc() + channels.begin, taps = s_.kernel[1] * stride * plan_.row_taps;
    // Residues of the width are in the rows: taps of the height alone lie before these.
    const int64_t before = taps_before(s_, {0, height.residue, 0}) / s_.kernel[2];
    int64_t tap_count = 0;
    for (int64_t h = 0; h < height.taps.count; ++h) {
      const int64_t at = band + height.offset(h), ih = first_band_ + at;
      if (ih < 0 || ih >= s_.in[1]) continue;
      for (int64_t j = 0; j < plan_.row_taps; ++j) {
        const int64_t weight = (h * plan_.row_taps + j) * ic * rows;
        taps_[tap_count++] = {weight, nullptr, 0, (at - plan_.top) * plan_.row + plan_.row_taps - 1 - j};
      }
    }
    float* sums = workspace_ + plan_.sums;
    float bias[kTileRows];
    for (int64_t r = 0; args_.bias && r < rows; ++r) bias[r] = args_.bias[oc + r % count];
    if (tap_count > 0) {
      sum_panels(args_.weight + oc * ic * taps + before * plan_.row_taps * ic * rows, tap_count, rows,
                 args_.bias ? bias : nullptr, sums);
    }
    float* row = sums + rows * plan_.pitch;
    const int64_t cut = s_.pad[2] - plan_.first * stride;  // pixels before the row
    const int64_t begin = std::max<int64_t>(first_column_ * stride - cut, 0);
    const int64_t end = std::min((first_column_ + columns_) * stride - cut, s_.out[2]);
    const int64_t line = height.begin + (first_band_ + band) * s_.stride[1], at = line * s_.out[2] + begin;
    for (int64_t r = 0; r < count; ++r) {
      if (tap_count > 0) {
        row_kernels_.interleave(sums + r * plan_.pitch, count * plan_.pitch, stride, columns_ * stride, nullptr,
                                -kInfinity, kInfinity, row);
      } else {
        std::fill_n(row, columns_ * stride, args_.bias ? bias[r] : 0.0f);
      }
      float* dst = args_.dst + image_ * args_.dst_batch + (oc + r) * args_.dst_channel + at;
      const float* residual = args_.residual;
      if (residual) residual += image_ * args_.residual_batch + (oc + r) * args_.residual_channel + at;
      row_kernels_.interleave(row + begin + cut - first_column_ * stride, 0, 1, end - begin, residual, args_.lo,
                              args_.hi, dst);
      if (args_.activation) args_.activation(dst, end - begin);
    }
  }

  void sum_residue(const OutputPhase& height, const OutputPhase& width, int64_t before, IndexRange channels,
                   int64_t band, float* sums) {
    const int64_t rows = channels.size(), ic = s_.group_ic(), oc = group_ * s_.group_oc() + channels.begin;
    int64_t count = 0;
    for (int64_t h = 0; h < height.taps.count; ++h) {
      const int64_t at = band + height.offset(h), ih = first_band_ + at;
      if (ih < 0 || ih >= s_.in[1]) continue;
      for (int64_t w = 0; w < width.taps.count; ++w) {
        const int64_t weight = (h * width.taps.count + w) * ic * rows;
        taps_[count++] = {weight, nullptr, 0, (at - plan_.top) * plan_.row + width.offset(w) - plan_.left};
      }
    }
    sum_panels(args_.weight + oc * ic * s_.taps() + before * ic * rows, count, rows,
               args_.bias ? args_.bias + oc : nullptr, sums);
  }

  // The sums over the taps in taps_, a row of them for each row of weights.
  void sum_panels(const float* weight, int64_t tap_count, int64_t rows, const float* bias, float* sums) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Tile tile;
    tile.taps = taps_;
    tile.tap_count = tap_count;
    tile.src = weight;
    tile.step = rows;
    tile.block_size = tile.last_size = s_.group_ic();
    tile.weight_step = plan_.channel();
    tile.row_bias = bias;
    tile.dst_row = plan_.pitch;
    for (int64_t v = 0; v < plan_.schedule.vectors; ++v) tile.dst_vector[v] = v * plan_.lanes;
    tile.lo = -kInfinity;
    tile.hi = kInfinity;
    const int64_t vectors = ceil_div(columns_, plan_.lanes), panels = ceil_div(vectors, plan_.schedule.vectors);
    for (int64_t p = 0; p < panels; ++p) {
      const IndexRange part = even_part(vectors, panels, p);
      tile.weight = workspace_ + part.begin * plan_.lanes;
      tile.dst = sums + part.begin * plan_.lanes;
      kernels_.columns[part.size()][rows](tile);
    }
  }

  const SubpixelRowsPlan& plan_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
  const ConvOperands& args_;
  const Im2colConvShape& s_;
  float* workspace_;
  int64_t residues_;  // along a row
  int64_t image_ = 0, group_ = 0;
  int64_t first_band_ = 0, first_column_ = 0, columns_ = 0;
  OutputPhase widths_[kMaxRowStride];
  int64_t before_[kMaxRowStride];  // taps before those of each residue, in the packed weights
  TileTap taps_[kMaxTaps];
};

}  // namespace

const char* reject_subpixel_rows(const Im2colConvShape& s) {
  if (s.stride[2] > kMaxRowStride) return "a stride of more than 64 pixels";
  if (ResidueTaps::of(s, 1, 0).count * ResidueTaps::of(s, 2, 0).count > kMaxTaps) {
    return "more than 256 taps reach an output";
  }
  return nullptr;
}

SubpixelRowsPlan plan_subpixel_rows(const Im2colConvShape& s, const SubpixelRowsSchedule& schedule,
                                    const TileKernels& kernels) {
  SubpixelRowsPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  const int64_t joined = schedule.joined != 0 ? s.stride[2] : 1;
  const int64_t most_rows = std::max<int64_t>(1, kernels.max_rows[schedule.vectors] / joined);
  plan.channel_tiles = ceil_div(s.group_oc(), schedule.rows > 0 ? std::min(schedule.rows, most_rows) : most_rows);
  const Reach height = Reach::of(s, 1);
  Reach width = Reach::of(s, 2);
  if (schedule.joined != 0) {
    plan.row_taps = ceil_div(s.kernel[2], s.stride[2]);
    plan.first = floor_div(s.pad[2], s.stride[2]);
    width = {plan.first - plan.row_taps + 1, plan.first};
  }
  plan.top = height.first;
  plan.left = width.first;
  plan.extra_rows = height.last - height.first;

  const int64_t positions = row_positions(plan), lines = ceil_div(s.out[1], s.stride[1]);
  const int64_t panel = schedule.vectors * plan.lanes;
  const int64_t flops = 2 * s.n * s.oc * s.group_ic() * output_products(s);
  const int64_t wanted = ceil_div(worthwhile_tasks(flops), std::max<int64_t>(1, s.n * s.groups));
  const auto input_of = [&](int64_t bands, int64_t columns) {
    plan.row = round_up(columns, plan.lanes) + width.last - width.first;
    return s.group_ic() * (bands + plan.extra_rows) * plan.row;
  };
  plan.bands = std::max<int64_t>(1, schedule.bands > 0 ? std::min(schedule.bands, lines) : ceil_div(lines, wanted));
  plan.columns = positions;
  if (lines < wanted) {
    const int64_t parts = ceil_div(wanted, std::max<int64_t>(1, lines));
    plan.columns = std::min(positions, round_up(ceil_div(positions, parts), 2 * panel));
  }
  plan.bands = max_that_fits(plan.bands, [&](int64_t bands) { return input_of(bands, plan.columns) <= kInputGoal; });
  while (plan.columns > panel && input_of(plan.bands, plan.columns) > kInputGoal) {
    plan.columns = round_up(plan.columns / 2, panel);
  }
  plan.sums = round_up(input_of(plan.bands, plan.columns), plan.lanes);
  plan.pitch = round_up(plan.columns, plan.lanes);
  const int64_t residues = schedule.joined != 0 ? joined : phase_count(s, 2);
  plan.workspace_size = plan.sums + residues * ceil_div(s.group_oc(), plan.channel_tiles) * plan.pitch;
  if (schedule.joined != 0) plan.workspace_size += joined * plan.pitch;
  plan.band_chunks = ceil_div(lines, plan.bands);
  plan.column_chunks = plan.columns > 0 ? ceil_div(positions, plan.columns) : 0;
  plan.tasks = s.n * s.groups * plan.band_chunks * plan.column_chunks;
  return plan;
}

const char* reject_joined_rows(const Im2colConvShape& s, int64_t vectors, const TileKernels& kernels) {
  if (s.stride[2] == 1) return "a stride of one along a row";
  if (s.dilation[2] != 1) return "a dilation along a row";
  if (s.stride[2] > kernels.max_rows[vectors]) return "more residues along a row than rows in a register block";
  return nullptr;
}

int64_t subpixel_rows_weight_size(const SubpixelRowsPlan& plan) {
  const Im2colConvShape& s = plan.shape;
  const int64_t filters = s.oc * s.group_ic();
  return plan.schedule.joined != 0 ? filters * s.kernel[1] * s.stride[2] * plan.row_taps : filters * s.taps();
}

void pack_subpixel_rows_weight(const SubpixelRowsPlan& plan, const float* weight, float* packed) {
  const Im2colConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  const auto pack_joined = [&](int64_t g, IndexRange channels, int64_t h, int64_t j) {
    for (int64_t ic = g * group_ic; ic < (g + 1) * group_ic; ++ic) {
      for (int64_t w = j * s.stride[2]; w < (j + 1) * s.stride[2]; ++w) {
        for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
          const bool is_there = w < s.kernel[2];
          *packed++ = is_there ? weight[(ic * group_oc + oc) * s.taps() + h * s.kernel[2] + w] : 0.0f;
        }
      }
    }
  };
  for (int64_t g = 0; g < s.groups && plan.schedule.joined != 0; ++g) {
    for (int64_t t = 0; t < plan.channel_tiles; ++t) {
      for (int64_t residue = 0; residue < s.stride[1]; ++residue) {
        const ResidueTaps height = ResidueTaps::of(s, 1, residue);
        for (int64_t i = 0; i < height.count; ++i) {
          for (int64_t j = 0; j < plan.row_taps; ++j) {
            pack_joined(g, tile_channels(plan, t), height.first + i * height.step, j);
          }
        }
      }
    }
  }
  if (plan.schedule.joined != 0) return;
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t t = 0; t < plan.channel_tiles; ++t) {
      const IndexRange channels = tile_channels(plan, t);
      for_each_residue(s, [&](const ResidueTaps&, const ResidueTaps& height, const ResidueTaps& width) {
        for (int64_t i = 0; i < height.count * width.count; ++i) {
          const int64_t h = height.first + i / width.count * height.step;
          const int64_t w = width.first + i % width.count * width.step;
          for (int64_t ic = g * group_ic; ic < (g + 1) * group_ic; ++ic) {
            for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
              *packed++ = weight[(ic * group_oc + oc) * s.taps() + h * s.kernel[2] + w];
            }
          }
        }
      });
    }
  }
}

void run_subpixel_rows(const SubpixelRowsPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                       const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace) {
  SubpixelRowsTask task(plan, kernels, row_kernels, args, workspace);
  for (int64_t i = task_begin; i < task_end; ++i) task.run(i);
}

}  // namespace neo
