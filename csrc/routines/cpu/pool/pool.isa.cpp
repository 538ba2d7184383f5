#include "routines/cpu/pool/pool.h"

#include <math.h>

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kPointsTogether = 4;

// The taps of a window that lie on elements, and how many elements an average divides by.
struct Taps {
  int64_t begin, end, count;
};

NEO_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The factor of an average; windows without elements sum to 0.
NEO_INLINE float share_of(int64_t count) {
  return count > 0 ? 1.0f / (float)count : 0.0f;
}

NEO_INLINE Taps taps_at(const PoolAxis& a, int64_t o, bool include_pad) {
  const int64_t first = o * a.stride - a.pad;
  // Taps whose position is below `limit`.
  const auto below = [&](int64_t limit) NEO_LAMBDA {
    const int64_t free = limit - first;
    if (free <= 0) return (int64_t)0;
    if (free > (a.kernel - 1) * a.dilation) return a.kernel;
    return a.dilation == 1 ? free : (free + a.dilation - 1) / a.dilation;
  };
  Taps t;
  t.begin = below(0);
  t.end = below(a.input);
  t.count = include_pad ? below(a.padded - a.pad) : t.end - t.begin;
  return t;
}

// Outputs whose taps all lie on elements.
struct Interior {
  int64_t begin, end;
};

NEO_INLINE Interior interior_of(const PoolAxis& a) {
  const int64_t last = a.input - 1 - (a.kernel - 1) * a.dilation + a.pad;
  const int64_t begin = smaller(a.output, (a.pad + a.stride - 1) / a.stride);
  const int64_t end = last < 0 ? begin : smaller(a.output, last / a.stride + 1);
  return {begin, end < begin ? begin : end};
}

template <bool average>
NEO_INLINE F32 combine(F32 acc, F32 x) {
  return average ? acc + x : max(x, acc);
}

// The window rows of one output row, and where its elements begin.
struct RowWindow {
  const PoolShape& shape;
  Taps depth, height;
  const float* src;  // of tap (0, 0) of the first row and input position 0

  NEO_INLINE const float* row(int64_t z, int64_t y) const {
    return src + z * shape.axis[0].dilation * shape.axis[0].src + y * shape.axis[1].dilation * shape.axis[1].src;
  }
};

struct RowTask {
  int64_t image, plane, z, y;
  int64_t rows;  // of the plane, one task behind the other
};

NEO_INLINE RowTask row_task(const PoolShape& s, int64_t task) {
  RowTask t;
  t.y = task % s.axis[1].output;
  task /= s.axis[1].output;
  t.z = task % s.axis[0].output;
  task /= s.axis[0].output;
  t.plane = task % s.planes;
  t.image = task / s.planes;
  t.rows = s.axis[1].output - t.y;
  return t;
}

// Channel blocks band by band of rows: members of a team get parts of an image, as from the steps around.
NEO_INLINE RowTask banded_task(const PoolShape& s, int64_t task) {
  constexpr int64_t kBands = 8;
  const int64_t rows = s.axis[1].output, planes = s.planes * s.axis[0].output;
  const int64_t band = (rows + kBands - 1) / kBands;
  RowTask t;
  t.image = task / (rows * planes);
  task %= rows * planes;
  const int64_t first = task / (band * planes) * band;
  const int64_t height = smaller(band, rows - first);
  task %= band * planes;
  t.y = first + task % height;
  t.rows = first + height - t.y;
  task /= height;
  t.z = task % s.axis[0].output;
  t.plane = task / s.axis[0].output;
  return t;
}

NEO_INLINE RowWindow row_window(const PoolArgs& args, const RowTask& t) {
  const PoolShape& s = args.shape;
  const float* plane = args.src + t.image * s.src_image + t.plane * s.src_plane;
  return {s, taps_at(s.axis[0], t.z, s.include_pad), taps_at(s.axis[1], t.y, s.include_pad),
          plane + (t.z * s.axis[0].stride - s.axis[0].pad) * s.axis[0].src +
              (t.y * s.axis[1].stride - s.axis[1].pad) * s.axis[1].src};
}

