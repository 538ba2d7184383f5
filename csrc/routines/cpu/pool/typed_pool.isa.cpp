#include "routines/cpu/pool/typed_pool.h"

#include <math.h>

#include "routines/cpu/eltwise/typed_loops.h"

#define NEO_NOINLINE __attribute__((noinline))

namespace neo::NEO_ISA {
namespace {

// The first output of an axis at which a tap lies at or beyond an element, which is counted from the padding on.
NEO_NOINLINE int64_t outputs_before(const PoolAxis& a, int64_t tap, int64_t element) {
  const int64_t distance = element - tap * a.dilation;
  const int64_t o = distance <= 0 ? 0 : (distance + a.stride - 1) / a.stride;
  return o < a.output ? o : a.output;
}

NEO_INLINE bool has_element(const PoolAxis& a, int64_t output, int64_t tap) {
  const int64_t at = output * a.stride - a.pad + tap * a.dilation;
  return at >= 0 && at < a.input;
}

// Taps of an output that an average counts.
NEO_INLINE int64_t counted_taps(const PoolAxis& a, int64_t output, bool include_pad) {
  int64_t count = 0;
  for (int64_t tap = 0; tap < a.kernel; ++tap) {
    const int64_t at = output * a.stride + tap * a.dilation;
    count += include_pad ? at < a.padded : at >= a.pad && at < a.pad + a.input;
  }
  return count;
}

// The outputs of a row at which each tap of the width lies on an element, found once for all rows.
struct TapOutputs {
  static constexpr int64_t kTaps = 16;  // those of wider windows are found anew
  const PoolAxis& width;
  int64_t begin_of[kTaps], end_of[kTaps];

