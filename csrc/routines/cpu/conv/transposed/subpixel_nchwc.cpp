#include "routines/cpu/conv/transposed/subpixel_nchwc.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/conv/output_panel.h"
#include "routines/cpu/microkernel/prefetch_plan.h"
#include "routines/cpu/tasks.h"
#include "routines/patterns/transposed_taps.h"

namespace neo {
namespace {

constexpr int64_t kMaxResidueTaps = 256;
constexpr int64_t kWidestBlock = 16;
// Weights of all residues of an output row, in floats, that the private cache keeps while rows pass.
constexpr int64_t kRowWeights = 49152;

IndexRange panel_vectors(const SubpixelPlan& plan, int64_t panel) {
  return even_part(plan.group_vectors, plan.panels, panel);
}

int64_t panel_width(const SubpixelPlan& plan, int64_t panel) {
  return panel_vectors(plan, panel).size() * plan.lanes;
}

// Most taps that reach one output, along an axis.
int64_t most_taps(const Im2colConvShape& s, int axis) {
  return ResidueTaps::of(s, axis, 0).count;
}

// One residue along each axis.
struct Residue {
  OutputPhase depth, height, width;
  int64_t before = 0;  // taps of others before its own in the packed weights

  int64_t taps() const { return depth.taps.count * height.taps.count * width.taps.count; }
};

// The taps of one tile: outputs [first, first + rows) of a residue in one output row.
struct SubpixelTaps {
  TileTap taps[kMaxResidueTaps];
  int32_t offsets[kMaxResidueTaps][kTileRows];
  int64_t count = 0;

  void build(const Im2colConvShape& s, int64_t lanes, const Residue& r, int64_t depth, int64_t line, int64_t first,
             int64_t rows) {
    count = 0;
    for (int64_t d = 0; d < r.depth.taps.count; ++d) {
      const int64_t id = depth * r.depth.in_step + r.depth.offset(d);
      if (id < 0 || id >= s.in[0]) continue;
      for (int64_t h = 0; h < r.height.taps.count; ++h) {
        const int64_t ih = line * r.height.in_step + r.height.offset(h);
        if (ih < 0 || ih >= s.in[1]) continue;
        for (int64_t w = 0; w < r.width.taps.count; ++w) {
          const int64_t step = r.width.in_step, begin = first * step + r.width.offset(w);
          const int64_t last = begin + (rows - 1) * step, row = (id * s.in[1] + ih) * s.in[2];
          if (last < 0 || begin >= s.in[2]) continue;
          const int64_t index = (d * r.height.taps.count + h) * r.width.taps.count + w;
          if (begin >= 0 && last < s.in[2]) {
            taps[count++] = {(row + begin) * lanes, nullptr, index, 0};
            continue;
          }
          for (int64_t i = 0; i < rows; ++i) {
            const int64_t iw = begin + i * step;
            const bool inside = iw >= 0 && iw < s.in[2];
            offsets[count][i] = inside ? static_cast<int32_t>((row + iw) * lanes) : Tile::kOutside;
          }
          taps[count] = {0, offsets[count], index, 0};
          ++count;
        }
      }
    }
  }
};

class SubpixelTask {
 public:
  SubpixelTask(const SubpixelPlan& plan, const TileKernels& kernels, const ConvOperands& args)
      : plan_(plan), kernels_(kernels), args_(args), s_(plan.shape) {
    columns_ = phase_count(s_, 2);
    for (int64_t w = 0; w < columns_; ++w) residues_[w].width = OutputPhase::of(s_, 2, w);
  }

  void run(int64_t task) {
    const int64_t all_panels = plan_.panel_chunks * s_.groups;
    const int64_t chunk = plan_.is_heavy ? task % plan_.band_chunks : task / all_panels;
    const int64_t weights = plan_.is_heavy ? task / plan_.band_chunks : task % all_panels;
    const int64_t first_panel = weights % plan_.panel_chunks * plan_.panel_chunk;
    group_ = weights / plan_.panel_chunks;
    bands_ = {chunk * plan_.band_chunk, std::min((chunk + 1) * plan_.band_chunk, plan_.bands())};
    const int64_t last_panel = std::min(first_panel + plan_.panel_chunk, plan_.panels);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      vectors_ = panel_vectors(plan_, p);
      for (int64_t d = 0; d < phase_count(s_, 0); ++d) {
        for (int64_t h = 0; h < phase_count(s_, 1); ++h) run_rows(OutputPhase::of(s_, 0, d), OutputPhase::of(s_, 1, h));
      }
    }
  }