// n neighbouring outputs that share their taps.
template <bool average, int n>
NEO_INLINE void points(const RowWindow& w, int64_t first_output, const Taps& taps, float* dst) {
  const PoolAxis& a = w.shape.axis[2];
  const int64_t first = (first_output * a.stride - a.pad) * a.src;
  const int64_t next = a.stride * a.src, tap = a.dilation * a.src;
  F32 acc[n];
  const float* start = w.row(w.depth.begin, w.height.begin) + first + taps.begin * tap;
  for (int i = 0; i < n; ++i) acc[i] = average ? zero() : load(start + i * next);
  for (int64_t z = w.depth.begin; z < w.depth.end; ++z) {
    for (int64_t y = w.height.begin; y < w.height.end; ++y) {
      const float* p = w.row(z, y) + first + taps.begin * tap;
      for (int64_t x = taps.begin; x < taps.end; ++x, p += tap) {
        for (int i = 0; i < n; ++i) acc[i] = combine<average>(acc[i], load(p + i * next));
      }
    }
  }
  const F32 scale = broadcast(average ? share_of(w.depth.count * w.height.count * taps.count) : 1.0f);
  for (int i = 0; i < n; ++i) store(dst + i * a.dst, average ? acc[i] * scale : acc[i]);
}

// One number in the channels of a block that exist; padding lanes are zero.
NEO_INLINE F32 fill_channels(float x, int64_t channels) {
  return select(lt(to_f32(iota_i32()), broadcast((float)channels)), broadcast(x), zero());
}

template <bool average>
NEO_INLINE void any_row(const RowWindow& w, const Interior& interior, int64_t channels, float* dst) {
  const PoolShape& s = w.shape;
  const PoolAxis& a = s.axis[2];
  const bool empty = w.depth.begin >= w.depth.end || w.height.begin >= w.height.end;
  int64_t o = 0;
  while (o < a.output) {
    if (!empty && o >= interior.begin && o < interior.end) {
      const Taps all = {0, a.kernel, a.kernel};
      for (; o + kPointsTogether <= interior.end; o += kPointsTogether) {
        points<average, kPointsTogether>(w, o, all, dst + o * a.dst);
      }
      for (; o < interior.end; ++o) points<average, 1>(w, o, all, dst + o * a.dst);
      continue;
    }
    const Taps taps = taps_at(a, o, s.include_pad);
    if (empty || taps.begin >= taps.end) {
      store(dst + o * a.dst, fill_channels(average ? 0.0f : -INFINITY, channels));
    } else {
      points<average, 1>(w, o, taps, dst + o * a.dst);
    }
    ++o;
  }
}

[[gnu::noinline]] int64_t count_at(const PoolAxis& a, int64_t o, bool include_pad) {
  return taps_at(a, o, include_pad).count;
}

// A row of windows of k neighbours, `stride` apart, with `rows` rows below: every column of a window's elements is
// combined once, and what the next window has of them too is kept.
template <bool average, int k, int stride, int rows>
[[gnu::noinline]] void square_row(const RowWindow& w, const Interior& interior, int64_t channels, float* dst) {
  const PoolAxis& a = w.shape.axis[2];
  const F32 nothing = broadcast(average ? 0.0f : -INFINITY);
  const float *top = w.row(w.depth.begin, w.height.begin), *middle = top + w.shape.axis[1].src;
  const float* bottom = middle + w.shape.axis[1].src;
  const int64_t input = a.input, output = a.output;
  int64_t x = -a.pad;
  const auto column = [&]() NEO_LAMBDA {
    F32 acc = nothing;
    if (x >= 0 && x < input) {
      acc = combine<average>(load(top + x * kLanes), load(middle + x * kLanes));
      if (rows == 3) acc = combine<average>(acc, load(bottom + x * kLanes));
    }
    ++x;
    return acc;
  };
  F32 first = k - stride == 2 ? column() : nothing, second = k - stride >= 1 ? column() : nothing;
  const int64_t counted = w.depth.count * w.height.count;
  const F32 usual = broadcast(share_of(counted * k));
  for (int64_t o = 0; o < output; ++o, dst += kLanes) {
    F32 acc = k - stride == 2 ? combine<average>(first, second) : k - stride == 1 ? second : column();
    if (stride == 2 && k == 3) acc = combine<average>(acc, column());
    const F32 last = column();
    acc = combine<average>(acc, last);
    first = second;
    second = last;
    if (o >= interior.begin && o < interior.end) {
      store(dst, average ? acc * usual : acc);
      continue;
    }
    const int64_t at = o * stride - a.pad;
    if (at + k <= 0 || at >= input)
      acc = fill_channels(average ? 0.0f : -INFINITY, channels);
    else if (average)
      acc = acc * broadcast(share_of(counted * count_at(a, o, w.shape.include_pad)));
    store(dst, acc);
  }
}

