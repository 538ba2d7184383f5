#include "routines/cpu/sample/grid_sample.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// One axis of a plane: its last position, and the borders that reflect.
struct Axis {
  float extent, last, low, high;

  Axis(int64_t size, bool align_corners)
      : extent((float)size),
        last((float)(size - 1)),
        low(align_corners ? 0.0f : -0.5f),
        high(align_corners ? (float)(size - 1) : (float)size - 0.5f) {}
};

enum class Method { Nearest, ByRows, ByWeights };

// Where the pixels of some points lie in a plane, -1 where zero is read, and what they count: the distances dx2, dx1,
// dy2, dy1, or the weights of the pixels.
struct Taps {
  int32_t place[4][kGridPoints];
  float part[4][kGridPoints];
};

NEO_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

NEO_INLINE F32 clamp_to(F32 x, float lo, float hi) {
  return min(max(x, broadcast(lo)), broadcast(hi));
}

NEO_INLINE F32 denormalized(F32 normalized, const Axis& axis, bool align_corners) {
  const F32 n = normalized + broadcast(1.0f), half = broadcast(2.0f);
  return align_corners ? n / half * broadcast(axis.last) : (n * broadcast(axis.extent) - broadcast(1.0f)) / half;
}

NEO_INLINE F32 reflected(F32 x, const Axis& axis) {
  const F32 low = broadcast(axis.low), high = broadcast(axis.high);
  const F32 range = high - low;
  const Mask below = lt(x, low);
  const F32 distance = select(below, low - x, x - high);
  const F32 periods = floor(distance / range);
  const F32 rest = distance - periods * range;
  const F32 odd = periods - broadcast(2.0f) * floor(periods * broadcast(0.5f));
  const Mask from_low = (below & eq(odd, zero())) | (mask_not(below) & ne(odd, zero()));
  const F32 y = select(from_low, low + rest, high - rest);
  const F32 inside = select(below | gt(x, high), y, x);
  // Infinities, and an axis of one pixel whose borders are one.
  return select(is_nan(inside), low, inside);
}

// The pixel of one axis at a whole position; false in `exists` where zero is read.
template <GridPadding padding>
NEO_INLINE I32 pixel(F32 position, const Axis& axis, Mask& exists) {
  if (padding == GridPadding::Zeros) {
    exists = ge(position, zero()) & le(position, broadcast(axis.last));
    position = select(exists, position, zero());
  } else {
    exists = ge(zero(), zero());
    if (padding == GridPadding::Reflection) position = reflected(position, axis);
    position = clamp_to(position, 0, axis.last);
  }
  return trunc_to_i32(position);
}

NEO_INLINE void store_place(int32_t* to, I32 row, Mask row_exists, I32 column, Mask column_exists, I32 columns) {
  store_i32(to, select(row_exists & column_exists, row * columns + column, broadcast_i32(-1)));
}

NEO_INLINE I32 pixel(GridPadding padding, F32 position, const Axis& axis, Mask& exists) {
  switch (padding) {
    case GridPadding::Zeros:
      return pixel<GridPadding::Zeros>(position, axis, exists);
    case GridPadding::Border:
      return pixel<GridPadding::Border>(position, axis, exists);
    default:
      return pixel<GridPadding::Reflection>(position, axis, exists);
  }
}

// A position that fits an integer. Where it is far away, nothing changes farther out, or what remains of the fraction
// is rounding.
template <GridPadding padding>
NEO_INLINE F32 limited(F32 x, const Axis& axis) {
  constexpr float kFar = 1 << 20;
  x = select(is_nan(x), broadcast(axis.low - 8), x);
  if (padding != GridPadding::Reflection) return clamp_to(x, -kFar, axis.extent + kFar);
  return select(gt(abs(x), broadcast(axis.extent + kFar)), reflected(x, axis), x);
}

