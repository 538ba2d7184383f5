#include "routines/cpu/conv/winograd/winograd_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "routines/cpu/conv/winograd/winograd_fold.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/patterns/winograd_form.h"

namespace neo {
namespace {

// Cycles of the transforms of one vector of channels, per point and axis, with those that each pair of points adds; a
// cycle is one vector FMA.
constexpr double kInputCycles = 2.2, kInputPairCycles = 0.7;
constexpr double kOutputCycles = 1.8, kOutputPairCycles = 0.5;
// Cycles of the products of four tiles at one point with weights that are packed as taps; and where the core starts two
// FMAs per cycle, which the sums of taps do not follow.
constexpr double kRawCycles = 5.5, kWideRawCycles = 8;
// Cycles of the samples of one channel and row that a folded pixel has.
constexpr double kFoldCycles = 1.5;
// Fraction of reads from beyond the private cache that computing does not hide.
constexpr double kExposed = 0.5;

// The work of the busiest member of a team.
struct MemberShare {
  double blocks = 0;  // whose input it transforms
  double panels = 0;  // that it multiplies, of all its blocks

  static MemberShare of(const WinogradPlan& plan, int64_t threads) {
    const auto tasks = static_cast<double>(ceil_div(plan.tasks, threads));
    const auto parts = static_cast<double>(plan.panel_parts);
    return {std::ceil(tasks / parts), tasks * static_cast<double>(plan.panels) / parts};
  }
};

// The busiest member's arithmetic, as microseconds.
double compute_us(const WinogradPlan& plan, const MemberShare& share, const TileKernels& kernels,
                  const Target& target) {
  // Relative speed with a panel that the first-level cache does not hold beside the rows.
  constexpr double kFarPanel = 0.93;
  const double per_block = static_cast<double>(plan.tiles) / static_cast<double>(std::max<int64_t>(plan.blocks, 1));
  const double vectors = static_cast<double>(plan.oc_vectors) / static_cast<double>(plan.panels);
  const auto most = static_cast<double>(kernels.max_rows[ceil_div(plan.oc_vectors, plan.panels)]);
  const double rows = per_block / std::ceil(per_block / most);
  const auto ic = static_cast<double>(plan.shape.ic);
  const double clocks = 2 * static_cast<double>(plan.lanes) / (target.gflops_per_thread * 1e3);
  // The points of a block over all its tiles: those at the end of an axis may have fewer.
  const double block_points =
      static_cast<double>(plan.products) / static_cast<double>(std::max<int64_t>(plan.blocks, 1));
  double efficiency = tile_efficiency(rows, vectors, 0, target) * 0.96 * ic / (ic + 3);
  if (ic * vectors * static_cast<double>(plan.lanes) * 4 >
      0.75 * static_cast<double>(private_caches(target).l1_bytes)) {
    efficiency *= kFarPanel;
  }
  double products = share.panels * block_points * ic * vectors / efficiency;
  if (plan.is_raw()) {
    const double groups = std::ceil(per_block / kWinogradRawTiles);
    const double raw_cycles = has_wide_fmas(target) ? kWideRawCycles : kRawCycles;
    products = share.panels * groups * static_cast<double>(plan.points) * raw_cycles * ic * vectors;
  }
  const auto pairs = static_cast<double>(std::max(plan.h.pairs(), plan.w.pairs()));
  const double transformed =
      share.blocks * (kInputCycles + kInputPairCycles * pairs) * static_cast<double>(plan.ic_vectors) +
      share.panels * (kOutputCycles + kOutputPairCycles * pairs) * vectors;
  const double transforms = (plan.is_plane() ? 2 : 1) * block_points * transformed;
  // Folding writes whole pixels of zeros, then two or four samples at a time.
  const double pixels =
      static_cast<double>(plan.run_columns(plan.run) * plan.h.points()) / static_cast<double>(plan.run);
  const auto pieces = static_cast<double>(plan.source.ic * plan.fold);
  const double folded = plan.fold > 1 ? share.blocks * per_block * pixels * (1 + kFoldCycles * pieces) : 0;
  return (products + transforms + folded) * clocks;
}

// Bytes of weights that the busiest member reads from beyond its private cache, more than its part of them: other
// members read them too, or it does so again for another block.
double weights_again(const WinogradPlan& plan, const MemberShare& share, double speedup, const Target& target) {
  const double weights = static_cast<double>(winograd_weight_size(plan)) * 4;
  const double all = weights * share.panels / static_cast<double>(plan.panels);
  const double once = all / std::max(share.blocks, 1.0);
  return std::max(
      0.0, (once > 0.75 * static_cast<double>(private_caches(target).l2_bytes) ? all : once) - weights / speedup);
}

// Bytes of what is transformed that the private cache does not keep: they leave it once and return for each panel.
double input_again(const WinogradPlan& plan, const MemberShare& share, const Target& target) {
  const double kept = 0.75 * static_cast<double>(private_caches(target).l2_bytes);
  return std::max(0.0, static_cast<double>(plan.workspace_size) * 4 - kept) * (share.blocks + share.panels);
}

double again_us(const WinogradPlan& plan, const MemberShare& share, double speedup, const Target& target) {
  return (weights_again(plan, share, speedup, target) + input_again(plan, share, target)) / (target.memory_gbps * 1e3);
}

// Time to write the transformed input of two axes, whose lines weights have driven from the private cache meanwhile.
double store_us(const WinogradPlan& plan, const MemberShare& share, const Target& target) {
  constexpr double kStoreCycles = 22;  // per vector
  if (!plan.is_plane()) return 0;
  const double block_points =
      static_cast<double>(plan.products) / static_cast<double>(std::max<int64_t>(plan.blocks, 1));
  const double stored = share.blocks * block_points * static_cast<double>(plan.ic_vectors);
  return kStoreCycles * stored * 2 * static_cast<double>(plan.lanes) / (target.gflops_per_thread * 1e3);
}

// Tiles per task. Transformed tiles should stay in the private cache; but weights that do not, or that arrive from
// memory for few tiles, are worth more tiles: small weights where those still stay there, large ones always.
int64_t block_of(const WinogradPlan& plan, const TileKernels& kernels, const Target& target) {
  constexpr int64_t kFew = 14, kMany = 28;
  const PrivateCaches caches = private_caches(target);
  const int64_t product = plan.is_in_place ? 0 : plan.product_row;
  const int64_t workspace = plan.points * (plan.tile_stride + product) * 4 * kMany;
  const int64_t weights = winograd_weight_size(plan) * 4;
  const int64_t small = workspace > caches.l2_bytes ? 6 * caches.l2_bytes : caches.l2_bytes / 2;
  const bool many = weights > small || workspace * 5 <= caches.l2_bytes * 2;
  const int64_t rows = kernels.max_rows[plan.panel_width / plan.lanes];
  return ceil_div(many ? kMany : kFew, rows) * rows;
}

// The block, or a smaller one of which each member of a team gets as many.
int64_t shared_block(const WinogradPlan& plan, int64_t team) {
  if (plan.blocks <= 1 || plan.blocks >= 8 * team) return plan.schedule.block;
  return ceil_div(plan.tiles, ceil_div(plan.blocks, team) * team);
}

// Panels of the widest register block, or so many more that the tasks of few blocks are shared evenly by a team.
int64_t panels_of(const WinogradPlan& plan, int64_t team) {
  const int64_t fewest = ceil_div(plan.oc_vectors, kTileVectors);
  if (plan.tasks >= 8 * team || plan.tasks % team == 0) return fewest;
  return std::min(ceil_div(fewest, team) * team, plan.oc_vectors);
}

// Where a plan has fewer tasks than a large team has members, and panels are left to share: one for each, or nearly.
WinogradPlan with_parts_for(const ConvShape& shape, WinogradSchedule schedule, const TileKernels& kernels,
                            int64_t team) {
  const WinogradPlan plan = plan_winograd(shape, schedule, kernels.lanes);
  const int64_t parts = plan.blocks == 0 ? 0 : std::min(plan.panels, team / plan.blocks);
  if (parts <= plan.panel_parts) return plan;
  schedule.parts = parts;
  return plan_winograd(shape, schedule, kernels.lanes);
}

// The plan with one of these blocks, and panels as wide as can be or narrower ones, of which the first-level cache
// holds more, that is least for the busiest member.
WinogradPlan least_plan(const ConvShape& shape, int64_t tile, std::initializer_list<int64_t> blocks,
                        const TileKernels& kernels, const Target& target) {
  constexpr int64_t kNarrow = 2;
  const int64_t oc_vectors = ceil_div(shape.oc, kernels.lanes), team = target.threads;
  WinogradSchedule s;
  s.tile = tile;
  std::optional<std::pair<double, WinogradPlan>> best;
  for (const int64_t block : blocks) {
    s.panels = ceil_div(oc_vectors, kTileVectors);
    s.block = block;
    s.block = shared_block(plan_winograd(shape, s, kernels.lanes), team);
    const int64_t widest = panels_of(plan_winograd(shape, s, kernels.lanes), team);
    const int64_t narrow = std::min(ceil_div(ceil_div(oc_vectors, kNarrow), team) * team, oc_vectors);
    for (const int64_t panels : {widest, std::max(widest, narrow)}) {
      s.panels = panels;
      const WinogradPlan plan = with_parts_for(shape, s, kernels, team);
      const MemberShare share = MemberShare::of(plan, team);
      const double speedup = static_cast<double>(std::min<int64_t>(plan.tasks, team));
      const double us = compute_us(plan, share, kernels, target) + store_us(plan, share, target) +
                        again_us(plan, share, std::max(speedup, 1.0), target);
      if (!best || us < best->first) best.emplace(us, plan);
    }
  }
  return best->second;
}

// Blocks as the private cache has it, or larger ones, which read weights less often; and where that leaves fewer blocks
// than members, one for each, which transforms no tile twice but reads all weights: whether that pays depends on the
// shared cache.
std::vector<WinogradPlan> plans_for(const ConvShape& shape, int64_t tile, const WinogradTiles& kernels,
                                    const Target& target) {
  constexpr int64_t kLarge = 56;
  WinogradSchedule schedule;
  schedule.tile = tile;
  schedule.panels = ceil_div(shape.oc, kTileVectors * kernels.tiles.lanes);
  const WinogradPlan first = plan_winograd(shape, schedule, kernels.tiles.lanes);
  std::vector<WinogradPlan> plans = {
      least_plan(shape, tile, {block_of(first, kernels.tiles, target), kLarge}, kernels.tiles, target)};
  const int64_t team = std::min<int64_t>(target.threads, first.tiles);
  if (plans.front().blocks < team) {
    plans.push_back(least_plan(shape, tile, {ceil_div(first.tiles, team)}, kernels.tiles, target));
  }
  // Weights that arrive from memory for few tiles, as taps.
  constexpr int64_t kFewTiles = 16;
  if (kernels.transforms.multiply_raw && takes_raw_weights(shape, tile) && first.tiles <= kFewTiles) {
    schedule.raw = 1;
    schedule.panels = first.oc_vectors;
    schedule.block = kFewTiles;  // also where a batch comes with more
    plans.push_back(with_parts_for(shape, schedule, kernels.tiles, target.threads));
  }
  return plans;
}

// Microseconds of a layer's reads and writes beyond the private cache.
struct Streams {
  double weights = 0;  // once from memory, in order
  double rest = 0;     // weights from the shared cache again; input and output

