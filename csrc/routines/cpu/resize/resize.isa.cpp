#include "routines/cpu/resize/resize.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Row `y` of the mixed input rows of a plane: in the source itself where one row is taken as it is.
NEO_INLINE const float* mixed_row(const ResizeArgs& args, const float* plane, int64_t y, int64_t row_size) {
  const ResizeTable& t = args.row;
  const int32_t* position = t.position + y * t.by_output;
  if (t.taps == 1) return plane + position[0] * row_size;
  const float* weight = t.weight + y * t.by_output;
  bool begun = false;
  for (int64_t k = 0; k < t.taps; ++k) {
    const float w = weight[k * t.by_tap];
    if (w == 0.0f) continue;
    const float* row = plane + position[k * t.by_tap] * row_size;
    const F32 scale = broadcast(w);
    int64_t i = 0;
    for (; i + kLanes <= row_size; i += kLanes) {
      const F32 x = load(row + i);
      store(args.workspace + i, begun ? fma(x, scale, load(args.workspace + i)) : x * scale);
    }
    if (i < row_size) {
      const int64_t n = row_size - i;
      const F32 x = load_n(row + i, n);
      store_n(args.workspace + i, begun ? fma(x, scale, load_n(args.workspace + i, n)) : x * scale, n);
    }
    begun = true;
  }
  if (!begun) {
    for (int64_t i = 0; i < row_size; ++i) args.workspace[i] = 0.0f;
  }
  return args.workspace;
}

NEO_INLINE void mix_columns(const ResizeArgs& args, const float* row, float* dst) {
  const ResizeTable& t = args.column;
  for (int64_t o = 0; o < args.columns; o += kLanes) {
    const int64_t n = args.columns - o < kLanes ? args.columns - o : kLanes;
    if (t.taps == 1) {
      store_n(dst + o, gather(row, load_i32_n(t.position + o, n)), n);
      continue;
    }
    F32 sum = zero();
    for (int64_t k = 0; k < t.taps; ++k) {
      const F32 w = load_n(t.weight + k * t.by_tap + o, n);
      const F32 x = gather(row, load_i32_n(t.position + k * t.by_tap + o, n));
      // An element without weight does not count, whatever it is.
      sum = select(eq(w, zero()), sum, fma(x, w, sum));
    }
    store_n(dst + o, sum, n);
  }
}

NEO_INLINE void mix_blocked_columns(const ResizeArgs& args, const float* row, float* dst) {
  const ResizeTable& t = args.column;
  for (int64_t o = 0; o < args.columns; ++o) {
    const int32_t* position = t.position + o * t.by_output;
    if (t.taps == 1) {
      store(dst + o * kLanes, load(row + (int64_t)position[0] * kLanes));
      continue;
    }
    const float* weight = t.weight + o * t.by_output;
    F32 sum = zero();
    for (int64_t k = 0; k < t.taps; ++k) {
      const float w = weight[k * t.by_tap];
      if (w != 0.0f) sum = fma(load(row + (int64_t)position[k * t.by_tap] * kLanes), broadcast(w), sum);
    }
    store(dst + o * kLanes, sum);
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
  for (int64_t task = begin; task < end; ++task) {
    const float* plane = args.src + task / args.rows * args.input_rows * row_size;
    mix_blocked_columns(args, mixed_row(args, plane, task % args.rows, row_size),
                        args.dst + task * args.columns * kLanes);
  }
}

}  // namespace neo::NEO_ISA
