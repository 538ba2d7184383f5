#include "ops/grid.h"

#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

enum class SampleMode : uint8_t { Nearest, Linear, Cubic };
enum class Padding : uint8_t { Zeros, Border, Reflection };

struct GridAttrs {
  explicit GridAttrs(const Node& node) : align_corners(node.int_attr("align_corners", 0) != 0) {
    const std::string text = node.string_attr("mode", "linear");
    NEO_CHECK(text == "nearest" || text == "linear" || text == "cubic", Model, node.op,
              "mode must be nearest, linear or cubic. Got \"", text, "\" - at ", node.place());
    mode = text == "nearest" ? SampleMode::Nearest : text == "linear" ? SampleMode::Linear : SampleMode::Cubic;
    const std::string pad = node.string_attr("padding_mode", "zeros");
    NEO_CHECK(pad == "zeros" || pad == "border" || pad == "reflection", Model, node.op,
              "padding_mode must be zeros, border or reflection. Got \"", pad, "\" - at ", node.place());
    padding = pad == "zeros" ? Padding::Zeros : pad == "border" ? Padding::Border : Padding::Reflection;
  }
  bool align_corners;
  SampleMode mode;
  Padding padding;
};

void infer_grid_sample(InferContext& ctx) {
  const GridAttrs attrs(ctx.node());
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape& x = ctx.shape(0);
  const Shape& grid = ctx.shape(1);
  ctx.check(x.rank() >= 3 && grid.rank() == x.rank(),
            str("X and grid must have one rank of at least 3. Got ", x.to_string(), " and ", grid.to_string()));
  ctx.require_equal(grid[grid.rank() - 1], x.rank() - 2,
                    "the last axis of grid must have one coordinate per spatial axis");
  std::vector<Dim> dims = grid.dims();
  dims.pop_back();
  dims[0] = unify(ctx, x[0], grid[0], "X and grid must have one batch size");
  dims.insert(dims.begin() + 1, x[1]);
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0) || !std::isfinite(x)) return low;
  if (x >= low && x <= high) return x;
  const double distance = x < low ? low - x : x - high;
  const double periods = std::floor(distance / range);
  const double rest = distance - periods * range;
  const bool even = std::fmod(periods, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

struct GridAxis {
  int64_t size;
  double low;  // borders that reflect
  double high;
};

GridAxis grid_axis(int64_t size, bool align_corners) {
  const auto extent = static_cast<double>(size);
  return align_corners ? GridAxis{size, 0, extent - 1} : GridAxis{size, -0.5, extent - 0.5};
}

// The pixel at a whole position, -1 where zeros are read.
int64_t pixel(Padding padding, const GridAxis& axis, double position) {
  const auto last = static_cast<double>(axis.size - 1);
  switch (padding) {
    case Padding::Zeros:
      return position >= 0 && position <= last ? static_cast<int64_t>(position) : -1;
    case Padding::Border:
      return static_cast<int64_t>(std::clamp(position, 0.0, last));
    case Padding::Reflection:
      return static_cast<int64_t>(std::clamp(reflect(position, axis.low, axis.high), 0.0, last));
  }
  return -1;
}

// The normalized coordinate in pixels, computed in the grid's own precision as PyTorch's ties demand.
template <class T>
double denormalize(double normalized, int64_t size, bool align_corners) {
  const T n = static_cast<T>(normalized) + T(1);
  const T extent = static_cast<T>(size);
  return static_cast<double>(align_corners ? n / T(2) * (extent - T(1)) : (n * extent - T(1)) / T(2));
}

struct AxisTaps {
  int count = 0;
  int64_t positions[4];
  double weights[4];
};

AxisTaps sample_axis(const GridAttrs& attrs, const GridAxis& axis, double x) {
  if (attrs.mode == SampleMode::Nearest) x = std::nearbyint(x);
  if (std::isnan(x)) x = axis.low - 8;
  if (x < axis.low || x > axis.high) {
    // Taps of the cubic kernel are clamped one by one, as PyTorch has it; for fewer taps that is the same.
    if (attrs.padding == Padding::Border && attrs.mode != SampleMode::Cubic)
      x = std::clamp(x, 0.0, static_cast<double>(axis.size - 1));
    if (attrs.padding == Padding::Reflection) x = reflect(x, axis.low, axis.high);
  }
  // Farther out nothing changes, and every position fits an integer.
  x = std::clamp(x, -8.0, static_cast<double>(axis.size) + 8);
  AxisTaps taps;
  const auto add = [&](double position, double weight) {
    taps.positions[taps.count] = pixel(attrs.padding, axis, position);
    taps.weights[taps.count++] = weight;
  };
  const double floor = std::floor(x);
  const double r = x - floor;
  switch (attrs.mode) {
    case SampleMode::Nearest:
      add(std::trunc(x), 1);
      break;
    case SampleMode::Linear:
      add(floor, 1 - r);
      add(floor + 1, r);
      break;
    case SampleMode::Cubic: {
      // Keys' kernel with a = -0.75.
      const double a = -0.75;
      const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
      const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      add(floor - 1, far(r + 1));
      add(floor, near(r));
      add(floor + 1, near(1 - r));
      add(floor + 2, far(2 - r));
      break;
    }
  }
  return taps;
}

// One pixel and its weight; position -1 reads zero.
struct Sample {
  int64_t position;
  double weight;
};

std::vector<Sample> combine(const std::vector<AxisTaps>& axes, const std::vector<GridAxis>& extents) {
  std::vector<Sample> samples{{0, 1.0}};
  for (size_t a = 0; a < axes.size(); ++a) {
    std::vector<Sample> next;
    next.reserve(samples.size() * static_cast<size_t>(axes[a].count));
    for (const Sample& sample : samples) {
      for (int t = 0; t < axes[a].count; ++t) {
        const bool inside = sample.position >= 0 && axes[a].positions[t] >= 0;
        next.push_back({inside ? sample.position * extents[a].size + axes[a].positions[t] : -1,
                        sample.weight * axes[a].weights[t]});
      }
    }
    samples = std::move(next);
  }
  return samples;
}

void reference_grid_sample(ReferenceContext& ctx) {
  const GridAttrs attrs(ctx.node());
  const Tensor& x = ctx.input(0);
  const Dims& grid = ctx.input(1).dims();
  const size_t rank = x.dims().size() < 2 ? 0 : x.dims().size() - 2;
  ctx.check(rank >= 1 && grid.size() == rank + 2 && grid.back() == static_cast<int64_t>(rank) && grid[0] == x.dims()[0],
            str("X and grid must fit. Got ", to_string(x.dims()), " and ", to_string(grid)));
  Dims dims(grid.begin(), grid.end() - 1);
  dims.insert(dims.begin() + 1, x.dims()[1]);
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  if (y.size() == 0) return;
  const int64_t points = count_between(dims, 2, static_cast<int>(dims.size()));
  const int64_t plane = count_between(x.dims(), 2, x.rank());
  ctx.check(plane > 0, str("X must hold pixels. Got ", to_string(x.dims())));
  const auto coordinates = ctx.doubles(1);
  const auto pixels = ctx.doubles(0);
  std::vector<GridAxis> extents;
  for (size_t a = 0; a < rank; ++a) extents.push_back(grid_axis(x.dims()[a + 2], attrs.align_corners));
  const bool wide = ctx.input(1).dtype() == DType::Float64;
  auto result = make_scratch<double>(y.size());
  std::vector<AxisTaps> taps(rank);
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t p = 0; p < points; ++p) {
      const double* point = coordinates.data() + (n * points + p) * static_cast<int64_t>(rank);
      for (size_t a = 0; a < rank; ++a) {
        const double normalized = point[rank - 1 - a];
        const double position = wide ? denormalize<double>(normalized, extents[a].size, attrs.align_corners)
                                     : denormalize<float>(normalized, extents[a].size, attrs.align_corners);
        taps[a] = sample_axis(attrs, extents[a], position);
      }
      const auto samples = combine(taps, extents);
      for (int64_t c = 0; c < dims[1]; ++c) {
        const double* image = pixels.data() + (n * dims[1] + c) * plane;
        double sum = 0;
        for (const Sample& sample : samples) {
          if (sample.position >= 0 && sample.weight != 0) sum += sample.weight * image[sample.position];
        }
        result[static_cast<size_t>((n * dims[1] + c) * points + p)] = sum;
      }
    }
  }
  store_doubles(y, result);
}