template <bool average, int k, int stride>
NEO_INLINE void square_rows(const RowWindow& w, const Interior& interior, int64_t channels, float* dst) {
  if (k == 3 && w.height.end - w.height.begin == 2)
    square_row<average, k, stride, 2>(w, interior, channels, dst);
  else
    square_row<average, k, stride, k>(w, interior, channels, dst);
}

// The kernel of a square window without dilation; else 0.
NEO_INLINE int64_t square_kernel(const PoolShape& s) {
  const PoolAxis *y = &s.axis[1], *x = &s.axis[2];
  return x->kernel == y->kernel && x->dilation == 1 && y->dilation == 1 ? x->kernel : 0;
}

template <bool average>
NEO_INLINE void pool_rows(const PoolArgs& args, RowTask t, int64_t count) {
  const PoolShape& s = args.shape;
  const int64_t channels = s.channels - t.plane * kLanes, square = square_kernel(s), stride = s.axis[2].stride;
  const Interior interior = interior_of(s.axis[2]);
  float* dst = args.dst + t.image * s.dst_image + t.plane * s.dst_plane + t.z * s.axis[0].dst;
  for (int64_t last = t.y + count; t.y < last; ++t.y) {
    const RowWindow w = row_window(args, t);
    float* to = dst + t.y * s.axis[1].dst;
    const bool is_flat = w.depth.end - w.depth.begin == 1 && w.height.end - w.height.begin >= 2;
    if (is_flat && square == 3 && stride == 1)
      square_rows<average, 3, 1>(w, interior, channels, to);
    else if (is_flat && square == 3 && stride == 2)
      square_rows<average, 3, 2>(w, interior, channels, to);
    else if (is_flat && square == 2 && stride == 2)
      square_rows<average, 2, 2>(w, interior, channels, to);
    else
      any_row<average>(w, interior, channels, to);
  }
}

template <bool average>
void pool_blocked(const PoolArgs& args, int64_t begin, int64_t end) {
  while (begin < end) {
    const RowTask t = banded_task(args.shape, begin);
    const int64_t count = smaller(end - begin, t.rows);
    pool_rows<average>(args, t, count);
    begin += count;
  }
}

// The smallest number known when compiling that `n` may be taken for, 0: any; f(Number<...>).
template <int k>
struct Number {
  static constexpr int value = k;
};

template <class F>
NEO_INLINE void with_small(int64_t n, F f) {
  if (n == 2)
    f(Number<2>());
  else if (n == 3)
    f(Number<3>());
  else
    f(Number<0>());
}

// Plain layout: the rows below the window become one, padded row, in which every window is a run.
template <bool average>
struct PlainRows {
  const PoolShape& s;
  const int64_t padded_row, outputs;
  float* first;    // padded rows: input position i is at [pad + i], what surrounds the input changes nothing
  float* counts;   // per output: elements that its taps along the row count
  float* factors;  // per output: one over its elements, where `rows` rows lie below the window
  float rows = 0;

  NEO_INLINE PlainRows(const PoolArgs& args)
      : s(args.shape),
        padded_row(s.plain_row()),
        outputs(s.plain_outputs()),
        first(args.workspace),
        counts(first + s.plain_together() * padded_row),
        factors(counts + outputs) {
    const PoolAxis& a = s.axis[2];
    const F32 nothing = broadcast(average ? 0.0f : -INFINITY);
    for (float* p = first; p < counts; p += kLanes) store(p, nothing);
    if (!average) return;
    for (float* p = counts; p < factors + outputs; p += kLanes) store(p, nothing);
    for (int64_t o = 0; o < a.output; ++o) counts[o] = (float)taps_at(a, o, s.include_pad).count;
  }

