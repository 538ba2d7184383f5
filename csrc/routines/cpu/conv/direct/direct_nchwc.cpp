#include "routines/cpu/conv/direct/direct_nchwc.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/conv/output_panel.h"
#include "routines/cpu/microkernel/prefetch_plan.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kMaxKernelTaps = 256;
constexpr int64_t kMaxBlock = 64;

IndexRange panel_vectors(const DirectPlan& plan, int64_t panel) {
  return even_part(plan.group_vectors, plan.panels, panel);
}

int64_t tile_rows(const DirectPlan& plan, const TileKernels& kernels, int64_t vectors) {
  const int64_t most = kernels.max_rows[vectors];
  return plan.schedule.reg_n > 0 ? std::min(plan.schedule.reg_n, most) : most;
}

// The taps of one tile: pixels [first, first + rows) of the output plane, counted along its rows.
struct TileTaps {
  TileTap taps[kMaxKernelTaps];
  int32_t offsets[kMaxKernelTaps][kTileRows];
  int64_t count = 0;

  void build(const DirectPlan& plan, int64_t first, int64_t rows) {
    const ConvShape& s = plan.shape;
    const int64_t x = plan.schedule.ic_bn;
    count = 0;
    const int64_t top = first / s.ow, left = first % s.ow;
    if (plan.contiguous) {
      taps[0] = {first * x, nullptr, 0, 0};
      count = 1;
      return;
    }
    const bool one_row = left + rows <= s.ow;
    for (int64_t i = 0; i < s.kh; ++i) {
      const int64_t ih = top * s.stride_h - s.pad_top + i * s.dilation_h;
      const bool row_inside = ih >= 0 && ih < s.ih;
      if (one_row && !row_inside) continue;
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t iw = left * s.stride_w - s.pad_left + j * s.dilation_w;
        const int64_t last = iw + (rows - 1) * s.stride_w;
        if (one_row && iw >= 0 && last < s.iw) {
          taps[count++] = {(ih * s.iw + iw) * x, nullptr, i * s.kw + j, 0};
          continue;
        }
        if (one_row && (last < 0 || iw >= s.iw)) continue;
        if (gather(plan, top, left, i, j, rows, offsets[count])) {
          taps[count] = {0, offsets[count], i * s.kw + j, 0};
          ++count;
        }
      }
    }
  }

 private:
  static bool gather(const DirectPlan& plan, int64_t top, int64_t left, int64_t i, int64_t j, int64_t rows,
                     int32_t* out) {
    const ConvShape& s = plan.shape;
    bool some = false;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t ih = top * s.stride_h - s.pad_top + i * s.dilation_h;
      const int64_t iw = left * s.stride_w - s.pad_left + j * s.dilation_w;
      const bool inside = ih >= 0 && ih < s.ih && iw >= 0 && iw < s.iw;
      out[r] = inside ? static_cast<int32_t>((ih * s.iw + iw) * plan.schedule.ic_bn) : Tile::kOutside;
      some |= inside;
      if (++left == s.ow) left = 0, ++top;
    }
    return some;
  }
};

// Prefetches the weights of the next pass or panel, which lie behind those of this one, while its tiles run.
PrefetchPlan weight_prefetch(const DirectPlan& plan, const Tile& tile, int64_t tiles, int64_t chunk) {
  if (tiles == 0 || plan.schedule.prefetched == 1) return {};
  const int64_t k = ((tile.blocks - 1) * tile.block_size + tile.last_size) * plan.shape.taps();
  const float* next = tile.weight + k * tile.weight_step;
  if (!plan.is_heavy) return PrefetchPlan::over(next, tile.weight_step, k, tiles);
  PrefetchPlan prefetched = PrefetchPlan::over(next, tile.weight_step, k, tiles * plan.chunks);
  prefetched.next += chunk * tiles * prefetched.tile;
  return prefetched;
}

// While a panel works on tile i of some, its share of that tile's part of what is read next is fetched.
void fetch_input(const DirectPlan& plan, const ConvOperands& args, int64_t tiles, int64_t i, int64_t panel, Tile& t) {
  const IndexRange pixels = even_part(args.prefetched_pixels, tiles, i);
  const int64_t floats = ceil_div(pixels.size() * plan.lanes, plan.panels);
  t.prefetched_step = ceil_div(floats, plan.lanes);
  t.prefetched_block = args.prefetched_channel - t.prefetched_step * plan.lanes;
  t.prefetched = args.prefetched + pixels.begin * plan.lanes + panel * floats;
}

