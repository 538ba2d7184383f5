#include "ops/col2im.h"

#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "ops/movement.h"
#include "routines/cpu/index/host_functions.h"

namespace neo {
namespace {

// Adds the elements of one tap, a row of positions after the other, to where they lie in the plane.
template <class T>
const T* add_tap(const ImageBlocks& blocks, const std::vector<int64_t>& tap, const Dims& rows, const T* x, T* plane) {
  const size_t last = blocks.image.size() - 1;
  const int64_t count = blocks.positions[last], stride = blocks.strides[last];
  const int64_t offset = blocks.place(last, 0, tap[last]), end = blocks.image[last] - offset;
  const int64_t first = std::min(count, offset < 0 ? ceil_div(-offset, stride) : 0);
  const int64_t behind = std::clamp<int64_t>(end <= 0 ? 0 : ceil_div(end, stride), first, count);
  std::vector<int64_t> row(last, 0);
  do {
    int64_t line = 0;
    bool inside = true;
    for (size_t a = 0; inside && a < last; ++a) {
      const int64_t at = blocks.place(a, row[a], tap[a]);
      inside = at >= 0 && at < blocks.image[a];
      if (inside) line = line * blocks.image[a] + at;
    }
    if (inside) {
      T* y = plane + line * blocks.image[last] + offset;
      if (stride == 1) {
        for (int64_t i = first; i < behind; ++i) y[i] += x[i];
      } else {
        for (int64_t i = first; i < behind; ++i) y[i * stride] += x[i];
      }
    }
    x += count;
  } while (next_index(row, rows));
  return x;
}

template <class T>
void add_columns(const ImageBlocks& blocks, const Tensor& x, const Tensor& y) {
  const int64_t planes = blocks.output[0] * blocks.output[1], plane = element_count(blocks.image);
  const Dims rows(blocks.positions.begin(), blocks.positions.end() - 1);
  const T* from = x.as<T>();
  for (int64_t p = 0; p < planes; ++p) {
    std::vector<int64_t> tap(blocks.block.size(), 0);
    do from = add_tap(blocks, tap, rows, from, y.as<T>() + p * plane);
    while (next_index(tap, blocks.block));
  }
}

}  // namespace

void run_col2im(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const ImageBlocks blocks = image_blocks(ctx);
  const Tensor& y = ctx.output(0, x.dtype(), blocks.output);
  if (blocks.image.empty()) return copy_tensor(x, y);
  if (y.size() == 0) return;
  std::memset(y.data(), 0, static_cast<size_t>(y.size() * item_bytes(y.dtype())));
  if (x.size() == 0) return;
  x.dtype() == DType::Float32 ? add_columns<float>(blocks, x, y) : add_columns<double>(blocks, x, y);
}

}  // namespace neo
