#include "routines/cpu/conv/im2col/im2col_conv.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/gemm/gemm_block.h"
#include "routines/cpu/tasks.h"
#include "routines/patterns/transposed_taps.h"

namespace neo {
namespace {

constexpr int64_t kPanelChunk = 256;
constexpr int64_t kMaxWidth = 64;          // columns of a panel
constexpr int64_t kMaxFinished = 1 << 16;  // floats of a panel's sums, which the private cache should keep
constexpr int64_t kSetsStride = 1024;      // rows that many floats apart share the same few sets of the first cache
constexpr int64_t kMaxBoxes = 1 << 17;     // floats of copied channels, which the private cache should keep
constexpr int64_t kSlack = 16;             // floats behind the last row of a panel, which gathers write
constexpr int64_t kShortRun = 4;           // elements that are gathered one by one rather than as a run
constexpr float kUnbounded = std::numeric_limits<float>::infinity();

// One axis of one phase. All phases have as many positions as the first, the most; those beyond the output are computed
// for nothing.
OutputPhase find_axis_phase(const Im2colConvShape& s, int axis, int64_t begin) {
  OutputPhase phase = OutputPhase::of(s, axis, begin);
  phase.count = ceil_div(s.out[axis], output_step(s, axis));
  return phase;
}

struct Phase {
  OutputPhase axis[3];
  int64_t weights = 0;  // floats of a group's packed weights before this phase's
  int64_t taps() const { return axis[0].taps.count * axis[1].taps.count * axis[2].taps.count; }
  int64_t pixels() const { return axis[0].count * axis[1].count * axis[2].count; }
};

Phase find_phase(const Im2colConvPlan& plan, int64_t index) {
  const Im2colConvShape& s = plan.shape;
  Phase phase;
  for (int i = 2; i >= 0; --i) {
    phase.axis[i] = find_axis_phase(s, i, index % plan.axis_phases[i]);
    index /= plan.axis_phases[i];
  }
  const int64_t before = taps_before(s, {phase.axis[0].residue, phase.axis[1].residue, phase.axis[2].residue});
  phase.weights = before * s.group_ic() * s.group_oc();
  return phase;
}

// Where the taps of all phases begin and end, along each axis.
InputBox find_box(const Im2colConvPlan& plan) {
  const Im2colConvShape& s = plan.shape;
  InputBox box;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (int64_t p = 0; p < plan.axis_phases[axis]; ++p) {
      const OutputPhase phase = find_axis_phase(s, axis, p);
      for (int64_t t = 0; t < phase.taps.count; ++t) {
        begin = std::min(begin, phase.offset(t));
        end = std::max(end, phase.offset(t) + (phase.count - 1) * phase.in_step + 1);
      }
    }
    if (begin >= end) return {};
    box.begin[axis] = begin;
    box.size[axis] = end - begin;
  }
  box.step = find_axis_phase(s, 2, 0).in_step;
  return box;
}

// Floats of the boxes of a group's channels, and of what is read behind them.
int64_t boxes_size(const Im2colConvPlan& plan) {
  return plan.box.elements() > 0 ? plan.shape.group_ic() * plan.box.elements() + kSlack : 0;
}

// One channel's box, whose zeros are there; `plane` is the channel.
void copy_box(const Im2colConvShape& s, const InputBox& box, const float* plane, float* to) {
  const auto inside = [&](int axis) {
    return IndexRange{std::max<int64_t>(0, -box.begin[axis]), std::min(box.size[axis], s.in[axis] - box.begin[axis])};
  };
  const IndexRange depths = inside(0), heights = inside(1);
  for (int64_t r = 0; r < box.step; ++r) {
    // Input columns first + i * step.
    const int64_t first = box.begin[2] + r, left = s.in[2] - first;
    const int64_t begin = first >= 0 ? 0 : ceil_div(-first, box.step);
    const int64_t end = left <= 0 ? 0 : std::min(box.step_size(), ceil_div(left, box.step));
    for (int64_t z = depths.begin; z < depths.end; ++z) {
      for (int64_t y = heights.begin; y < heights.end; ++y) {
        const float* row = plane + ((z + box.begin[0]) * s.in[1] + y + box.begin[1]) * s.in[2] + first;
        float* places = to + (z * box.size[1] + y) * box.row() + r * box.step_size();
        if (box.step == 1) {
          std::copy(row + begin, row + end, places + begin);
        } else {
          for (int64_t i = begin; i < end; ++i) places[i] = row[i * box.step];
        }
      }
    }
  }
}

// Where the taps of a phase begin in a box, of which the first ones are found once.
struct BoxTaps {
  static constexpr int64_t kKept = 512;
  const InputBox& box;
  int64_t kept[kKept];

