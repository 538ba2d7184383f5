#include "ops/col2im.h"

#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "ops/movement.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

// Where one tap of the block lies on an axis: positions [first, behind) are inside the image, the first of all would be
// at `offset`.
struct TapOfAxis {
  int64_t first, behind, offset;
};

TapOfAxis tap_of_axis(const ImageBlocks& blocks, size_t axis, int64_t tap) {
  const int64_t count = blocks.positions[axis], stride = blocks.strides[axis];
  const int64_t offset = blocks.place(axis, 0, tap), end = blocks.image[axis] - offset;
  const int64_t first = std::min(count, offset < 0 ? ceil_div(-offset, stride) : 0);
  return {first, std::clamp<int64_t>(end <= 0 ? 0 : ceil_div(end, stride), first, count), offset};
}

// Adds the elements of one tap to where they lie in the plane, from an axis on: the last two axes as rows.
template <class T>
void add_tap(const ImageBlocks& blocks, const std::vector<TapOfAxis>& tap, size_t axis, const T* x, T* plane) {
  const auto [first, behind, offset] = tap[axis];
  const int64_t stride = blocks.strides[axis];
  if (axis + 2 < tap.size()) {
    int64_t row = 1, line = 1;
    for (size_t inner = axis + 1; inner < tap.size(); ++inner) {
      row *= blocks.positions[inner];
      line *= blocks.image[inner];
    }
    for (int64_t i = first; i < behind; ++i)
      add_tap(blocks, tap, axis + 1, x + i * row, plane + (offset + i * stride) * line);
    return;
  }
  const bool has_rows = axis + 2 == tap.size();
  const TapOfAxis& last = tap.back();
  const int64_t begin = has_rows ? first : 0, end = has_rows ? behind : 1, step = blocks.strides.back();
  const int64_t count = last.behind - last.first, row = blocks.positions.back(), line = blocks.image.back();
  const T* from = x + last.first;
  T* to = plane + last.offset + last.first * step + (has_rows ? offset * line : 0);
  for (int64_t i = begin; i < end; ++i) {
    const T* a = from + i * row;
    T* y = to + i * stride * line;
    if (step == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) y[j] += a[j];
    } else {
      for (int64_t j = 0; j < count; ++j) y[j * step] += a[j];
    }
  }
}

template <class T>
void add_columns(const ImageBlocks& blocks, const Tensor& x, const Tensor& y, Team& team) {
  const int64_t planes = blocks.output[0] * blocks.output[1], plane = element_count(blocks.image);
  const int64_t positions = element_count(blocks.positions), taps = element_count(blocks.block);
  // Each tap lies at the same place in all planes.
  std::vector<std::vector<TapOfAxis>> inside(static_cast<size_t>(taps));
  std::vector<int64_t> tap(blocks.block.size(), 0);
  for (std::vector<TapOfAxis>& axes : inside) {
    for (size_t axis = 0; axis < tap.size(); ++axis) axes.push_back(tap_of_axis(blocks, axis, tap[axis]));
    next_index(tap, blocks.block);
  }
  run_tasks(team, TaskSplit::of(planes, x.size()), [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      const T* from = x.as<T>() + p * taps * positions;
      T* to = y.as<T>() + p * plane;
      std::fill_n(to, plane, T(0));
      for (int64_t t = 0; t < taps; ++t) add_tap(blocks, inside[static_cast<size_t>(t)], 0, from + t * positions, to);
    }
  });
}

}  // namespace

void run_col2im(ReferenceContext& ctx, Team& team) {
  const Tensor& x = ctx.input(0);
  const ImageBlocks blocks = image_blocks(ctx);
  const Tensor& y = ctx.output(0, x.dtype(), blocks.output);
  if (blocks.image.empty()) return copy_tensor(x, y);
  if (y.size() == 0) return;
  if (x.size() == 0) {
    std::memset(y.data(), 0, static_cast<size_t>(y.size() * item_bytes(y.dtype())));
    return;
  }
  x.dtype() == DType::Float32 ? add_columns<float>(blocks, x, y, team) : add_columns<double>(blocks, x, y, team);
}

}  // namespace neo
