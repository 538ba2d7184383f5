#include "ops/generate.h"

#include "ops/grid.h"
#include "ops/sizes.h"
#include "routines/cpu/index/host_functions.h"

namespace neo {
namespace {

template <class T>
void count_up(ReferenceContext& ctx) {
  const auto start = static_cast<uint64_t>(scalar_int(ctx, 0)), delta = static_cast<uint64_t>(scalar_int(ctx, 2));
  ctx.check(delta != 0, "delta must not be 0");
  const int64_t count = range_count(scalar_int(ctx, 0), scalar_int(ctx, 1), scalar_int(ctx, 2));
  T* y = ctx.output(0, ctx.input(0).dtype(), {count}).as<T>();
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(start + static_cast<uint64_t>(i) * delta);
}

// Each product and each sum is rounded.
template <class T>
void step_up(ReferenceContext& ctx) {
  const double start = scalar_double(ctx, 0), delta = scalar_double(ctx, 2);
  ctx.check(delta != 0, "delta must not be 0");
  const int64_t count = range_count(start, scalar_double(ctx, 1), delta);
  T* y = ctx.output(0, ctx.input(0).dtype(), {count}).as<T>();
  // A counter of 32 bits becomes a number in lanes.
  constexpr int64_t kCounted = int64_t{1} << 30;
  for (int64_t first = 0; first < count; first += kCounted) {
    const auto part = static_cast<int32_t>(count - first < kCounted ? count - first : kCounted);
    const auto offset = static_cast<double>(first);
    for (int32_t i = 0; i < part; ++i)
      y[first + i] = static_cast<T>(start + static_cast<T>((offset + static_cast<double>(i)) * delta));
  }
}

// One line of a grid: the parts of its columns, of the line and of the plane, and the shift.
template <size_t kRank, class T>
void place_line(const std::vector<double>& shared, const T* theta, double line, double plane, T* y) {
  double of_line[kRank], of_plane[kRank], shift[kRank];
  for (size_t r = 0; r < kRank; ++r) {
    const T* row = theta + r * (kRank + 1);
    of_line[r] = static_cast<double>(row[1]) * line;
    of_plane[r] = kRank == 3 ? static_cast<double>(row[2]) * plane : 0;
    shift[r] = static_cast<double>(row[kRank]);
  }
  const double* from = shared.data();
  for (const double* end = from + shared.size(); from < end; from += kRank, y += kRank) {
    for (size_t r = 0; r < kRank; ++r) {
      double sum = from[r] + of_line[r];
      if (kRank == 3) sum += of_plane[r];
      y[r] = static_cast<T>(sum + shift[r]);
    }
  }
}

template <class T>
void place_grid(ReferenceContext& ctx) {
  const AffinePlaces places = affine_places(ctx);
  const size_t rank = places.spatial.size();
  const std::vector<double>& columns = places.coordinates.back();
  const std::vector<double>& lines = places.coordinates[rank - 2];
  const int64_t depth = rank == 3 ? places.spatial[0] : 1;
  const T* theta = ctx.input(0).as<T>();
  T* y = ctx.output(0, ctx.input(0).dtype(), places.output).as<T>();
  // The part of the column in each coordinate, which all lines share.
  std::vector<double> shared(columns.size() * rank);
  for (int64_t n = 0; n < places.output[0]; ++n, theta += rank * (rank + 1)) {
    for (size_t i = 0; i < shared.size(); ++i)
      shared[i] = static_cast<double>(theta[i % rank * (rank + 1)]) * columns[i / rank];
    for (int64_t d = 0; d < depth; ++d) {
      for (const double line : lines) {
        const double plane = rank == 3 ? places.coordinates[0][static_cast<size_t>(d)] : 0;
        rank == 3 ? place_line<3>(shared, theta, line, plane, y) : place_line<2>(shared, theta, line, plane, y);
        y += shared.size();
      }
    }
  }
}

}  // namespace

void run_range(ReferenceContext& ctx) {
  switch (ctx.input(0).dtype()) {
    case DType::Float32:
      return step_up<float>(ctx);
    case DType::Float64:
      return step_up<double>(ctx);
    case DType::Int32:
      return count_up<int32_t>(ctx);
    default:
      return count_up<int64_t>(ctx);
  }
}

void run_affine_grid(ReferenceContext& ctx) {
  ctx.input(0).dtype() == DType::Float32 ? place_grid<float>(ctx) : place_grid<double>(ctx);
}

}  // namespace neo