// AffineGrid

void infer_affine_grid(InferContext& ctx) {
  ctx.check_rank(0, 3);
  auto size = shape_contents(ctx, 1);
  if (!size) {
    const auto length = constant_length(ctx, 1);
    if (!length) return ctx.set_output(0, ctx.dtype(0), Shape());
    size = fresh_dims(ctx, *length, "grid");
  }
  ctx.check(size->size() == 4 || size->size() == 5,
            str("size must be [N,C,H,W] or [N,C,D,H,W]. Got ", size->size(), " sizes"));
  const auto rank = static_cast<int64_t>(size->size()) - 2;
  if (ctx.ranked(0)) {
    ctx.require_equal(ctx.shape(0)[0], (*size)[0], "theta and size must have one batch size");
    ctx.require_equal(ctx.shape(0)[1], rank, "theta must have one row per spatial axis");
    ctx.require_equal(ctx.shape(0)[2], rank + 1, "theta must have one column more than spatial axes");
  }
  std::vector<Dim> dims{(*size)[0]};
  dims.insert(dims.end(), size->begin() + 2, size->end());
  dims.push_back(rank);
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_affine_grid(ReferenceContext& ctx) {
  const AffinePlaces places = affine_places(ctx);
  const size_t rank = places.spatial.size();
  const auto matrix = ctx.doubles(0);
  std::vector<double> result;
  result.reserve(static_cast<size_t>(element_count(places.output)));
  const int64_t points = element_count(places.spatial);
  std::vector<double> position(rank + 1, 1.0);
  for (int64_t n = 0; n < places.output[0]; ++n) {
    std::vector<int64_t> index(rank, 0);
    for (int64_t p = 0; p < points; ++p) {
      // The innermost axis first.
      for (size_t a = 0; a < rank; ++a) position[rank - 1 - a] = places.coordinates[a][static_cast<size_t>(index[a])];
      for (size_t r = 0; r < rank; ++r) {
        const double* row = matrix.data() + (static_cast<size_t>(n) * rank + r) * (rank + 1);
        double sum = 0;
        for (size_t c = 0; c <= rank; ++c) sum += row[c] * position[c];
        result.push_back(sum);
      }
      next_index(index, places.spatial);
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), places.output), result);
}

