#include "routines/cpu/resize/resize.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// sum + x * w; an element without weight does not count, whatever it is.
NEO_INLINE F32 add_weighted(F32 sum, F32 x, F32 w) {
  return select(eq(w, zero()), sum, fma(x, w, sum));
}

// Row `y` of the mixed input rows of a plane: in the source itself where one row is taken as it is.
NEO_INLINE const float* mixed_row(const ResizeArgs& args, const float* plane, int64_t y, int64_t row_size) {
  const ResizeTable t = args.row;
  if (t.taps == 1) return plane + t.position[y] * row_size;
  float* mixed = args.workspace;
  for (int64_t i = 0; i < row_size; i += kLanes) {
    const int64_t n = row_size - i < kLanes ? row_size - i : kLanes;
    F32 sum = zero();
    for (int64_t at = y; at < t.taps * t.outputs; at += t.outputs)
      sum = add_weighted(sum, load_n(plane + t.position[at] * row_size + i, n), broadcast(t.weight[at]));
    store_n(mixed + i, sum, n);
  }
  return mixed;
}

NEO_INLINE void mix_columns(const ResizeArgs& args, const float* row, float* dst) {
  const ResizeTable t = args.column;
  for (int64_t o = 0; o < t.outputs; o += kLanes) {
    const int64_t n = t.outputs - o < kLanes ? t.outputs - o : kLanes;
    if (t.taps == 1) {
      store_n(dst + o, gather(row, load_i32_n(t.position + o, n)), n);
      continue;
    }
    F32 sum = zero();
    for (int64_t at = o; at < t.taps * t.outputs; at += t.outputs)
      sum = add_weighted(sum, gather(row, load_i32_n(t.position + at, n)), load_n(t.weight + at, n));
    store_n(dst + o, sum, n);
  }
}

// `lanes` of the channels of every pixel.
NEO_INLINE void mix_blocked_columns(const ResizeArgs& args, const float* row, float* dst, int64_t lanes) {
  const ResizeTable t = args.column;
  const int64_t channels = args.channels;
  for (int64_t o = 0; o < t.outputs; ++o) {
    F32 sum = zero();
    if (t.taps == 1) {
      sum = load(row + t.position[o] * (int64_t)kLanes);
    } else {
      for (int64_t at = o; at < t.taps * t.outputs; at += t.outputs)
        sum = add_weighted(sum, load(row + t.position[at] * (int64_t)kLanes), broadcast(t.weight[at]));
    }
    if (lanes == kLanes) {
      store(dst, sum);
    } else {
      store_n(dst, sum, lanes);
    }
    dst += channels;
  }
}

}  // namespace

// A task is an output row.
void resize_tasks(const ResizeArgs& args, int64_t begin, int64_t end) {
  for (int64_t task = begin; task < end; ++task) {
    const float* plane = args.src + task / args.rows * args.input_rows * args.input_columns;
    mix_columns(args, mixed_row(args, plane, task % args.rows, args.input_columns), args.dst + task * args.columns);
  }
}

void resize_blocked_tasks(const ResizeArgs& args, int64_t begin, int64_t end) {
  const int64_t row_size = args.input_columns * kLanes;
  const int64_t blocks = (args.channels + kLanes - 1) / kLanes;
  for (int64_t task = begin; task < end; ++task) {
    const float* plane = args.src + task / args.rows * blocks * args.input_rows * row_size;
    float* dst = args.dst + task * args.columns * args.channels;
    for (int64_t c = 0; c < args.channels; c += kLanes) {
      const int64_t left = args.channels - c;
      mix_blocked_columns(args, mixed_row(args, plane, task % args.rows, row_size), dst + c,
                          left < kLanes ? left : kLanes);
      plane += args.input_rows * row_size;
    }
  }
}

}  // namespace neo::NEO_ISA