template <Method method, GridPadding padding>
NEO_INLINE void find_taps(const GridSampleArgs& args, const float* grid, int64_t count, Taps& taps) {
  const Axis across(args.sizes[1], args.align_corners), down(args.sizes[0], args.align_corners);
  const I32 columns = broadcast_i32((int32_t)args.sizes[1]), pairs = shift_left<1>(iota_i32());
  for (int64_t p = 0; p < count; p += kLanes) {
    float tail[2 * kLanes] = {};
    const float* point = grid + 2 * p;
    if (count - p < kLanes) {
      for (int64_t i = 0; i < 2 * (count - p); ++i) tail[i] = point[i];
      point = tail;
    }
    F32 x = denormalized(gather(point, pairs), across, args.align_corners);
    F32 y = denormalized(gather(point + 1, pairs), down, args.align_corners);
    if (method == Method::Nearest) {
      x = round_even(x);
      y = round_even(y);
    }
    x = limited<padding>(x, across);
    y = limited<padding>(y, down);
    Mask row_exists, column_exists;
    if (method == Method::Nearest) {
      const I32 row = pixel<padding>(y, down, row_exists);
      const I32 column = pixel<padding>(x, across, column_exists);
      store_place(taps.place[0] + p, row, row_exists, column, column_exists, columns);
      continue;
    }
    const F32 x1 = floor(x), y1 = floor(y), one = broadcast(1.0f);
    const F32 x2 = x1 + one, y2 = y1 + one;
    Mask second_row_exists, second_column_exists;
    const I32 row = pixel<padding>(y1, down, row_exists), second_row = pixel<padding>(y2, down, second_row_exists);
    const I32 column = pixel<padding>(x1, across, column_exists);
    const I32 second_column = pixel<padding>(x2, across, second_column_exists);
    store_place(taps.place[0] + p, row, row_exists, column, column_exists, columns);
    store_place(taps.place[1] + p, row, row_exists, second_column, second_column_exists, columns);
    store_place(taps.place[2] + p, second_row, second_row_exists, column, column_exists, columns);
    store_place(taps.place[3] + p, second_row, second_row_exists, second_column, second_column_exists, columns);
    const F32 dx1 = x - x1, dx2 = x2 - x, dy1 = y - y1, dy2 = y2 - y;
    const bool weights = method == Method::ByWeights;
    store(taps.part[0] + p, weights ? dy2 * dx2 : dx2);
    store(taps.part[1] + p, weights ? dy2 * dx1 : dx1);
    store(taps.part[2] + p, weights ? dy1 * dx2 : dy2);
    store(taps.part[3] + p, weights ? dy1 * dx1 : dy1);
  }
}

template <GridPadding padding>
NEO_INLINE F32 read(const float* plane, const int32_t* place) {
  const I32 at = load_i32(place);
  if (padding != GridPadding::Zeros) return gather(plane, at);
  return select(gt(at, broadcast_i32(-1)), gather(plane, max(at, broadcast_i32(0))), zero());
}

template <Method method, GridPadding padding>
void sample(const GridSampleArgs& args, int64_t image, int64_t channel, int64_t point) {
  const int64_t count = smaller(kGridPoints, args.points - point);
  Taps taps;
  find_taps<method, padding>(args, args.grid + (image * args.points + point) * 2, count, taps);
  const int64_t end = smaller(args.channels, channel + kGridChannels);
  for (int64_t i = channel; i < end; ++i) {
    const float* plane = args.x + (image * args.channels + i) * args.sizes[0] * args.sizes[1];
    float* y = args.y + (image * args.channels + i) * args.points + point;
    for (int64_t p = 0; p < count; p += kLanes) {
      F32 value = read<padding>(plane, taps.place[0] + p);
      if (method != Method::Nearest) {
        const F32 p12 = read<padding>(plane, taps.place[1] + p);
        const F32 p21 = read<padding>(plane, taps.place[2] + p);
        const F32 p22 = read<padding>(plane, taps.place[3] + p);
        const F32 a = load(taps.part[0] + p), b = load(taps.part[1] + p);
        const F32 c = load(taps.part[2] + p), d = load(taps.part[3] + p);
        value = method == Method::ByWeights ? a * value + b * p12 + c * p21 + d * p22
                                            : c * (a * value + b * p12) + d * (a * p21 + b * p22);
      }
      if (count - p >= kLanes) {
        store(y + p, value);
      } else {
        store_n(y + p, value, count - p);
      }
    }
  }
}

constexpr int kMaxTaps = 16;  // a cubic of two axes; a linear interpolation of three has 8

// The pixels of some points, -1 where zero is read, and their weights.
struct WeightedTaps {
  int count = 1;
  int32_t place[kMaxTaps][kGridPoints];
  float weight[kMaxTaps][kGridPoints];
};

// Keys' kernel with a = -0.75, of distances up to 1 and from 1 to 2.
NEO_INLINE F32 near_weight(F32 d) {
  return ((broadcast(1.25f) * d - broadcast(2.25f)) * d) * d + broadcast(1.0f);
}
NEO_INLINE F32 far_weight(F32 d) {
  return ((broadcast(-0.75f) * d + broadcast(3.75f)) * d - broadcast(6.0f)) * d + broadcast(3.0f);
}

// The weights of the pixels of one axis, of which the point lies `r` behind the one at its left.
NEO_INLINE int axis_weights(const GridSampleArgs& args, F32 r, F32* weights) {
  const F32 one = broadcast(1.0f), rest = one - r;
  if (args.nearest) {
    weights[0] = one;
    return 1;
  }
  if (!args.cubic) {
    weights[0] = rest;
    weights[1] = r;
    return 2;
  }
  weights[0] = far_weight(r + one);
  weights[1] = near_weight(r);
  weights[2] = near_weight(rest);
  weights[3] = far_weight(rest + one);
  return 4;
}