  explicit BoxTaps(const InputBox& b) : box(b) {}

  void find(const Phase& phase) {
    const int64_t count = std::min(kKept, phase.taps());
    for (int64_t i = 0; i < count; ++i) kept[i] = place(phase, i);
  }
  int64_t at(const Phase& phase, int64_t tap) const { return tap < kKept ? kept[tap] : place(phase, tap); }

 private:
  int64_t place(const Phase& phase, int64_t tap) const {
    const int64_t widths = phase.axis[2].taps.count, heights = phase.axis[1].taps.count;
    const int64_t plane = phase.axis[0].offset(tap / (widths * heights)) - box.begin[0];
    const int64_t row = plane * box.size[1] + phase.axis[1].offset(tap / widths % heights) - box.begin[1];
    return row * box.row() + box.place(phase.axis[2].offset(tap % widths) - box.begin[2]);
  }
};

// Consecutive pixels of one output row within a panel.
struct Run {
  int64_t lane, length, d, h, w;
};

struct PanelGather {
  Run runs[kMaxWidth];
  ShortRun of_box[kMaxWidth];
  int32_t places[kMaxWidth];  // in a box, of each column
  bool by_places = false;     // rather than by runs, which are of few elements
  int64_t count = 0;

  PanelGather(const Phase& phase, int64_t first, int64_t columns) {
    const int64_t width = phase.axis[2].count, height = phase.axis[1].count;
    for (int64_t lane = 0; lane < columns;) {
      const int64_t w = (first + lane) % width, line = (first + lane) / width;
      const int64_t length = std::min(width - w, columns - lane);
      runs[count++] = {lane, length, line / height, line % height, w};
      lane += length;
    }
  }

  // The places in the input that a tap of no offset reads.
  void place_in(const Im2colConvShape& s, const Phase& phase) {
    by_places = true;
    for (int64_t i = 0; i < count; ++i) {
      const Run& run = runs[i];
      const int64_t row = run.d * phase.axis[0].in_step * s.in[1] + run.h * phase.axis[1].in_step;
      for (int64_t j = 0; j < run.length; ++j)
        places[run.lane + j] = static_cast<int32_t>(row * s.in[2] + (run.w + j) * phase.axis[2].in_step);
    }
    std::fill(places + columns(), places + kMaxWidth, places[0]);
  }