// The part of a tile that depends only on image, group, panel and pass.
Tile make_tile(const DirectPlan& plan, const ConvOperands& args, int64_t image, int64_t group, IndexRange vectors,
               int64_t pass) {
  const ConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), ic = group * group_ic, ic_bn = plan.schedule.ic_bn;
  const int64_t block_size = std::min(ic_bn, group_ic), blocks = ceil_div(group_ic, block_size);
  const int64_t first_block = pass * plan.pass, last_block = std::min(blocks, first_block + plan.pass);
  Tile t;
  t.src = args.src + image * args.src_batch + (ic / ic_bn + first_block) * args.src_channel + ic % ic_bn;
  t.step = s.stride_w * ic_bn;
  t.block_size = block_size;
  t.blocks = last_block - first_block;
  t.last_size = last_block < blocks ? block_size : group_ic - (blocks - 1) * block_size;
  t.block_stride = args.src_channel;
  const int64_t first_column = (group * plan.group_vectors + vectors.begin) * plan.lanes;
  t.weight_step = vectors.size() * plan.lanes;
  t.weight = args.weight + (first_column * group_ic + first_block * block_size * t.weight_step) * s.taps();
  t.weight_taps = s.taps();
  if (args.bias && pass == 0) t.bias = args.bias + first_column;
  return t;
}

// The outputs of one pass of one image: later ones add to what the one before left there.
BlockedOutput make_output(const DirectPlan& plan, const ConvOperands& args, int64_t image, int64_t pass) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  BlockedOutput output;
  output.dst = args.dst + image * args.dst_batch;
  output.dst_block = args.dst_channel;
  if (pass > 0) {
    output.residual = output.dst;
    output.residual_block = output.dst_block;
  } else if (args.residual) {
    output.residual = args.residual + image * args.residual_batch;
    output.residual_block = args.residual_channel;
  }
  output.oc_bn = plan.schedule.oc_bn;
  const bool is_last = pass + 1 == plan.passes;
  output.lo = is_last ? args.lo : -kInfinity;
  output.hi = is_last ? args.hi : kInfinity;
  if (is_last) output.activation = args.activation;
  return output;
}

}  // namespace

const char* reject_direct(const ConvShape& s, const DirectSchedule& schedule, int64_t lanes) {
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  if (schedule.oc_bn % lanes != 0) return "the output block must be a multiple of the vector width";
  if (schedule.ic_bn < 1 || schedule.ic_bn > kMaxBlock) return "the input block must be 1 ... 64";
  if (schedule.oc_vectors < 1 || schedule.oc_vectors > kTileVectors) return "oc_vectors must be 1 ... 4";
  if (s.taps() > kMaxKernelTaps) return "the kernel has more than 256 taps";
  if (s.groups > 1) {
    if (s.oc % schedule.oc_bn != 0) return "grouped output channels must fill whole blocks";
    if (group_oc % lanes != 0) return "output channels per group must be a multiple of the vector width";
    if (group_ic % schedule.ic_bn != 0 && schedule.ic_bn % group_ic != 0) {
      return "a group's input channels must fill blocks, or several groups one block";
    }
  }
  if (s.ih * s.iw * schedule.ic_bn >= INT32_MAX) return "the input plane has too many elements";
  return nullptr;
}

int64_t direct_work(const ConvShape& s) {
  constexpr int64_t kPerWeight = 56;  // from memory
  return std::max(s.flops(), kPerWeight * s.oc * s.group_ic() * s.taps());
}