Work work_grid_sample(const Node& node) {
  Work work = movement_work(node);
  const Value* y = node.output(0);
  if (y == nullptr || !y->shape().has_rank()) return work;
  const std::string mode = node.string_attr("mode", "linear");
  int64_t taps = 1;
  for (int axis = 2; axis < y->shape().rank(); ++axis) taps *= mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  work.flops = y->shape().element_count() * Dim(2 * taps);
  return work;
}

}  // namespace

AffinePlaces affine_places(const ReferenceContext& ctx) {
  const Tensor& theta = ctx.input(0);
  const auto size = ctx.ints(1);
  ctx.check(size.size() == 4 || size.size() == 5,
            str("size must be [N,C,H,W] or [N,C,D,H,W]. Got ", size.size(), " sizes"));
  const auto rank = std::ssize(size) - 2;
  ctx.check(theta.dims() == Dims{size[0], rank, rank + 1},
            str("theta must fit size. Got ", to_string(theta.dims()), " for ", to_string(size)));
  const bool align_corners = ctx.node().int_attr("align_corners", 0) != 0;
  AffinePlaces places{Dims(size.begin() + 2, size.end()), {size[0]}, {}};
  places.output.insert(places.output.end(), size.begin() + 2, size.end());
  places.output.push_back(rank);
  for (const int64_t count : places.spatial) {
    std::vector<double>& along = places.coordinates.emplace_back();
    const auto extent = static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) {
      const double twice = 2 * static_cast<double>(i);
      along.push_back(align_corners ? (count > 1 ? twice / (extent - 1) - 1 : 0) : (twice + 1) / extent - 1);
    }
  }
  return places;
}

void add_grid_ops(OpRegistry& ops) {
  ops.add({.name = "GridSample",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_grid_sample,
           .reference = reference_grid_sample,
           .work = work_grid_sample});
  ops.add({.name = "AffineGrid",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_affine_grid,
           .reference = reference_affine_grid,
           .shape_inputs = {1}});
}

}  // namespace neo