  // The same runs as places in a box, of the first tap there.
  void place_in(const InputBox& box, const Phase& phase) {
    for (int64_t i = 0; i < count; ++i) {
      const Run& run = runs[i];
      const int64_t row = run.d * phase.axis[0].in_step * box.size[1] + run.h * phase.axis[1].in_step;
      of_box[i] = {run.lane, row * box.row() + run.w, run.length};
    }
    by_places = columns() < kShortRun * count;
    if (!by_places) return;
    std::fill(places, places + kMaxWidth, 0);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < of_box[i].length; ++j)
        places[of_box[i].to + j] = static_cast<int32_t>(of_box[i].from + j);
    }
  }
  int64_t columns() const { return runs[count - 1].lane + runs[count - 1].length; }
  void gather_box(const RowKernels& kernels, const float* src, float* dst) const {
    if (by_places) return kernels.gather_places(src, places, columns(), dst);
    kernels.gather_runs(src, of_box, count, dst);
  }

  // One row of the packed matrix: channel plane `src`, tap (td, th, tw).
  void gather(const Im2colConvShape& s, const Phase& phase, const RowKernels& kernels, const float* src, int64_t td,
              int64_t th, int64_t tw, float* dst) const {
    const OutputPhase& aw = phase.axis[2];
    if (by_places) {
      const int64_t row = phase.axis[0].offset(td) * s.in[1] + phase.axis[1].offset(th);
      return kernels.gather_places(src + row * s.in[2] + aw.offset(tw), places, columns(), dst);
    }
    for (int64_t i = 0; i < count; ++i) {
      const Run& run = runs[i];
      const int64_t id = run.d * phase.axis[0].in_step + phase.axis[0].offset(td);
      const int64_t ih = run.h * phase.axis[1].in_step + phase.axis[1].offset(th);
      const int64_t iw = run.w * aw.in_step + aw.offset(tw);
      float* out = dst + run.lane;
      if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) {
        std::fill_n(out, run.length, 0.0f);
        continue;
      }
      const int64_t begin = std::clamp<int64_t>(iw >= 0 ? 0 : ceil_div(-iw, aw.in_step), 0, run.length);
      const int64_t end = iw >= s.in[2] ? begin : std::clamp((s.in[2] - 1 - iw) / aw.in_step + 1, begin, run.length);
      std::fill(out, out + begin, 0.0f);
      if (begin < end) {
        kernels.take_every(src + (id * s.in[1] + ih) * s.in[2] + iw + begin * aw.in_step, aw.in_step, end - begin,
                           out + begin);
      }
      std::fill(out + end, out + run.length, 0.0f);
    }
  }
};

// Whether a phase of a row reads the pixels that the one before it reads, and its weights follow those.
bool continues(const OutputPhase& before, const OutputPhase& phase) {
  return phase.residue == before.residue + 1 && phase.taps.count == before.taps.count && phase.taps.count > 0 &&
         phase.first_offset == before.first_offset && phase.offset_step == before.offset_step;
}

// The product that GEMM computes for some neighbouring phases of one image and group.
GemmPlan make_gemm(const Im2colConvPlan& plan, const Phase& phase, int64_t phases) {
  GemmPlan gemm;
  gemm.shape.m = plan.shape.group_oc() * phases;
  gemm.shape.n = phase.pixels();
  gemm.shape.k = plan.shape.group_ic() * phase.taps();
  gemm.lanes = plan.lanes;
  gemm.vectors = ceil_div(gemm.shape.n, plan.lanes);
  gemm.panels = ceil_div(gemm.vectors, plan.vectors);
  gemm.k_chunk = plan.k_chunk;
  gemm.schedule.rows = plan.rows;
  return gemm;
}

// A panel of finished sums of one phase of rows, all its phases of columns one after the other, to where these have
// their pixels.
void scatter(const Im2colConvPlan& plan, const Phase& phase, const RowKernels& kernels, const ConvOperands& args,
             const PanelGather& gather, const float* panel, int64_t width, float* dst, const float* residual) {
  const Im2colConvShape& s = plan.shape;
  const int64_t columns = plan.axis_phases[2];
  for (int64_t i = 0; i < gather.count; ++i) {
    const Run& run = gather.runs[i];
    const int64_t d = phase.axis[0].begin + run.d * output_step(s, 0);
    const int64_t h = phase.axis[1].begin + run.h * output_step(s, 1);
    const int64_t w = run.w * output_step(s, 2);
    if (d >= s.out[0] || h >= s.out[1]) continue;
    const int64_t at = (d * s.out[1] + h) * s.out[2] + w, count = std::min(s.out[2] - w, run.length * columns);
    for (int64_t oc = 0; oc < s.group_oc(); ++oc) {
      const float* added = residual ? residual + oc * args.residual_channel + at : nullptr;
      float* out = dst + oc * args.dst_channel + at;
      kernels.interleave(
          {panel + oc * width + run.lane, s.group_oc() * width, columns, count, added, args.lo, args.hi, out});
      if (args.activation) args.activation(out, count);
    }
  }
}

