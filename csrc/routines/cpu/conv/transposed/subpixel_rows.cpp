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
constexpr int64_t kSumsGoal = 32768;   // floats of the sums of bands that are one row

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
    const auto next = [&](int64_t count) {
      const int64_t index = task % count;
      task /= count;
      return index;
    };
    first_column_ = next(plan_.column_chunks) * plan_.columns;
    first_band_ = next(plan_.band_chunks) * plan_.bands;
    position_ = next(plan_.depths);
    group_ = next(s_.groups);
    image_ = task;
    columns_ = std::min(plan_.columns, row_positions(plan_) - first_column_);
    bands_ = std::min(plan_.bands, ceil_div(s_.out[1], s_.stride[1]) - first_band_);
    copy_input();
    for (int64_t t = 0; t < plan_.channel_tiles; ++t) {
      channels_ = tile_channels(plan_, t);
      first_oc_ = group_ * s_.group_oc() + channels_.begin;
      if (plan_.schedule.joined == 0) fill_empty_residues();
      for (int64_t d = 0; d < phase_count(s_, 0); ++d) run_depth(OutputPhase::of(s_, 0, d));
    }
  }

 private:
  // The input rows of all channels. Those outside the image are zeros where the sums run over them, too.
  void copy_input() {
    const float* src = args_.src + image_ * args_.src_batch + group_ * s_.group_ic() * args_.src_channel;
    const int64_t left = first_column_ + plan_.left;  // input column of a copied row's first float
    const int64_t begin = std::clamp<int64_t>(-left, 0, plan_.row), end = std::clamp(s_.in[2] - left, begin, plan_.row);
    const int64_t rows = bands_ + plan_.extra_rows, first = first_band_ + plan_.top;
    const bool is_whole = left == 0 && plan_.row == s_.in[2] && first >= 0 && first + rows <= s_.in[1];
    for (int64_t c = 0; c < s_.group_ic(); ++c) {
      for (int64_t p = 0; p <= plan_.extra_planes; ++p) {
        const int64_t id = position_ + plan_.front + p;
        if (id < 0 || id >= s_.in[0]) continue;
        float* to = workspace_ + c * plan_.channel() + p * plan_.plane();
        const float* plane = src + c * args_.src_channel + id * s_.in[1] * s_.in[2];
        if (is_whole) {
          std::copy_n(plane + first * s_.in[2], rows * plan_.row, to);
          continue;
        }
        for (int64_t ih = first; ih < first + rows; ++ih, to += plan_.row) {
          if (ih < 0 || ih >= s_.in[1]) {
            if (plan_.is_flat) row_kernels_.fill(0, plan_.row, to);
            continue;
          }
          std::fill(to, to + begin, 0.0f);
          if (begin < end) {
            const float* from = plane + ih * s_.in[2] + left;
            std::copy(from + begin, from + end, to + begin);
          }
          std::fill(to + end, to + plan_.row, 0.0f);
        }
      }
    }
  }

  // The sums of residues of the width that no tap reaches.
  void fill_empty_residues() {
    for (int64_t w = 0; w < residues_; ++w) {
      if (widths_[w].taps.count > 0) continue;
      for (int64_t r = 0; r < channels_.size(); ++r)
        row_kernels_.fill(bias_of(r), plan_.pitch, sums_of(w) + r * plan_.pitch);
    }
  }

  // All output rows of the planes of one residue of the depth.
  void run_depth(const OutputPhase& depth) {
    if (position_ >= depth.count) return;
    const int64_t plane = depth.begin + position_ * s_.stride[0], heights = phase_count(s_, 1);
    // Where the rows of a channel follow each other, those that no tap reaches are filled with all others.
    const bool is_whole = line_columns().size() == s_.out[2] && !args_.residual;
    bool is_filled = false;
    for (int64_t h = 0; h < heights; ++h) {
      if (depth.taps.count > 0 && OutputPhase::of(s_, 1, h).taps.count > 0) continue;
      const int64_t first = first_band_ * s_.stride[1], end = std::min(s_.out[1], first + bands_ * s_.stride[1]);
      if (is_whole) {
        if (!is_filled) fill_rows(plane, first, end - first);
        is_filled = true;
      } else {
        for (int64_t line = first + h; line < end; line += s_.stride[1]) fill_rows(plane, line, 1);
      }
    }
    for (int64_t h = 0; h < heights && depth.taps.count > 0; ++h) {
      const OutputPhase height = OutputPhase::of(s_, 1, h);
      if (height.taps.count > 0) run_height(depth, height, plane);
    }
  }

  // The output rows of one residue of the height.
  void run_height(const OutputPhase& depth, const OutputPhase& height, int64_t plane) {
    const int64_t bands = std::min(bands_, height.count - first_band_), at_once = plan_.is_flat ? bands : 1;
    for (int64_t band = 0; band < bands; band += at_once) {
      const int64_t line = plane * s_.out[1] + height.begin + (first_band_ + band) * s_.stride[1];
      if (plan_.schedule.joined != 0) {
        sum_joined(depth, height, band, at_once);
        store_joined(line, at_once);
      } else {
        sum_residues(depth, height, band, at_once);
        store_lines(line, at_once);
      }
    }
  }

  float* sums_of(int64_t residue) const { return workspace_ + plan_.sums + residue * channels_.size() * plan_.pitch; }
  float bias_of(int64_t row) const { return args_.bias ? args_.bias[first_oc_ + row] : 0.0f; }
  // Pixels of a row that the task has.
  IndexRange line_columns() const {
    const int64_t stride = s_.stride[2], begin = first_column_ * stride - cut(), end = begin + columns_ * stride;
    return {std::max<int64_t>(begin, 0), std::min(end, s_.out[2])};
  }
  // Pixels before the row that positions have where residues are joined.
  int64_t cut() const { return plan_.schedule.joined != 0 ? s_.pad[2] - plan_.first * s_.stride[2] : 0; }

  // The results of a channel of the register block without their sums: `lines` output rows from `line` of all planes
  // on.
  Interleaving output_of(int64_t row, int64_t line, int64_t lines) const {
    const int64_t oc = first_oc_ + row, at = line * s_.out[2] + line_columns().begin;
    Interleaving output;
    output.count = line_columns().size();
    if (args_.residual)
      output.residual = args_.residual + image_ * args_.residual_batch + oc * args_.residual_channel + at;
    output.lo = args_.lo;
    output.hi = args_.hi;
    output.dst = args_.dst + image_ * args_.dst_batch + oc * args_.dst_channel + at;
    output.lines = lines;
    output.src_line = plan_.row;
    output.dst_line = s_.stride[1] * s_.out[2];
    return output;
  }

  void store(const Interleaving& output) const {
    row_kernels_.interleave(output);
    for (int64_t i = 0; i < output.lines && args_.activation; ++i)
      args_.activation(output.dst + i * output.dst_line, output.count);
  }

  // Output rows that no tap reaches: `count` of them from `line` on, more than one where rows are whole.
  void fill_rows(int64_t plane, int64_t line, int64_t count) {
    for (int64_t r = 0; r < channels_.size(); ++r) {
      const float bias = bias_of(r), value = bias < args_.lo ? args_.lo : (bias > args_.hi ? args_.hi : bias);
      Interleaving output = output_of(r, plane * s_.out[1] + line, 1);
      if (output.residual) {
        row_kernels_.fill(bias, output.count, workspace_ + plan_.line);
        output.src = workspace_ + plan_.line;
        store(output);
        continue;
      }
      row_kernels_.fill(value, count * output.count, output.dst);
      if (args_.activation) args_.activation(output.dst, count * output.count);
    }
  }

  // The residues of output rows, interleaved.
  void store_lines(int64_t line, int64_t lines) const {
    const int64_t rows = channels_.size();
    for (int64_t r = 0; r < rows; ++r) {
      Interleaving output = output_of(r, line, lines);
      output.src = sums_of(0) + r * plan_.pitch;
      output.src_row = rows * plan_.pitch;
      output.rows = residues_;
      store(output);
    }
  }

  // The sums of all residues at once.
  void sum_joined(const OutputPhase& depth, const OutputPhase& height, int64_t band, int64_t bands) {
    const int64_t ic = s_.group_ic(), count = channels_.size(), rows = s_.stride[2] * count;
    const int64_t taps = s_.kernel[0] * s_.kernel[1] * s_.stride[2] * plan_.row_taps;
    // Residues of the width are in the rows: taps of the depth and the height alone lie before these.
    const int64_t before = taps_before(s_, {depth.residue, height.residue, 0}) / s_.kernel[2];
    start_taps();
    each_row(depth, height, band, [&](int64_t index, int64_t at) {
      for (int64_t j = 0; j < plan_.row_taps; ++j)
        add_tap((index * plan_.row_taps + j) * ic * rows, at + plan_.row_taps - 1 - j);
    });
    float bias[kTileRows];
    for (int64_t r = 0; args_.bias && r < rows; ++r) bias[r] = bias_of(r % count);
    sum_panels(args_.weight + first_oc_ * ic * taps + before * plan_.row_taps * ic * rows, rows,
               args_.bias ? bias : nullptr, plan_.length(bands, columns_), sums_of(0));
  }

  // Joined residues, interleaved: they are the row, some pixels before it and behind it.
  void store_joined(int64_t line, int64_t lines) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const int64_t count = channels_.size(), stride = s_.stride[2];
    float* made = workspace_ + plan_.line;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < lines; ++i) {
        const float* sums = sums_of(0) + r * plan_.pitch + i * plan_.row;
        row_kernels_.interleave(
            {sums, count * plan_.pitch, stride, columns_ * stride, nullptr, -kInfinity, kInfinity, made});
        Interleaving output = output_of(r, line + i * s_.stride[1], 1);
        output.src = made + line_columns().begin + cut() - first_column_ * stride;
        store(output);
      }
    }
  }

  // The sums of every residue of the width that a tap reaches: of one band, or of all where they are one row.
  void sum_residues(const OutputPhase& depth, const OutputPhase& height, int64_t band, int64_t bands) {
    const int64_t rows = channels_.size(), ic = s_.group_ic();
    for (int64_t w = 0; w < residues_; ++w) {
      const OutputPhase& width = widths_[w];
      if (width.taps.count == 0) continue;
      start_taps();
      each_row(depth, height, band, [&](int64_t index, int64_t at) {
        for (int64_t i = 0; i < width.taps.count; ++i)
          add_tap((index * width.taps.count + i) * ic * rows, at + width.offset(i) - plan_.left);
      });
      const int64_t before = taps_before(s_, {depth.residue, height.residue, width.residue});
      sum_panels(args_.weight + first_oc_ * ic * s_.taps() + before * ic * rows, rows,
                 args_.bias ? args_.bias + first_oc_ : nullptr, plan_.length(bands, columns_), sums_of(w));
    }
  }

  // f(index, place) of every kernel row that reaches the band inside the input: its index, and where the input row
  // begins in a channel's copy. Bands that are one row read rows outside the image, too.
  template <class F>
  void each_row(const OutputPhase& depth, const OutputPhase& height, int64_t band, F&& f) const {
    for (int64_t d = 0; d < depth.taps.count; ++d) {
      const int64_t id = position_ + depth.offset(d);
      if (id < 0 || id >= s_.in[0]) continue;
      for (int64_t h = 0; h < height.taps.count; ++h) {
        const int64_t at = band + height.offset(h), ih = first_band_ + at;
        if (!plan_.is_flat && (ih < 0 || ih >= s_.in[1])) continue;
        f(d * height.taps.count + h, (depth.offset(d) - plan_.front) * plan_.plane() + (at - plan_.top) * plan_.row);
      }
    }
  }

  void start_taps() { tap_count_ = 0; }
  void add_tap(int64_t weight, int64_t place) { taps_[tap_count_++] = {weight, nullptr, 0, place}; }

  // `length` sums over the taps in taps_, a row of them for each row of weights.
  void sum_panels(const float* weight, int64_t rows, const float* bias, int64_t length, float* sums) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Tile tile;
    tile.taps = taps_;
    tile.tap_count = tap_count_;
    tile.src = weight;
    tile.step = rows;
    tile.block_size = tile.last_size = s_.group_ic();
    tile.weight_step = plan_.channel();
    tile.row_bias = bias;
    tile.dst_row = plan_.pitch;
    for (int64_t v = 0; v < plan_.schedule.vectors; ++v) tile.dst_vector[v] = v * plan_.lanes;
    tile.lo = -kInfinity;
    tile.hi = kInfinity;
    const int64_t vectors = ceil_div(length, plan_.lanes), panels = ceil_div(vectors, plan_.schedule.vectors);
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
  int64_t position_ = 0;  // along the depth
  int64_t first_band_ = 0, bands_ = 0, first_column_ = 0, columns_ = 0;
  IndexRange channels_ = {};  // of the group, in the register block
  int64_t first_oc_ = 0;      // of all channels
  OutputPhase widths_[kMaxRowStride];
  TileTap taps_[kMaxTaps];
  int64_t tap_count_ = 0;
};

}  // namespace

