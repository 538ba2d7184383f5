#include <limits>

#include "ops/roi_align.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

// The largest number of each bin of one channel; a bin without pixels is 0.
float* pool_channel(const RoiBins& region, const float* image, int64_t width, float* y) {
  for (const IndexRange rows : region.rows) {
    for (const IndexRange columns : region.columns) {
      const bool is_empty = rows.size() <= 0 || columns.size() <= 0;
      float value = is_empty ? 0.0F : -std::numeric_limits<float>::infinity();
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float* line = image + row * width;
        for (int64_t i = columns.begin; i < columns.end; ++i) value = value < line[i] ? line[i] : value;
      }
      *y++ = value;
    }
  }
  return y;
}

}  // namespace

void run_max_roi_pool(ReferenceContext& ctx, Team& team) {
  const auto regions = max_roi_bins(ctx);
  const Tensor& x = ctx.input(0);
  const Dims& dims = x.dims();
  const auto pooled = ctx.node().ints_attr("pooled_shape");
  const Tensor& y = ctx.output(0, x.dtype(), {std::ssize(regions), dims[1], pooled[0], pooled[1]});
  const int64_t plane = dims[2] * dims[3];
  run_tasks(team, TaskSplit::of(std::ssize(regions), y.size() * 16), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const RoiBins& region = regions[static_cast<size_t>(r)];
      const float* image = x.as<float>() + region.image * dims[1] * plane;
      float* to = y.as<float>() + r * dims[1] * pooled[0] * pooled[1];
      for (int64_t c = 0; c < dims[1]; ++c) to = pool_channel(region, image + c * plane, dims[3], to);
    }
  });
}

}  // namespace neo