// Whether all windows lie inside an input whose places fit 32 bits.
bool reads_inside(const Im2colConvShape& s) {
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t end = (s.out[axis] - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] - s.pad[axis];
    if (s.pad[axis] > 0 || end >= s.in[axis]) return false;
  }
  return s.in_size() < std::numeric_limits<int32_t>::max();
}

}  // namespace

Im2colConvPlan plan_im2col_conv(const Im2colConvShape& s, const Im2colConvSchedule& schedule,
                                const TileKernels& kernels) {
  Im2colConvPlan plan;
  plan.shape = s;
  plan.lanes = kernels.lanes;
  if (schedule.columns > 0) plan.vectors = schedule.columns;
  plan.rows = schedule.rows;
  plan.is_pointwise = true;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t stride = s.stride[axis], kernel = s.kernel[axis];
    const bool one_tap = kernel == 1 || (s.transposed && s.dilation[axis] == 1);
    const int64_t of_pixel = s.transposed ? stride : 1;
    plan.is_pointwise &= one_tap && kernel == of_pixel && (s.transposed || stride == 1) && s.pad[axis] == 0 &&
                         s.out[axis] == s.in[axis] * of_pixel;
    // A stride beyond the output leaves phases that no pixel has.
    plan.axis_phases[axis] = s.transposed ? std::clamp<int64_t>(s.out[axis], 1, stride) : 1;
  }
  const int64_t finished = s.transposed ? s.group_oc() * plan.axis_phases[2] : 0;  // floats per pixel
  while (schedule.columns == 0 && plan.vectors > 1 && finished * plan.vectors * plan.lanes > kMaxFinished)
    --plan.vectors;
  const int64_t width = plan.vectors * plan.lanes;
  plan.k_chunk = std::clamp<int64_t>(s.group_ic() * s.taps(), 1, schedule.k > 0 ? schedule.k : kPanelChunk);
  plan.workspace_size = (plan.k_chunk + finished) * width + finished + kSlack;
  const int64_t panels = ceil_div(ceil_div(find_phase(plan, 0).pixels(), plan.lanes), plan.vectors);
  const int64_t parts = s.n * s.groups;
  if (panels == 0 || parts == 0) return plan;
  plan.panel_chunk = schedule.panels > 0 ? std::min(schedule.panels, panels)
                                         : ceil_div(panels, ceil_div(worthwhile_tasks(s.flops()), parts));
  plan.chunks = ceil_div(panels, plan.panel_chunk);
  plan.tasks = parts * plan.chunks;
  // Runs of rows that are shorter than two vectors take longer to find than to copy.
  const Phase phase = find_phase(plan, 0);
  if (plan.is_pointwise || phase.axis[2].count >= 2 * plan.lanes) return plan;
  plan.box = find_box(plan);
  const int64_t gathered = s.taps() / plan.phases() * std::min(plan.panel_chunk * width, phase.pixels());
  const bool pays = plan.box.elements() <= 2 * gathered && s.group_ic() * plan.box.elements() <= kMaxBoxes;
  if (!pays) plan.box = {};
  plan.workspace_size += boxes_size(plan);
  plan.takes_places = !pays && !s.transposed && s.out[2] < 2 * kShortRun && reads_inside(s);
  return plan;
}

double phases_per_gather(const Im2colConvPlan& plan) {
  const int64_t phases = plan.axis_phases[2];
  int64_t gathers = 1;
  OutputPhase before = find_axis_phase(plan.shape, 2, 0);
  for (int64_t i = 1; i < phases; ++i) {
    const OutputPhase phase = find_axis_phase(plan.shape, 2, i);
    gathers += !continues(before, phase);
    before = phase;
  }
  return static_cast<double>(phases) / static_cast<double>(gathers);
}