  NEO_INLINE explicit TapOutputs(const PoolAxis& w) : width(w) {
    for (int64_t tap = 0; tap < w.kernel && tap < kTaps; ++tap) {
      begin_of[tap] = outputs_before(w, tap, w.pad);
      end_of[tap] = outputs_before(w, tap, w.pad + w.input);
    }
  }
  NEO_INLINE int64_t begin(int64_t tap) const {
    return tap < kTaps ? begin_of[tap] : outputs_before(width, tap, width.pad);
  }
  NEO_INLINE int64_t end(int64_t tap) const {
    return tap < kTaps ? end_of[tap] : outputs_before(width, tap, width.pad + width.input);
  }
};

// f(x, base, tap) for every tap of the width and every row below the windows of row `task`: elements at x[o * stride],
// whose place in the plane is base + o * stride, for the outputs o of [begin, end).
template <class T, class F>
NEO_INLINE void for_each_tap(const PoolShape& s, const TapOutputs& outputs, const T* plane, int64_t depth,
                             int64_t height, F f) {
  const PoolAxis &d = s.axis[0], &h = s.axis[1], &w = s.axis[2];
  for (int64_t kd = 0; kd < d.kernel; ++kd) {
    if (!has_element(d, depth, kd)) continue;
    for (int64_t kh = 0; kh < h.kernel; ++kh) {
      if (!has_element(h, height, kh)) continue;
      const int64_t row =
          (depth * d.stride - d.pad + kd * d.dilation) * d.src + (height * h.stride - h.pad + kh * h.dilation) * h.src;
      for (int64_t kw = 0; kw < w.kernel; ++kw) {
        const int64_t base = row - w.pad + kw * w.dilation;
        f(plane + base, base, outputs.begin(kw), outputs.end(kw));
      }
    }
  }
}

// y[o] = f(y[o], x[o * stride]); a stride that is known is what the loop is vectorized for.
template <class T, class F>
NEO_INLINE void combine_row(T* y, const T* x, int64_t begin, int64_t end, int64_t stride, F f) {
  if (stride == 1) {
    for (int64_t o = begin; o < end; ++o) y[o] = f(y[o], x[o]);
  } else if (stride == 2) {
    for (int64_t o = begin; o < end; ++o) y[o] = f(y[o], x[2 * o]);
  } else {
    for (int64_t o = begin; o < end; ++o) y[o] = f(y[o], x[o * stride]);
  }
}

template <class T>
NEO_INLINE T lowest_of() {
  if constexpr ((T)0.5 != (T)0) {
    return (T)-INFINITY;
  } else {
    return (T)-1 < (T)0 ? (T)(1u << (8 * sizeof(T) - 1)) : (T)0;
  }
}

NEO_INLINE int64_t in_columns(const PoolShape& s, int64_t place) {
  const PoolAxis &d = s.axis[0], &h = s.axis[1], &w = s.axis[2];
  const int64_t x = place % w.input, y = place / w.input % h.input, z = place / w.input / h.input;
  return (x * h.input + y) * d.input + z;
}

template <class T>
NEO_INLINE void max_row(const TypedPoolArgs& args, const TapOutputs& outputs, const T* plane, int64_t depth,
                        int64_t height, T* y) {
  const PoolAxis& w = args.shape.axis[2];
  for (int64_t o = 0; o < w.output; ++o) y[o] = lowest_of<T>();
  for_each_tap(args.shape, outputs, plane, depth, height,
               [&](const T* x, int64_t, int64_t begin, int64_t end) NEO_LAMBDA {
                 combine_row(y, x, begin, end, w.stride, [](T best, T v) NEO_LAMBDA { return v > best ? v : best; });
               });
}

// The larger of y[o] and x[o * stride], and its place; an output without a place takes what comes.
template <class T, class P>
NEO_INLINE void keep_larger_every(T* y, P* places, const T* x, P base, int64_t begin, int64_t end, P stride) {
  for (int64_t o = begin; o < end; ++o) {
    const T v = x[o * stride];
    const bool better = (v > y[o]) | (places[o] < 0);
    y[o] = better ? v : y[o];
    places[o] = better ? base + (P)o * stride : places[o];
  }
}

template <class T, class P>
NEO_NOINLINE void keep_larger(T* y, P* places, const T* x, P base, int64_t begin, int64_t end, int64_t stride) {
  // Lanes pay for the usual dtype alone.
  if constexpr (sizeof(T) == sizeof(int32_t) && sizeof(P) == sizeof(int32_t)) {
    if (stride == 1) return keep_larger_every(y, places, x, base, begin, end, (P)1);
    if (stride == 2) return keep_larger_every(y, places, x, base, begin, end, (P)2);
  }
#pragma GCC unroll 1
  for (int64_t o = begin; o < end; ++o) {
    const T v = x[o * stride];
    if (!(v > y[o]) && places[o] >= 0) continue;
    y[o] = v;
    places[o] = base + (P)(o * stride);
  }
}

template <class T, class P>
NEO_NOINLINE void max_row_with_places(const TypedPoolArgs& args, const TapOutputs& outputs, int64_t plane,
                                      int64_t depth, int64_t height, T* y, int64_t* places) {
  constexpr int64_t kOutputs = 256;  // of a stretch, whose places stay near
  const PoolShape& s = args.shape;
  const PoolAxis& w = s.axis[2];
  const int64_t size = s.axis[0].input * s.axis[1].input * w.input;
  P near[kOutputs];
  for (int64_t first = 0; first < w.output; first += kOutputs) {
    const int64_t last = first + kOutputs < w.output ? first + kOutputs : w.output;
    T* best = y + first;
    for (int64_t o = 0; o < last - first; ++o) {
      best[o] = lowest_of<T>();
      near[o] = -1;
    }
    for_each_tap(s, outputs, (const T*)args.src + plane * size, depth, height,
                 [&](const T* x, int64_t base, int64_t begin, int64_t end) NEO_LAMBDA {
                   const int64_t from = begin > first ? begin - first : 0;
                   const int64_t to = (end < last ? end : last) - first;
                   const T* row = x + first * w.stride;
                   const P place = (P)(base + first * w.stride);
                   keep_larger(best, near, row, place, from, to, w.stride);
                 });
    for (int64_t o = 0; o < last - first; ++o) {
      const int64_t place = near[o];
      const bool is_found = place >= 0;
      places[first + o] = is_found ? plane * size + (args.column_major ? in_columns(s, place) : place) : -1;
    }
  }
}

template <class T>
NEO_INLINE void average_row(const TypedPoolArgs& args, const TapOutputs& outputs, const T* plane, int64_t depth,
                            int64_t height, T* y) {
  const PoolShape& s = args.shape;
  const PoolAxis& w = s.axis[2];
  for (int64_t o = 0; o < w.output; ++o) y[o] = (T)0;
  for_each_tap(s, outputs, plane, depth, height, [&](const T* x, int64_t, int64_t begin, int64_t end) NEO_LAMBDA {
    combine_row(y, x, begin, end, w.stride, [](T sum, T v) NEO_LAMBDA { return sum + v; });
  });
  const int64_t above = counted_taps(s.axis[0], depth, s.include_pad) * counted_taps(s.axis[1], height, s.include_pad);
  // Outputs all of whose taps lie on elements are divided by the same number.
  const int64_t begin = outputs_before(w, 0, w.pad);
  const int64_t before = outputs_before(w, w.kernel - 1, w.pad + w.input), end = before > begin ? before : begin;
  const auto divide_each = [&](int64_t from, int64_t to) NEO_LAMBDA {
    for (int64_t o = from; o < to; ++o) {
      const int64_t count = above * counted_taps(w, o, s.include_pad);
      y[o] = count == 0 ? (T)0 : y[o] / (T)count;
    }
  };
  divide_each(0, begin);
  const T whole = (T)(above * w.kernel);
  for (int64_t o = begin; o < end && above > 0; ++o) y[o] = y[o] / whole;
  divide_each(end, w.output);
}

template <class T>
NEO_KERNEL pool_rows(const TypedPoolArgs& args, int64_t begin, int64_t end) {
  const PoolShape& s = args.shape;
  const int64_t heights = s.axis[1].output, depths = s.axis[0].output, columns = s.axis[2].output;
  const int64_t size = s.axis[0].input * s.axis[1].input * s.axis[2].input;
  const TapOutputs outputs(s.axis[2]);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t height = task % heights, depth = task / heights % depths, plane = task / heights / depths;
    const T* x = (const T*)args.src + plane * size;
    T* y = (T*)args.dst + task * columns;
    if (!args.shape.average) {
      if (args.places) {
        int64_t* places = args.places + task * columns;
        // Places as wide as the elements go through the same lanes.
        if constexpr (sizeof(T) == sizeof(int32_t)) {
          if (size <= INT32_MAX) {
            max_row_with_places<T, int32_t>(args, outputs, plane, depth, height, y, places);
            continue;
          }
        }
        max_row_with_places<T, int64_t>(args, outputs, plane, depth, height, y, places);
      } else {
        max_row(args, outputs, x, depth, height, y);
      }
    } else if constexpr (sizeof(T) == sizeof(double)) {
      average_row(args, outputs, x, depth, height, y);
    }
  }
}

}  // namespace

void typed_pool_tasks(const TypedPoolArgs& args, int64_t begin, int64_t end) {
  switch (args.lane) {
    case Lane::F32:
      return pool_rows<float>(args, begin, end);
    case Lane::F64:
      return pool_rows<double>(args, begin, end);
    case Lane::I8:
      return pool_rows<int8_t>(args, begin, end);
    default:
      return pool_rows<uint8_t>(args, begin, end);
  }
}

}  // namespace neo::NEO_ISA