  // `src`: of the first tap of the first row.
  template <int k>
  [[gnu::noinline]] void combine_rows(const float* src, int64_t depth, int64_t height, float* to) const {
    const int64_t input = s.axis[2].input;
    const int64_t next_y = s.axis[1].dilation * s.axis[1].src, next_z = s.axis[0].dilation * s.axis[0].src;
    for (int64_t i = 0; i < input; i += kLanes) {
      const int64_t n = smaller(kLanes, input - i);
      const auto at = [=](const float* p) NEO_LAMBDA { return n == kLanes ? load(p) : load_n(p, n); };
      const float* p = src + i;
      F32 acc = at(p);
      if constexpr (k > 0) {
        for (int y = 1; y < k; ++y) acc = combine<average>(acc, at(p + y * next_y));
      } else {
        if (!average) acc = max(acc, broadcast(-INFINITY));
        for (int64_t z = 0; z < depth; ++z, p += next_z) {
          for (int64_t y = z == 0; y < height; ++y) acc = combine<average>(acc, at(p + y * next_y));
        }
      }
      if (n == kLanes)
        store(to + i, acc);
      else
        store_n(to + i, acc, n);
    }
  }

  NEO_INLINE void set_rows(float count) {
    if (!average || count == rows) return;
    rows = count;
    for (int64_t o = 0; o < outputs; o += kLanes) {
      const F32 elements = load(counts + o) * broadcast(count);
      store(factors + o, select(gt(elements, zero()), broadcast(1.0f) / elements, zero()));
    }
  }

  // The elements of kLanes neighbouring outputs below one tap, the first of which is at p; `step`: the stride, 0 any.
  template <int step>
  NEO_INLINE F32 elements(const float* p, I32 apart) const {
    if (step == 1) return load(p);
    return step == 2 ? even(load(p), load(p + kLanes)) : gather(p, apart);
  }

  template <int k, int step>
  [[gnu::noinline]] void finish_row(const float* row, float* dst) const {
    const int64_t output = s.axis[2].output, taps = k > 0 ? k : s.axis[2].kernel;
    const int64_t stride = s.axis[2].stride, dilation = s.axis[2].dilation;
    const I32 apart = mul(iota_i32(), broadcast_i32((int32_t)stride));
    for (int64_t o = 0; o < output; o += kLanes) {
      const float* p = row + o * stride;
      F32 acc = elements<step>(p, apart);
      for (int64_t x = 1; x < taps; ++x) acc = combine<average>(acc, elements<step>(p + x * dilation, apart));
      if (average) acc = acc * load(factors + o);
      if (o + kLanes <= output)
        store(dst + o, acc);
      else
        store_n(dst + o, acc, output - o);
    }
  }

  using CombineRows = void (PlainRows::*)(const float*, int64_t, int64_t, float*) const;
  using FinishRow = void (PlainRows::*)(const float*, float*) const;

  // Neighbouring rows of one plane. A few of them are combined before the first is read again: stores take their time.
  // `whole`: for windows whose `whole_rows` rows all lie on elements; 0: for none.
  NEO_INLINE void run_rows(const PoolArgs& args, const RowTask& t, int64_t count, CombineRows whole, int64_t whole_rows,
                           FinishRow finish) {
    const PoolAxis& height = s.axis[1];
    const Taps depth = taps_at(s.axis[0], t.z, s.include_pad);
    const float* src = args.src + t.image * s.src_image + t.plane * s.src_plane +
                       ((t.z * s.axis[0].stride - s.axis[0].pad) + depth.begin * s.axis[0].dilation) * s.axis[0].src;
    float* dst = args.dst + t.image * s.dst_image + t.plane * s.dst_plane + t.z * s.axis[0].dst + t.y * height.dst;
    const int64_t most = s.plain_together(), pad = s.axis[2].pad;
    float counted[PoolShape::kMaxTogether];
    for (int64_t done = 0; done < count; done += most) {
      const int64_t together = smaller(most, count - done);
      for (int64_t i = 0; i < together; ++i) {
        const int64_t y = t.y + done + i;
        const Taps below = taps_at(height, y, s.include_pad);
        const int64_t deep = depth.end - depth.begin, high = below.end - below.begin;
        counted[i] = (float)(depth.count * below.count);
        const float* from = src + (y * height.stride - height.pad + below.begin * height.dilation) * height.src;
        float* to = first + i * padded_row + pad;
        if (whole_rows > 0 && deep == 1 && high == whole_rows)
          (this->*whole)(from, deep, high, to);
        else if (deep > 0 && high > 0)
          combine_rows<0>(from, deep, high, to);
        else
          for (int64_t x = 0; x < s.axis[2].input; ++x) to[x] = average ? 0.0f : -INFINITY;
      }
      for (int64_t i = 0; i < together; ++i) {
        set_rows(counted[i]);
        (this->*finish)(first + i * padded_row, dst + (done + i) * height.dst);
      }
    }
  }