int64_t im2col_conv_weight_size(const Im2colConvPlan& plan) {
  return plan.shape.oc * plan.shape.group_ic() * plan.shape.taps();
}

void pack_im2col_conv_weight(const Im2colConvPlan& plan, const float* weight, float* packed, IndexRange channels) {
  const Im2colConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  for (int64_t g = channels.begin / group_oc; g * group_oc < channels.end; ++g) {
    const IndexRange part = {std::max<int64_t>(channels.begin - g * group_oc, 0),
                             std::min(channels.end - g * group_oc, group_oc)};
    float* residue = packed + g * group_oc * group_ic * s.taps();
    for_each_residue(s, [&](const ResidueTaps& depth, const ResidueTaps& height, const ResidueTaps& width) {
      const int64_t taps = depth.count * height.count * width.count;
      for (int64_t ic = 0; ic < group_ic; ++ic) {
        for (int64_t oc = part.begin; oc < part.end; ++oc) {
          const float* filter = weight + ((g * group_ic + ic) * group_oc + oc) * s.taps();
          float* to = residue + (oc * group_ic + ic) * taps;
          for (int64_t d = 0; d < depth.count; ++d) {
            for (int64_t h = 0; h < height.count; ++h) {
              const int64_t row = (depth.first + d * depth.step) * s.kernel[1] + height.first + h * height.step;
              for (int64_t w = 0; w < width.count; ++w) {
                *to++ = filter[row * s.kernel[2] + width.first + w * width.step];
              }
            }
          }
        }
      }
      residue += group_oc * group_ic * taps;
    });
  }
}