 private:
  // The output rows of one residue along depth and height.
  void run_rows(const OutputPhase& depth, const OutputPhase& height) {
    for (int64_t w = 0; w < columns_; ++w) {
      Residue& r = residues_[w];
      r.depth = depth;
      r.height = height;
      r.before = taps_before(s_, {depth.residue, height.residue, r.width.residue});
    }
    const int64_t inside = plan_.finishes_lines ? columns_ : 1;
    const int64_t outside = plan_.finishes_lines ? 1 : columns_ * plan_.passes;
    for (int64_t i = 0; i < outside; ++i) {
      const int64_t pass = i % plan_.passes;
      if (!plan_.finishes_lines) fetch_weights(residues_[i / plan_.passes], pass);
      for (int64_t band = bands_.begin; band < bands_.end; ++band) {
        const int64_t line = band % plan_.lines, at_depth = band / plan_.lines % plan_.depths;
        if (at_depth >= depth.count || line >= height.count) continue;
        const int64_t image = band / (plan_.lines * plan_.depths);
        for (int64_t j = 0; j < inside; ++j) {
          const int64_t column = plan_.finishes_lines ? j : i / plan_.passes;
          run_line(residues_[column], image, at_depth, line, pass, column + 1 == columns_);
        }
      }
    }
  }

  // The weights that are read next lie behind those of this residue and pass.
  void fetch_weights(const Residue& r, int64_t pass) {
    prefetch_ = {};
    const Tile t = make_tile(r, 0, pass);
    const int64_t k = ((t.blocks - 1) * t.block_size + t.last_size) * t.weight_taps;
    const float* next = t.weight + k * t.weight_step;
    if (t.blocks == 0 || k == 0 || next >= args_.weight + subpixel_weight_size(plan_)) return;
    const int64_t tiles = bands_.size() * ceil_div(r.width.count, tile_rows());
    prefetch_ = PrefetchPlan::over(next, t.weight_step, k, tiles);
  }

  int64_t tile_rows() const {
    const int64_t most = kernels_.max_rows[vectors_.size()];
    return plan_.schedule.reg_n > 0 ? std::min(plan_.schedule.reg_n, most) : most;
  }

  Tile make_tile(const Residue& r, int64_t image, int64_t pass) {
    const int64_t group_ic = s_.group_ic(), ic = group_ * group_ic, lanes = plan_.lanes;
    const int64_t block_size = std::min(lanes, group_ic), blocks = ceil_div(group_ic, block_size);
    const int64_t first = pass * plan_.pass, last = std::min(blocks, first + plan_.pass);
    Tile t;
    t.src = args_.src + image * args_.src_batch + (ic / lanes + first) * args_.src_channel + ic % lanes;
    t.step = r.width.in_step * lanes;
    t.block_size = block_size;
    t.blocks = last - first;
    t.last_size = last < blocks ? block_size : group_ic - (blocks - 1) * block_size;
    t.block_stride = args_.src_channel;
    const int64_t column = (group_ * plan_.group_vectors + vectors_.begin) * lanes;
    t.weight_step = vectors_.size() * lanes;
    t.weight_taps = r.taps();
    t.weight = args_.weight + column * group_ic * s_.taps() +
               (r.before * group_ic + first * block_size * t.weight_taps) * t.weight_step;
    if (args_.bias && pass == 0) t.bias = args_.bias + column;
    t.taps = taps_.taps;
    t.scratch = scratch_;
    return t;
  }