DirectPlan plan_direct(const ConvShape& s, const DirectSchedule& schedule, const TileKernels& kernels) {
  DirectPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  const int64_t padded_oc = s.groups > 1 ? s.group_oc() : ceil_div(s.oc, schedule.oc_bn) * schedule.oc_bn;
  plan.group_vectors = padded_oc / plan.lanes;
  plan.panels = ceil_div(plan.group_vectors, schedule.oc_vectors);
  plan.contiguous = s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
                    s.ow == s.iw && s.oh <= s.ih;

  const IndexRange widest = panel_vectors(plan, 0);
  const int64_t rows = tile_rows(plan, kernels, widest.size());
  const int64_t pixels = s.oh * s.ow;
  const int64_t row_tiles = s.oh * ceil_div(s.ow, rows), flat_tiles = ceil_div(pixels, rows);
  plan.flat = plan.contiguous || (schedule.line == 0 ? row_tiles * 20 > flat_tiles * 23 : schedule.line == 2);

  // About a million operations per task or more, at most 48 tasks, four tiles at least where there are as many.
  const int64_t tiles = plan.flat ? flat_tiles : row_tiles;
  const int64_t images = std::max<int64_t>(1, s.n * s.groups);
  const int64_t wanted = ceil_div(worthwhile_tasks(direct_work(s)), images);
  const int64_t units = plan.flat ? flat_tiles : s.oh;
  // Where weights are most of what is read and there are panels enough, members share these, and their pixels only such
  // that all end at once: a few panels are rarely as many for each, nor are cores as fast.
  constexpr int64_t kHeavy = 2, kPanels = 4, kParts = 36;
  plan.is_heavy = s.group_oc() * s.taps() > kHeavy * s.ih * s.iw && plan.panels >= kPanels;
  const int64_t of_panel = schedule.ic > 0 ? 1 : std::min(std::min(kParts, wanted) / plan.panels, tiles / 2);
  const int64_t splits =
      std::clamp<int64_t>(std::min(wanted, plan.is_heavy ? of_panel : tiles / 4), 1, std::max<int64_t>(1, units));
  const int64_t part = std::max<int64_t>(1, ceil_div(units, splits));
  plan.chunk =
      (schedule.chunk > 0 ? std::min(schedule.chunk, std::max<int64_t>(1, units)) : part) * (plan.flat ? rows : 1);
  plan.chunks = ceil_div(plan.flat ? pixels : s.oh, plan.chunk);
  const int64_t most_panels = std::max<int64_t>(1, plan.panels);
  plan.panel_chunk = schedule.panels > 0
                         ? std::min(schedule.panels, most_panels)
                         : ceil_div(plan.panels, std::clamp<int64_t>(plan.is_heavy ? wanted : ceil_div(wanted, splits),
                                                                     1, most_panels));
  plan.panel_chunks = plan.panels == 0 ? 0 : ceil_div(plan.panels, plan.panel_chunk);
  const int64_t blocks = ceil_div(s.group_ic(), std::min(schedule.ic_bn, s.group_ic()));
  plan.pass = schedule.ic > 0 ? std::min(ceil_div(schedule.ic, schedule.ic_bn), blocks) : blocks;
  plan.passes = ceil_div(blocks, plan.pass);
  plan.tasks = s.n * s.groups * plan.chunks * plan.panel_chunks;
  return plan;
}

DirectPlan direct_run(DirectPlan plan, int64_t pixels) {
  plan.shape.n = plan.shape.ih = plan.shape.oh = 1;
  plan.shape.iw = plan.shape.ow = plan.chunk = pixels;
  plan.panel_chunk = plan.panels;
  plan.chunks = plan.panel_chunks = plan.tasks = 1;
  return plan;
}

int64_t direct_weight_size(const DirectPlan& plan) {
  return plan.shape.groups * plan.group_vectors * plan.lanes * plan.shape.group_ic() * plan.shape.taps();
}

void pack_direct_weight(const DirectPlan& plan, const float* weight, float* packed) {
  const ConvShape& s = plan.shape;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc(), taps = s.taps();
  const int64_t block = std::min(plan.schedule.ic_bn, group_ic);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < plan.panels; ++p) {
      const IndexRange vectors = panel_vectors(plan, p);
      const int64_t columns = vectors.size() * plan.lanes;
      for (int64_t ic0 = 0; ic0 < group_ic; ic0 += block) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          for (int64_t ic = ic0; ic < std::min(ic0 + block, group_ic); ++ic) {
            for (int64_t c = 0; c < columns; ++c) {
              const int64_t oc = vectors.begin * plan.lanes + c;
              *packed++ = oc < group_oc ? weight[((g * group_oc + oc) * group_ic + ic) * taps + tap] : 0.0f;
            }
          }
        }
      }
    }
  }
}

