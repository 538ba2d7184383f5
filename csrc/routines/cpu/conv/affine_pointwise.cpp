#include "routines/cpu/conv/affine_pointwise.h"

#include <algorithm>

#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

DirectPlan plan_run(const ConvShape& shape, int64_t pixels, const DirectSchedule& schedule,
                    const TileKernels& kernels) {
  ConvShape run = shape;
  run.n = 1;
  run.ih = run.oh = 1;
  run.iw = run.ow = pixels;
  return plan_direct(run, schedule, kernels);
}

}  // namespace

AffinePointwisePlan plan_affine_pointwise(const ConvShape& shape, const DirectSchedule& schedule,
                                          const TileKernels& kernels, int64_t wanted, int64_t cache_bytes) {
  AffinePointwisePlan plan;
  plan.shape = shape;
  plan.lanes = kernels.lanes;
  plan.blocks = ceil_div(shape.ic, plan.lanes);
  const int64_t pixels = shape.oh * shape.ow, rows = std::max<int64_t>(1, schedule.reg_n);
  if (pixels == 0 || shape.n == 0) return plan;
  const int64_t per_image = ceil_div(std::max<int64_t>(1, wanted), shape.n);
  const int64_t fits = cache_bytes / (plan.blocks * plan.lanes * static_cast<int64_t>(sizeof(float)));
  const int64_t most = std::max(fits / rows * rows, rows);
  plan.chunk = std::min({ceil_div(ceil_div(pixels, per_image), rows) * rows, most, pixels});
  plan.chunks = ceil_div(pixels, plan.chunk);
  // An odd number of lines, so that blocks do not fall into the same sets of the first-level cache.
  plan.block_stride = (plan.chunk | 1) * plan.lanes;
  plan.workspace_size = plan.blocks * plan.block_stride;
  plan.tasks = shape.n * plan.chunks;
  plan.whole = plan_run(shape, plan.chunk, schedule, kernels);
  plan.rest = plan_run(shape, pixels - (plan.chunks - 1) * plan.chunk, schedule, kernels);
  return plan;
}

void run_affine_pointwise(const AffinePointwisePlan& plan, const TileKernels& kernels, AffineKernel prepare,
                          const AffineOperands& affine, const ConvOperands& args, int64_t task_begin, int64_t task_end,
                          int workspace) {
  float* prepared = args.workspace + workspace * plan.workspace_size;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t image = task / plan.chunks, chunk = task % plan.chunks;
    const int64_t first = chunk * plan.chunk * plan.lanes;
    const DirectPlan& product = chunk + 1 == plan.chunks ? plan.rest : plan.whole;
    AffineRows rows;
    rows.src = args.src + image * args.src_batch + first;
    rows.src_block = args.src_channel;
    rows.dst = prepared;
    rows.dst_block = plan.block_stride;
    rows.blocks = plan.blocks;
    rows.pixels = product.shape.ow;
    if (affine.scale) rows.scale = affine.scale + image * affine.scale_batch;
    rows.shift = affine.shift;
    rows.lo = affine.lo;
    rows.hi = affine.hi;
    prepare(rows);
    if (affine.activation) {
      for (int64_t b = 0; b < plan.blocks; ++b) {
        affine.activation(prepared + b * plan.block_stride, rows.pixels * plan.lanes);
      }
    }
    ConvOperands run = args;
    run.src = prepared;
    run.src_batch = 0;
    run.src_channel = plan.block_stride;
    run.dst = args.dst + image * args.dst_batch + first;
    if (args.residual) run.residual = args.residual + image * args.residual_batch + first;
    run_direct(product, kernels, run, 0, product.tasks);
  }
}

}  // namespace neo