  static Streams of(const WinogradPlan& plan, double data, const MemberShare& share, double speedup,
                    const Target& target);

  double sum() const { return weights + rest; }
  // Prefetching hides more of what is read in order.
  double exposed() const { return 0.15 * weights + kExposed * rest; }
};

Streams Streams::of(const WinogradPlan& plan, double data, const MemberShare& share, double speedup,
                    const Target& target) {
  constexpr double kCacheBytes = 4e6;
  constexpr double kAlone = 0.8;  // of the target's figure, which takes all threads
  const double memory = target.memory_gbps * std::min(kAlone * speedup, 1.0);
  const double weights = static_cast<double>(winograd_weight_size(plan)) * 4;
  Streams us;
  us.weights = weights / (memory * 1e3);
  us.rest = data / ((data > kCacheBytes ? memory : target.l2_gbps * speedup) * 1e3);
  us.rest += again_us(plan, share, speedup, target);
  return us;
}

}  // namespace

WinogradTiles WinogradTiles::of(const Target& target) {
  return {NEO_PICK_TIER(target.isa, winograd_kernels)(), tile_kernels_of(target.isa)};
}

WinogradSchedule winograd_schedule(const Schedule& schedule) {
  return {schedule.at("tile"),         schedule.at("panels"),     schedule.at("block"),
          value_of(schedule, "parts"), value_of(schedule, "run"), value_of(schedule, "raw")};
}

Space winograd_space(const ConvShape& shape, const WinogradTiles& kernels, const Target& target) {
  constexpr int64_t kMin = 4, kMax = 112;
  const int64_t lanes = target.lanes(), oc_vectors = ceil_div(shape.oc, lanes);
  const std::vector<int64_t> tiles = offered_winograd_tiles(fold_shape(shape), WinogradLast::Smaller);
  std::vector<int64_t> panels, blocks, shares = {0, 1, 2, 4};
  const auto add = [](std::vector<int64_t>& to, int64_t value) {
    if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
  };
  for (int64_t v = kTileVectors; v >= 1; --v) add(panels, ceil_div(oc_vectors, v));
  const auto blocks_of = [&](int64_t tile) {
    const std::vector<WinogradPlan> plans = plans_for(shape, tile, kernels, target);
    const WinogradPlan& chosen = plans.front();
    std::vector<int64_t> sizes;
    for (const WinogradPlan& plan : plans) add(sizes, plan.schedule.block);
    for (int64_t parts = 1; parts <= chosen.tiles; parts += std::max<int64_t>(1, parts / 3)) {
      const int64_t size = ceil_div(chosen.tiles, parts);
      if (size > kMax || (size < kMin && parts > 1)) continue;
      const auto makes_as_many = [&](const WinogradPlan& plan) { return ceil_div(plan.tiles, size) == plan.blocks; };
      if (std::none_of(plans.begin(), plans.end(), makes_as_many)) add(sizes, size);
    }
    return sizes;
  };
  std::vector<std::vector<int64_t>> offered;
  std::vector<WinogradPlan> raw;
  for (const int64_t tile : tiles) {
    for (const WinogradPlan& plan : plans_for(shape, tile, kernels, target)) {
      add(panels, plan.panels);
      add(shares, plan.schedule.parts);
      if (plan.is_raw()) raw.push_back(plan);
    }
    offered.push_back(blocks_of(tile));
    for (const int64_t block : offered.back()) add(blocks, block);
  }
  const auto has_raw = [&](const WinogradSchedule& s) {
    return std::any_of(raw.begin(), raw.end(), [&](const WinogradPlan& plan) {
      return s.tile == plan.schedule.tile && s.panels == plan.panels && s.block == plan.schedule.block;
    });
  };
  const auto allows = [&](std::span<const int64_t> v) {
    const auto tile = static_cast<size_t>(std::find(tiles.begin(), tiles.end(), v[0]) - tiles.begin());
    if (std::find(offered[tile].begin(), offered[tile].end(), v[2]) == offered[tile].end()) return false;
    const WinogradSchedule s = {v[0], v[1], v[2], v[3], v[4], v[5]};
    if (s.raw > 0 && !has_raw(s)) return false;
    WinogradSchedule automatic = s;
    automatic.parts = 0;
    const WinogradPlan plan = plan_winograd(shape, s, lanes);
    if (s.parts > 0 && (s.parts > plan.panels || plan_winograd(shape, automatic, lanes).panel_parts == s.parts)) {
      return false;
    }
    return s.run == 0 || (plan.is_plane() && s.run <= plan.w.tiles);
  };
  return Space({{"tile", tiles},
                {"panels", panels},
                {"block", blocks},
                {"parts", shares},
                {"run", {0, 1, 2, 8}},
                {"raw", {0, 1}}},
               allows);
}

std::vector<WinogradChoice> winograd_choices(const ConvShape& shape, const WinogradTiles& kernels,
                                             const Target& target) {
  std::vector<WinogradChoice> choices;
  for (int64_t tile : offered_winograd_tiles(fold_shape(shape), WinogradLast::Smaller)) {
    for (const WinogradPlan& plan : plans_for(shape, tile, kernels, target)) {
      Schedule schedule = {{"tile", tile}, {"panels", plan.panels}, {"block", plan.schedule.block}};
      if (plan.schedule.parts > 0) schedule["parts"] = plan.schedule.parts;
      if (plan.is_raw()) schedule["raw"] = 1;
      choices.push_back({std::move(schedule), plan});
    }
  }
  return choices;
}

TaskSplit winograd_split(const WinogradPlan& plan, int threads) {
  return TaskSplit::of(plan.tasks, plan.shape.flops(), plan.workspace_size * 4, threads);
}

LoopNest winograd_loops(const WinogradPlan& plan, double data_bytes, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const ConvShape& s = plan.shape;
  const double per_block = real(plan.tiles) / real(std::max<int64_t>(1, plan.blocks));
  const double most = real(kernels.max_rows[ceil_div(plan.oc_vectors, plan.panels)]);
  const double points = real(plan.points), lanes = real(plan.lanes);
  const double panels = real(plan.panels) / real(std::max<int64_t>(1, plan.panel_parts));
  LoopNest l;
  l.rows = per_block / std::ceil(per_block / most);
  l.full_rows = most;
  l.vectors = real(plan.oc_vectors) / real(plan.panels);
  l.flops = 2 * real(plan.products) * real(s.ic) * real(plan.oc_vectors) * lanes;
  l.reduction = l.inner = real(s.ic);
  l.block_bytes = real(s.ic) * l.vectors * lanes * 4;
  l.pixel_bytes = real(s.ic) * l.rows * 4;
  l.weights = real(winograd_weight_size(plan)) * 4;
  l.inputs = real(s.n * plan.source.ic * plan.source.ih * plan.source.iw) * 4;
  l.outputs = data_bytes - l.inputs;
  l.tasks = real(plan.tasks);
  l.task_inputs = per_block * points * real(plan.tile_stride) * 4;
  l.task_weights = l.weights * panels / real(plan.panels);
  l.task_outputs = per_block * points * real(plan.product_row) * 4;
  l.input_reads = l.task_inputs * real(plan.blocks) * real(plan.panels);
  l.weight_reads = l.weights * real(plan.blocks);
  l.sweep_bytes = l.task_inputs + l.task_weights;
  l.moved = (real(plan.is_plane() ? 2 : 1)) * real(plan.products) * real(plan.ic_vectors + plan.oc_vectors) * lanes;
  l.workspace = real(plan.workspace_size) * 4;
  l.order = real(plan.run);
  l.tile = real(plan.schedule.tile);
  return l;
}

double winograd_us(const WinogradPlan& plan, double data_bytes, const TileKernels& kernels, const Target& target) {
  constexpr double kStepUs = 0.4;
  constexpr double kForkUs = 1.5;
  const TaskSplit split = winograd_split(plan, target.threads);
  double speedup = 1;
  if (!split.serial && target.threads > 1) {
    const auto tasks = static_cast<double>(plan.tasks);
    speedup = tasks / std::ceil(tasks / target.threads);
  }
  const MemberShare share = MemberShare::of(plan, split.serial ? 1 : target.threads);
  const double compute = compute_us(plan, share, kernels, target);
  const Streams streams = Streams::of(plan, data_bytes, share, speedup, target);
  return kStepUs + (speedup > 1 ? kForkUs : 0) + std::max(compute + streams.exposed(), streams.sum());
}

}  // namespace neo