  // All outputs of a residue in one row; `ends`: they are the row's last.
  void run_line(const Residue& r, int64_t image, int64_t at_depth, int64_t line, int64_t pass, bool ends) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const bool is_last = pass + 1 == plan_.passes;
    const int64_t lanes = plan_.lanes, od = r.depth.begin + at_depth * output_step(s_, 0);
    const int64_t row = (od * s_.out[1] + r.height.begin + line * output_step(s_, 1)) * s_.out[2];
    BlockedOutput output;
    output.dst = args_.dst + image * args_.dst_batch + row * lanes;
    output.dst_block = args_.dst_channel;
    if (pass > 0) {
      output.residual = output.dst;
      output.residual_block = output.dst_block;
    } else if (args_.residual) {
      output.residual = args_.residual + image * args_.residual_batch + row * lanes;
      output.residual_block = args_.residual_channel;
    }
    output.oc_bn = lanes;
    output.lo = is_last ? args_.lo : -kInfinity;
    output.hi = is_last ? args_.hi : kInfinity;
    output.activation = args_.activation;
    const int64_t first_oc = vectors_.begin * lanes;
    const OutputPanel whole = make_output_panel(output, group_ * s_.group_oc() + first_oc, vectors_.size(), lanes,
                                                std::min(vectors_.size() * lanes, s_.group_oc() - first_oc));
    OutputPanel panel = whole;
    panel.row = output_step(s_, 2) * lanes;
    panel.dst += r.width.begin * lanes;
    if (panel.residual) panel.residual += r.width.begin * lanes;
    Tile tile = make_tile(r, image, pass);
    const int64_t tiles = ceil_div(r.width.count, tile_rows());
    for (int64_t i = 0; i < tiles; ++i) {
      const IndexRange part = even_part(r.width.count, tiles, i);
      taps_.build(s_, lanes, r, at_depth, line, part.begin, part.size());
      tile.tap_count = taps_.count;
      tile.fetches_rows = taps_.count == 1;
      prefetch_.give(tile);
      run_output_tile(kernels_.rows[vectors_.size()][part.size()], kernels_, tile, panel, part.begin, part.size());
    }
    if (is_last && ends) activate_output(whole, 0, s_.out[2]);
  }

  const SubpixelPlan& plan_;
  const TileKernels& kernels_;
  const ConvOperands& args_;
  const Im2colConvShape& s_;
  int64_t columns_ = 0;  // residues along a row
  int64_t group_ = 0;
  IndexRange bands_ = {}, vectors_ = {};
  PrefetchPlan prefetch_;
  Residue residues_[kMaxRowStride];
  SubpixelTaps taps_;
  alignas(64) float scratch_[kTileRows * kWidestBlock];
};

}  // namespace

const char* reject_subpixel(const Im2colConvShape& s, int64_t lanes) {
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  if (output_step(s, 2) > kMaxRowStride) return "a stride of more than 64 pixels";
  if (most_taps(s, 0) * most_taps(s, 1) * most_taps(s, 2) > kMaxResidueTaps) {
    return "more than 256 taps reach an output";
  }
  if (s.groups > 1) {
    if (group_oc % lanes != 0) return "output channels per group must be a multiple of the vector width";
    if (group_ic % lanes != 0 && lanes % group_ic != 0) {
      return "a group's input channels must fill blocks, or several groups one block";
    }
  }
  if (s.in_size() * lanes >= INT32_MAX) return "the input plane has too many elements";
  return nullptr;
}

int64_t subpixel_work(const Im2colConvShape& s) {
  constexpr int64_t kPerWeight = 56;  // from memory
  const int64_t weights = s.oc * s.group_ic();
  return std::max(2 * s.n * weights * output_products(s), kPerWeight * weights * s.taps());
}

