#include "routines/cpu/conv/pointwise/pointwise_with_prologue.h"

#include <algorithm>

#include "base/int_math.h"

namespace neo {
namespace {

constexpr int64_t kMaxTiles = 8;  // of a run

}  // namespace

PointwiseWithProloguePlan plan_pointwise_with_prologue(const ConvShape& shape, const AffineSchedule& schedule,
                                                       const AffineKernels& kernels) {
  PointwiseWithProloguePlan plan;
  plan.shape = shape;
  plan.lanes = kernels.tiles->lanes;
  plan.blocks = ceil_div(shape.ic, plan.lanes);
  const int64_t pixels = shape.oh * shape.ow, rows = std::max<int64_t>(1, schedule.product.reg_n);
  plan.product = plan_direct(shape, schedule.product, *kernels.tiles);
  if (pixels == 0 || shape.n == 0) return plan;
  int64_t parts = ceil_div(pixels, rows);
  const int64_t fits = schedule.cache_bytes / (plan.blocks * plan.lanes * static_cast<int64_t>(sizeof(float)));
  plan.run = std::clamp(fits / rows, int64_t{1}, kMaxTiles) * rows;
  if (schedule.strassen > 0) {
    plan.strassen = plan_strassen(shape.ic, shape.oc, plan.lanes, *kernels.strassen, schedule.strassen);
    if (plan.strassen.is_short) {
      plan.run = round_up(std::min(plan.run, 2 * plan.strassen.half_run()), plan.strassen.parts());
    } else {
      // Whole tiles of all halves or quarters; none of a part is narrow.
      const int64_t tiles = plan.strassen.parts() * plan.strassen.max_rows;
      plan.run = std::clamp(fits / tiles, int64_t{1}, ceil_div(kMaxTiles * rows, tiles)) * tiles;
      parts = std::max<int64_t>(1, pixels / fewest_strassen_pixels(plan.strassen));
    }
    plan.strassen = plan_strassen(shape.ic, shape.oc, plan.lanes, *kernels.strassen, schedule.strassen, plan.run);
  }
  plan.parts = std::clamp<int64_t>(ceil_div(schedule.tasks, shape.n), 1, parts);
  plan.runs = ceil_div(ceil_div(pixels, plan.parts), plan.run);
  plan.tasks = shape.n * plan.parts * plan.runs;
  // An odd number of lines, so that blocks do not fall into the same sets of the first-level cache.
  plan.block_stride = (plan.run | 1) * plan.lanes;
  plan.workspace_size = plan.blocks * plan.block_stride + plan.strassen.workspace_size;
  return plan;
}

void run_pointwise_with_prologue(const PointwiseWithProloguePlan& plan, const AffineKernels& kernels,
                                 const AffineOperands& affine, const ConvOperands& args, int64_t task_begin,
                                 int64_t task_end, float* workspace) {
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t i = task % plan.runs, of_all = task / plan.runs, image = of_all / plan.parts;
    const IndexRange part = even_part(plan.shape.oh * plan.shape.ow, plan.parts, of_all % plan.parts);
    const IndexRange run = plan.strassen.levels > 0 ? strassen_run(plan.strassen, part.size(), plan.runs, i)
                                                    : even_part(part.size(), plan.runs, i);
    if (run.size() == 0) continue;
    AffineRows rows;
    rows.src_block = args.src_channel;
    rows.dst = workspace;
    rows.dst_block = plan.block_stride;
    rows.blocks = plan.blocks;
    if (affine.scale) rows.scale = affine.scale + image * affine.scale_batch;
    rows.shift = affine.shift;
    rows.lo = affine.lo;
    rows.hi = affine.hi;
    const int64_t first = (part.begin + run.begin) * plan.lanes;
    rows.src = args.src + image * args.src_batch + first;
    rows.pixels = run.size();
    kernels.prepare(rows);
    for (int64_t b = 0; b < plan.blocks && affine.activation; ++b) {
      affine.activation(workspace + b * plan.block_stride, rows.pixels * plan.lanes);
    }
    ConvOperands product = with_later(args, plan.tasks, task);
    product.src = workspace;
    product.src_batch = 0;
    product.src_channel = plan.block_stride;
    product.dst = args.dst + image * args.dst_batch + first;
    if (args.residual) product.residual = args.residual + image * args.residual_batch + first;
    // While the first run reads the weights from afar, they are what is prefetched; then the next run's inputs.
    if (i > 0 && i + 1 < plan.runs) product.prefetched = rows.src + rows.pixels * plan.lanes;
    product.prefetched_channel = args.src_channel;
    product.prefetched_pixels = run.size();
    if (plan.strassen.levels > 0) {
      float* sums = workspace + plan.blocks * plan.block_stride;
      run_strassen(plan.strassen, *kernels.strassen, product, run.size(), sums);
    } else {
      run_direct(direct_run(plan.product, run.size()), *kernels.tiles, product, 0, 1);
    }
  }
}

}  // namespace neo