const char* reject_subpixel_rows(const Im2colConvShape& s) {
  if (s.stride[2] > kMaxRowStride) return "a stride of more than 64 pixels";
  if (ResidueTaps::of(s, 0, 0).count * ResidueTaps::of(s, 1, 0).count * ResidueTaps::of(s, 2, 0).count > kMaxTaps) {
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
  const Reach depth = Reach::of(s, 0), height = Reach::of(s, 1);
  Reach width = Reach::of(s, 2);
  if (schedule.joined != 0) {
    plan.row_taps = ceil_div(s.kernel[2], s.stride[2]);
    plan.first = floor_div(s.pad[2], s.stride[2]);
    width = {plan.first - plan.row_taps + 1, plan.first};
  }
  plan.front = depth.first;
  plan.top = height.first;
  plan.left = width.first;
  plan.extra_planes = depth.last - depth.first;
  plan.extra_rows = height.last - height.first;
  plan.depths = ceil_div(s.out[0], s.stride[0]);

  const int64_t positions = row_positions(plan), lines = ceil_div(s.out[1], s.stride[1]);
  const int64_t panel = schedule.vectors * plan.lanes, reach = width.last - width.first;
  const int64_t flops = 2 * s.n * s.oc * s.group_ic() * output_products(s);
  const int64_t wanted = ceil_div(worthwhile_tasks(flops), std::max<int64_t>(1, s.n * s.groups * plan.depths));
  const int64_t rows = ceil_div(s.group_oc(), plan.channel_tiles);
  const int64_t residues = schedule.joined != 0 ? joined : phase_count(s, 2);
  const int64_t whole_row = round_up(positions, plan.lanes);
  // Where several rows fill a register block, or rows take fewer vectors one behind the other.
  plan.is_flat =
      lines > 1 && positions > 0 &&
      ((positions + reach) * 2 <= panel || (positions <= panel && (positions + reach) * 10 <= whole_row * 9));
  const auto fits = [&](int64_t bands, int64_t columns) {
    plan.row = plan.is_flat ? columns + reach : round_up(columns, plan.lanes) + reach;
    const int64_t input = s.group_ic() * (plan.extra_planes + 1) * (bands + plan.extra_rows) * plan.row;
    return input <= kInputGoal && (!plan.is_flat || residues * rows * bands * plan.row <= kSumsGoal);
  };
  plan.bands = std::max<int64_t>(1, schedule.bands > 0 ? std::min(schedule.bands, lines) : ceil_div(lines, wanted));
  plan.columns = positions;
  if (lines < wanted) {
    const int64_t parts = ceil_div(wanted, std::max<int64_t>(1, lines));
    plan.columns = std::min(positions, round_up(ceil_div(positions, parts), 2 * panel));
  }
  plan.bands = max_that_fits(plan.bands, [&](int64_t bands) { return fits(bands, plan.columns); });
  while (plan.columns > panel && !fits(plan.bands, plan.columns)) plan.columns = round_up(plan.columns / 2, panel);
  fits(plan.bands, plan.columns);
  // Vectors of a row may end in the next one, and those of the last row behind the copy.
  const int64_t copied = s.group_ic() * plan.channel() + (plan.is_flat ? reach + plan.lanes : 0);
  plan.sums = round_up(copied, plan.lanes);
  plan.pitch = round_up(std::max<int64_t>(plan.length(plan.bands, plan.columns), 0), plan.lanes);
  plan.line = plan.sums + residues * rows * plan.pitch;
  plan.workspace_size = plan.line + s.stride[2] * round_up(plan.columns, plan.lanes);
  plan.band_chunks = ceil_div(lines, plan.bands);
  plan.column_chunks = plan.columns > 0 ? ceil_div(positions, plan.columns) : 0;
  plan.tasks = s.n * s.groups * plan.depths * plan.band_chunks * plan.column_chunks;
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
  return plan.schedule.joined != 0 ? filters * s.kernel[0] * s.kernel[1] * s.stride[2] * plan.row_taps
                                   : filters * s.taps();
}

void pack_subpixel_rows_weight(const SubpixelRowsPlan& plan, const float* weight, float* packed) {
  const Im2colConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  // All input channels of one kernel row.
  const auto pack_joined = [&](int64_t g, IndexRange channels, int64_t kernel_row, int64_t j) {
    for (int64_t ic = g * group_ic; ic < (g + 1) * group_ic; ++ic) {
      for (int64_t w = j * s.stride[2]; w < (j + 1) * s.stride[2]; ++w) {
        for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
          const bool is_there = w < s.kernel[2];
          *packed++ = is_there ? weight[(ic * group_oc + oc) * s.taps() + kernel_row * s.kernel[2] + w] : 0.0f;
        }
      }
    }
  };
  const auto row_of = [&](const ResidueTaps& depth, const ResidueTaps& height, int64_t i) {
    const int64_t d = depth.first + i / height.count * depth.step;
    return d * s.kernel[1] + height.first + i % height.count * height.step;
  };
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t t = 0; t < plan.channel_tiles; ++t) {
      const IndexRange channels = tile_channels(plan, t);
      if (plan.schedule.joined != 0) {
        for (int64_t residue = 0; residue < s.stride[0] * s.stride[1]; ++residue) {
          const ResidueTaps depth = ResidueTaps::of(s, 0, residue / s.stride[1]);
          const ResidueTaps height = ResidueTaps::of(s, 1, residue % s.stride[1]);
          for (int64_t i = 0; i < depth.count * height.count; ++i) {
            for (int64_t j = 0; j < plan.row_taps; ++j) pack_joined(g, channels, row_of(depth, height, i), j);
          }
        }
        continue;
      }
      for_each_residue(s, [&](const ResidueTaps& depth, const ResidueTaps& height, const ResidueTaps& width) {
        for (int64_t i = 0; i < depth.count * height.count * width.count; ++i) {
          const int64_t row = row_of(depth, height, i / width.count);
          const int64_t w = width.first + i % width.count * width.step;
          for (int64_t ic = g * group_ic; ic < (g + 1) * group_ic; ++ic) {
            for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
              *packed++ = weight[(ic * group_oc + oc) * s.taps() + row * s.kernel[2] + w];
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