void run_direct(const DirectPlan& plan, const TileKernels& kernels, const ConvOperands& args, int64_t task_begin,
                int64_t task_end) {
  const ConvShape& s = plan.shape;
  TileTaps taps;
  alignas(64) float scratch[kTileRows * kMaxBlock];
  for (int64_t task = task_begin; task < task_end; ++task) {
    // Tasks that share pixels are neighbours: what one member of a team writes it mostly reads itself in the next step,
    // while weights, which nobody writes, may be read by all. Where those are most, tasks that share them are.
    const int64_t per_image = plan.panel_chunks * s.groups * plan.chunks, of_image = task % per_image;
    const int64_t inner = plan.is_heavy ? plan.chunks : plan.panel_chunks * s.groups;
    const int64_t chunk = plan.is_heavy ? of_image % inner : of_image / inner;
    const int64_t weights = plan.is_heavy ? of_image / inner : of_image % inner;
    const int64_t panels = weights % plan.panel_chunks, group = weights / plan.panel_chunks;
    const int64_t image = task / per_image;
    const int64_t first_panel = panels * plan.panel_chunk;
    const int64_t panel_count = std::min(plan.panel_chunk, plan.panels - first_panel);
    const int64_t lines = plan.flat ? 1 : std::min(plan.chunk, s.oh - chunk * plan.chunk);
    // Every panel of one line after the other, or every line of one panel.
    const bool lines_outside = plan.schedule.order == 1;
    const int64_t outer = lines_outside ? lines : 1, lines_inside = lines_outside ? 1 : lines;
    for (int64_t part = 0; part < outer * panel_count * plan.passes; ++part) {
      const int64_t pass = part % plan.passes, p = first_panel + part / plan.passes % panel_count;
      const IndexRange vectors = panel_vectors(plan, p);
      const int64_t first_oc = vectors.begin * plan.lanes;
      const OutputPanel panel =
          make_output_panel(make_output(plan, args, image, pass), group * s.group_oc() + first_oc, vectors.size(),
                            plan.lanes, std::min(vectors.size() * plan.lanes, s.group_oc() - first_oc));
      Tile tile = make_tile(plan, args, image, group, vectors, pass);
      tile.taps = taps.taps;
      tile.scratch = scratch;
      const int64_t most = tile_rows(plan, kernels, vectors.size());
      PrefetchPlan prefetched;
      if (p + 1 < plan.panels || pass + 1 < plan.passes) {
        const int64_t tiles = plan.flat ? ceil_div(plan.chunk, most) : lines_inside * ceil_div(s.ow, most);
        prefetched = weight_prefetch(plan, tile, tiles, chunk);
      }
      const int64_t first_line = lines_outside ? part / (plan.passes * panel_count) : 0;
      for (int64_t line = first_line; line < first_line + lines_inside; ++line) {
        const int64_t first = plan.flat ? chunk * plan.chunk : (chunk * plan.chunk + line) * s.ow;
        const int64_t pixels = plan.flat ? std::min(plan.chunk, s.oh * s.ow - first) : s.ow;
        const int64_t tiles = ceil_div(pixels, most);
        int64_t inactive = 0;
        for (int64_t i = 0; i < tiles; ++i) {
          const IndexRange part_of_line = even_part(pixels, tiles, i);
          taps.build(plan, first + part_of_line.begin, part_of_line.size());
          tile.tap_count = taps.count;
          // Panels after the first find them near.
          tile.fetches_rows = taps.count == 1 && p == first_panel;
          if (args.prefetched) {
            if (plan.passes == 1) fetch_input(plan, args, tiles, i, p, tile);
          } else {
            prefetched.give(tile);
          }
          run_output_tile(kernels.rows[vectors.size()][part_of_line.size()], kernels, tile, panel,
                          first + part_of_line.begin, part_of_line.size());
          if (i + 1 == tiles || (i + 1) % kTilesToActivate == 0) {
            activate_output(panel, first + inactive, part_of_line.end - inactive);
            inactive = part_of_line.end;
          }
        }
      }
    }
  }
}

}  // namespace neo