NEO_INLINE void find_weighted_taps(const GridSampleArgs& args, const float* grid, int64_t count, WeightedTaps& taps) {
  const I32 none = broadcast_i32(-1), tuples = mul(iota_i32(), broadcast_i32(args.axes));
  for (int64_t p = 0; p < count; p += kLanes) {
    float tail[kMaxGridAxes * kLanes] = {};
    const float* point = grid + args.axes * p;
    if (count - p < kLanes) {
      for (int64_t i = 0; i < args.axes * (count - p); ++i) tail[i] = point[i];
      point = tail;
    }
    I32 places[kMaxTaps] = {broadcast_i32(0)};
    F32 weights[kMaxTaps] = {broadcast(1.0f)};
    taps.count = 1;
    for (int a = 0; a < args.axes; ++a) {
      const Axis axis(args.sizes[a], args.align_corners);
      F32 x = denormalized(gather(point + args.axes - 1 - a, tuples), axis, args.align_corners);
      if (args.nearest) x = round_even(x);
      x = args.padding == GridPadding::Reflection ? limited<GridPadding::Reflection>(x, axis)
                                                  : limited<GridPadding::Zeros>(x, axis);
      const F32 left = floor(x);
      F32 along[4];
      I32 at[4];
      const int k = axis_weights(args, x - left, along);
      for (int i = 0; i < k; ++i) {
        Mask exists;
        at[i] = pixel(args.padding, left + broadcast((float)(i - (args.cubic ? 1 : 0))), axis, exists);
        at[i] = select(exists, at[i], none);
      }
      // From the last tap on, so that none is overwritten before it is read.
      for (int t = taps.count - 1; t >= 0; --t) {
        const I32 place = places[t];
        const F32 weight = weights[t];
        for (int i = k - 1; i >= 0; --i) {
          const Mask exists = gt(place, none) & gt(at[i], none);
          places[t * k + i] = select(exists, add(mul(place, broadcast_i32((int32_t)args.sizes[a])), at[i]), none);
          weights[t * k + i] = weight * along[i];
        }
      }
      taps.count *= k;
    }
    for (int t = 0; t < taps.count; ++t) {
      store_i32(taps.place[t] + p, places[t]);
      store(taps.weight[t] + p, weights[t]);
    }
  }
}

NEO_INLINE void sample_weighted(const GridSampleArgs& args, int64_t image, int64_t channel, int64_t point) {
  const int64_t count = smaller(kGridPoints, args.points - point);
  WeightedTaps taps;
  find_weighted_taps(args, args.grid + (image * args.points + point) * args.axes, count, taps);
  int64_t size = 1;
  for (int a = 0; a < args.axes; ++a) size *= args.sizes[a];
  const int64_t end = smaller(args.channels, channel + kGridChannels);
  for (int64_t i = channel; i < end; ++i) {
    const float* pixels = args.x + (image * args.channels + i) * size;
    float* y = args.y + (image * args.channels + i) * args.points + point;
    for (int64_t p = 0; p < count; p += kLanes) {
      F32 sum = load(taps.weight[0] + p) * read<GridPadding::Zeros>(pixels, taps.place[0] + p);
      for (int t = 1; t < taps.count; ++t)
        sum = sum + load(taps.weight[t] + p) * read<GridPadding::Zeros>(pixels, taps.place[t] + p);
      store_n(y + p, sum, smaller(kLanes, count - p));
    }
  }
}

// f(image, first channel, first point) for each task.
template <class F>
NEO_INLINE void for_each_task(const GridSampleArgs& args, int64_t begin, int64_t end, F&& f) {
  const int64_t parts = (args.points + kGridPoints - 1) / kGridPoints;
  const int64_t groups = (args.channels + kGridChannels - 1) / kGridChannels;
  for (int64_t task = begin; task < end; ++task)
    f(task / parts / groups, task / parts % groups * kGridChannels, task % parts * kGridPoints);
}

template <Method method, GridPadding padding>
void tasks(const GridSampleArgs& args, int64_t begin, int64_t end) {
  for_each_task(args, begin, end, [&](int64_t image, int64_t channel, int64_t point) NEO_LAMBDA {
    sample<method, padding>(args, image, channel, point);
  });
}

template <Method method>
NEO_INLINE void run(const GridSampleArgs& args, int64_t begin, int64_t end) {
  switch (args.padding) {
    case GridPadding::Zeros:
      return tasks<method, GridPadding::Zeros>(args, begin, end);
    case GridPadding::Border:
      return tasks<method, GridPadding::Border>(args, begin, end);
    case GridPadding::Reflection:
      return tasks<method, GridPadding::Reflection>(args, begin, end);
  }
}

}  // namespace

void grid_sample_tasks(const GridSampleArgs& args, int64_t begin, int64_t end) {
  if (args.axes != 2 || args.cubic) {
    for_each_task(args, begin, end, [&](int64_t image, int64_t channel, int64_t point) NEO_LAMBDA {
      sample_weighted(args, image, channel, point);
    });
  } else if (args.nearest) {
    run<Method::Nearest>(args, begin, end);
  } else if (args.padding == GridPadding::Zeros && !args.align_corners) {
    tasks<Method::ByWeights, GridPadding::Zeros>(args, begin, end);
  } else {
    run<Method::ByRows>(args, begin, end);
  }
}

}  // namespace neo::NEO_ISA