void run_im2col_conv(const Im2colConvPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels,
                     const RowKernels& row_kernels, const ConvOperands& args, int64_t task_begin, int64_t task_end,
                     float* workspace) {
  const Im2colConvShape& s = plan.shape;
  float* finished = workspace + plan.k_chunk * plan.vectors * plan.lanes + kSlack;
  const int64_t column_phases = plan.axis_phases[2];
  float* row_bias = finished + s.group_oc() * column_phases * plan.vectors * plan.lanes;
  float* boxes = workspace + plan.workspace_size - boxes_size(plan);
  const bool has_boxes = plan.box.elements() > 0;
  // The zeros around all channels lie in the same places.
  if (has_boxes) std::fill_n(boxes, s.group_ic() * plan.box.elements(), 0.0f);
  BoxTaps taps(plan.box);
  // To find one takes longer than many a panel of it.
  constexpr int64_t kKept = 32;
  Phase kept[kKept];
  for (int64_t i = 0; i < std::min(kKept, plan.phases()); ++i) kept[i] = find_phase(plan, i);
  const auto phase_at = [&](int64_t i) { return i < kKept ? kept[i] : find_phase(plan, i); };
  const GemmPlan pixels = make_gemm(plan, kept[0], 1);
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks;
    const int64_t group = task / plan.chunks % s.groups;
    const int64_t image = task / (plan.chunks * s.groups);
    const int64_t first_oc = group * s.group_oc();
    const float* src = args.src + image * args.src_batch + group * s.group_ic() * args.src_channel;
    float* dst = args.dst + image * args.dst_batch + first_oc * args.dst_channel;
    const float* residual = args.residual;
    if (residual) residual += image * args.residual_batch + first_oc * args.residual_channel;

    for (int64_t c = 0; has_boxes && c < s.group_ic(); ++c)
      copy_box(s, plan.box, src + c * args.src_channel, boxes + c * plan.box.elements());

    GemmArgs gemm_args;
    if (args.bias) gemm_args.row_bias = args.bias + first_oc;
    if (args.bias && s.transposed) {
      for (int64_t i = 0; i < column_phases; ++i) {
        std::copy_n(args.bias + first_oc, s.group_oc(), row_bias + i * s.group_oc());
      }
      gemm_args.row_bias = row_bias;
    }
    if (!s.transposed) {
      gemm_args.residual = residual;
      gemm_args.residual_row = args.residual_channel;
    }
    gemm_args.lo = s.transposed ? -kUnbounded : args.lo;
    gemm_args.hi = s.transposed ? kUnbounded : args.hi;
    if (!s.transposed) gemm_args.activation = args.activation;

    const int64_t last = std::min((chunk + 1) * plan.panel_chunk, pixels.panels);
    for (int64_t p = chunk * plan.panel_chunk; p < last; ++p) {
      const IndexRange vectors = gemm_panel(pixels, p);
      const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
      const int64_t columns = std::min(width, pixels.shape.n - first);
      PanelGather gather(kept[0], first, columns);
      if (has_boxes) gather.place_in(plan.box, kept[0]);
      if (plan.takes_places) gather.place_in(s, kept[0]);
      const bool in_place = columns == width && args.src_channel % kSetsStride != 0;
      for (int64_t i = 0, joined; i < plan.phases(); i += joined) {
        const int64_t column_phase = i % column_phases;
        const Phase phase = phase_at(i);
        joined = 1;
        for (OutputPhase before = phase.axis[2]; column_phase + joined < column_phases; ++joined) {
          const OutputPhase next = phase_at(i + joined).axis[2];
          if (!continues(before, next)) break;
          before = next;
        }
        const GemmPlan gemm = make_gemm(plan, phase, joined);
        gemm_args.a = args.weight + group * s.group_oc() * s.group_ic() * s.taps() + phase.weights;
        gemm_args.a_row = gemm.shape.k;
        gemm_args.c = s.transposed ? finished + column_phase * s.group_oc() * width : dst;
        gemm_args.c_row = s.transposed ? width : args.dst_channel;
        BatchOffsets at;
        if (s.transposed) at.c = -first;
        const GemmBlock block = {gemm, kernels, gemm_args, at, nullptr};
        int64_t k = 0, tap[3] = {0, 0, 0}, channel = 0, box_tap = 0;
        const float* box = boxes;
        if (has_boxes) taps.find(phase);
        do {
          const IndexRange part = {k, std::min(k + plan.k_chunk, gemm.shape.k)};
          if (plan.is_pointwise) {
            const float* rows = src + k * args.src_channel + first;
            // Phases read the same pixels.
            const bool is_packed = i > 0 && part.size() == gemm.shape.k;
            if (!in_place && !is_packed) {
              pack_kernels.panel(rows, args.src_channel, 1, part.size(), columns, vectors.size(), 1.0f, workspace);
            }
            block.run_rows(in_place ? rows : workspace, in_place ? args.src_channel : width, 1.0f, {0, gemm.shape.m},
                           vectors, part);
            k = part.end;
            continue;
          }
          for (float* row = workspace; k < part.end; ++k, row += width) {
            if (has_boxes) {
              gather.gather_box(row_kernels, box + taps.at(phase, box_tap), row);
              if (++box_tap == phase.taps()) {
                box_tap = 0;
                box += plan.box.elements();
              }
            } else {
              gather.gather(s, phase, row_kernels, src + channel * args.src_channel, tap[0], tap[1], tap[2], row);
              for (int axis = 2; axis >= 0; --axis) {
                if (++tap[axis] < phase.axis[axis].taps.count) break;
                tap[axis] = 0;
                if (axis == 0) ++channel;
              }
            }
            std::fill(row + columns, row + width, 0.0f);
          }
          block.run_rows(workspace, width, 1.0f, {0, gemm.shape.m}, vectors, part);
          k = part.end;
        } while (k < gemm.shape.k);
        if (s.transposed && column_phase + joined == column_phases)
          scatter(plan, phase, row_kernels, args, gather, finished, width, dst, residual);
      }
    }
  }
}

}  // namespace neo