  NEO_INLINE void run(const PoolArgs& args, int64_t begin, int64_t end) {
    const int64_t stride = s.axis[2].stride;
    const int64_t kernel = s.axis[1].kernel == s.axis[2].kernel ? s.axis[2].kernel : 0;
    CombineRows whole = nullptr;
    int64_t whole_rows = 0;
    FinishRow finish = nullptr;
    with_small(kernel, [&](auto k) NEO_LAMBDA {
      whole = &PlainRows::combine_rows<k.value>;
      whole_rows = k.value;
      finish = stride == 1   ? &PlainRows::finish_row<k.value, 1>
               : stride == 2 ? &PlainRows::finish_row<k.value, 2>
                             : &PlainRows::finish_row<k.value, 0>;
    });
    while (begin < end) {
      const RowTask t = row_task(s, begin);
      const int64_t count = smaller(end - begin, t.rows);
      run_rows(args, t, count, whole, whole_rows, finish);
      begin += count;
    }
  }
};

// Sums in groups, so that the error grows with the logarithm of their number rather than with it.
F32 sum_positions(const float* src, int64_t positions) {
  constexpr int64_t kGroup = 64;
  F32 total = zero();
  for (int64_t first = 0; first < positions; first += kGroup) {
    const int64_t last = smaller(first + kGroup, positions);
    F32 a = zero(), b = zero(), c = zero(), d = zero();
    int64_t i = first;
    for (; i + 4 <= last; i += 4) {
      const float* p = src + i * kLanes;
      a = a + load(p);
      b = b + load(p + kLanes);
      c = c + load(p + 2 * kLanes);
      d = d + load(p + 3 * kLanes);
    }
    for (; i < last; ++i) a = a + load(src + i * kLanes);
    total = total + ((a + b) + (c + d));
  }
  return total;
}

F32 max_of_positions(const float* src, int64_t positions) {
  F32 a = load(src), b = a;
  int64_t i = 0;
  for (; i + 2 <= positions; i += 2) {
    a = max(load(src + i * kLanes), a);
    b = max(load(src + (i + 1) * kLanes), b);
  }
  if (i < positions) a = max(load(src + i * kLanes), a);
  return max(b, a);
}

}  // namespace

void pool_tasks(const PoolArgs& args, int64_t begin, int64_t end) {
  if (args.shape.average)
    pool_blocked<true>(args, begin, end);
  else
    pool_blocked<false>(args, begin, end);
}

void pool_plain_tasks(const PoolArgs& args, int64_t begin, int64_t end) {
  if (args.shape.average)
    PlainRows<true>(args).run(args, begin, end);
  else
    PlainRows<false>(args).run(args, begin, end);
}

void global_pool_tasks(const GlobalPoolArgs& args, int64_t begin, int64_t end) {
  for (int64_t task = begin; task < end; ++task) {
    const int64_t image = task / args.planes, plane = task % args.planes;
    const float* src = args.src + image * args.src_image + plane * args.src_plane;
    float* dst = args.dst + image * args.dst_image + plane * args.dst_plane;
    const int64_t lanes = smaller(kLanes, args.channels - plane * kLanes);
    F32 y;
    if (args.positions == 0) {
      y = fill_channels(args.average ? NAN : -INFINITY, lanes);
    } else if (args.average) {
      y = sum_positions(src, args.positions) / broadcast((float)args.positions);
    } else {
      y = max_of_positions(src, args.positions);
    }
    store_n(dst, y, args.blocked_dst ? kLanes : lanes);
  }
}

}  // namespace neo::NEO_ISA