SubpixelPlan plan_subpixel(const Im2colConvShape& s, const SubpixelSchedule& schedule, const TileKernels& kernels) {
  SubpixelPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.group_vectors = ceil_div(s.group_oc(), plan.lanes);
  plan.panels = ceil_div(plan.group_vectors, schedule.oc_vectors);
  plan.depths = ceil_div(s.out[0], output_step(s, 0));
  plan.lines = ceil_div(s.out[1], output_step(s, 1));
  const int64_t blocks = ceil_div(s.group_ic(), std::min(plan.lanes, s.group_ic()));
  plan.pass = schedule.ic > 0 ? std::min(ceil_div(schedule.ic, plan.lanes), blocks) : blocks;
  plan.passes = ceil_div(blocks, plan.pass);
  const int64_t row_taps = most_taps(s, 0) * most_taps(s, 1) * s.kernel[2];
  plan.finishes_lines = plan.passes == 1 && s.group_ic() * row_taps * panel_width(plan, 0) <= kRowWeights;

  constexpr int64_t kHeavy = 2, kPanels = 4, kBands = 2;
  const int64_t bands = std::max<int64_t>(1, plan.bands()), panels = std::max<int64_t>(1, plan.panels);
  const int64_t wanted = ceil_div(worthwhile_tasks(subpixel_work(s)), std::max<int64_t>(1, s.groups));
  plan.is_heavy = s.group_oc() * s.taps() > kHeavy * s.n * s.in_size() && panels >= kPanels;
  int64_t band_parts = std::min(wanted, bands), panel_parts = std::min(ceil_div(wanted, band_parts), panels);
  if (plan.is_heavy) {
    panel_parts = std::min(wanted, panels);
    band_parts = std::clamp<int64_t>(wanted / panel_parts, 1, std::max<int64_t>(1, bands / kBands));
  }
  plan.band_chunk = schedule.bands > 0 ? std::min(schedule.bands, bands) : ceil_div(bands, band_parts);
  plan.band_chunks = ceil_div(plan.bands(), plan.band_chunk);
  plan.panel_chunk = schedule.panels > 0 ? std::min(schedule.panels, panels) : ceil_div(panels, panel_parts);
  plan.panel_chunks = ceil_div(plan.panels, plan.panel_chunk);
  plan.tasks = s.out[2] == 0 ? 0 : s.groups * plan.panel_chunks * plan.band_chunks;
  return plan;
}

int64_t subpixel_weight_size(const SubpixelPlan& plan) {
  return plan.shape.groups * plan.group_vectors * plan.lanes * plan.shape.group_ic() * plan.shape.taps();
}

void pack_subpixel_weight(const SubpixelPlan& plan, const float* weight, float* packed) {
  const Im2colConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc(), block = std::min(plan.lanes, group_ic);
  const auto pack_tap = [&](int64_t g, int64_t ic, int64_t tap, IndexRange columns) {
    for (int64_t oc = columns.begin; oc < columns.end; ++oc) {
      const int64_t filter = s.transposed ? (g * group_ic + ic) * group_oc + oc : (g * group_oc + oc) * group_ic + ic;
      *packed++ = oc < group_oc ? weight[filter * s.taps() + tap] : 0.0f;
    }
  };
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < plan.panels; ++p) {
      const IndexRange vectors = panel_vectors(plan, p);
      const IndexRange columns = {vectors.begin * plan.lanes, vectors.end * plan.lanes};
      for_each_residue(s, [&](const ResidueTaps& depth, const ResidueTaps& height, const ResidueTaps& width) {
        for (int64_t first = 0; first < group_ic; first += block) {
          for (int64_t i = 0; i < depth.count * height.count * width.count; ++i) {
            const int64_t d = depth.first + i / (height.count * width.count) * depth.step;
            const int64_t h = height.first + i / width.count % height.count * height.step;
            const int64_t w = width.first + i % width.count * width.step;
            for (int64_t ic = first; ic < std::min(first + block, group_ic); ++ic) {
              pack_tap(g, ic, (d * s.kernel[1] + h) * s.kernel[2] + w, columns);
            }
          }
        }
      });
    }
  }
}

void run_subpixel(const SubpixelPlan& plan, const TileKernels& kernels, const ConvOperands& args, int64_t task_begin,
                  int64_t task_end) {
  SubpixelTask task(plan, kernels, args);
  for (int64_t i = task_begin; i < task_end; ++i) task.run(i);
}

}  // namespace neo
