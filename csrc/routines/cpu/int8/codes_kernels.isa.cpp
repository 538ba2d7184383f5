#include "routines/cpu/int8/codes_kernels.h"

#include "routines/cpu/int8/dot_store.h"
#include "simd/lookup.h"

namespace neo::NEO_ISA {
namespace {

NEO_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

constexpr int64_t kPixelsOfWords = 4;  // in a vector of words

// The lanes that exist, in the bytes of so many pixels.
NEO_INLINE I32 lanes_of_pixels(int64_t valid) {
  alignas(64) uint8_t kept[kPixelsOfWords * kLanes];
  for (int64_t i = 0; i < kPixelsOfWords * kLanes; ++i) kept[i] = i % kLanes < valid ? 0xff : 0;
  return load_i32((const int32_t*)kept);
}

void clear_lanes(uint8_t* y, int64_t pixels, int64_t valid) {
  const I32 kept = lanes_of_pixels(valid);
  int64_t p = 0;
  for (; p + kPixelsOfWords <= pixels; p += kPixelsOfWords, y += kPixelsOfWords * kLanes)
    store_i32((int32_t*)y, load_i32((const int32_t*)y) & kept);
  for (; p < pixels; ++p, y += kLanes) {
    for (int64_t lane = valid; lane < kLanes; ++lane) y[lane] = 0;
  }
}

NEO_INLINE I32 mask_of_lanes(int64_t valid) {
  return select(gt(broadcast_i32((int32_t)valid), iota_i32()), broadcast_i32(-1), broadcast_i32(0));
}

// Taps [begin, end) of a window's row lie inside the image.
struct PoolTaps {
  int64_t left, begin, end;  // the former: the first tap's column

  NEO_INLINE PoolTaps(const CodesPoolRow& p, int64_t o) {
    left = o * p.stride - p.pad;
    begin = 0;
    end = p.taps;
    if (left >= 0 && left + (p.taps - 1) * p.dilation < p.width) return;
    if (left < 0) begin = (-left + p.dilation - 1) / p.dilation;
    end = left >= p.width ? 0 : smaller(p.taps, (p.width - 1 - left) / p.dilation + 1);
    if (end < begin) end = begin;
  }

  template <class Add>
  NEO_INLINE void visit(const CodesPoolRow& p, const Add& add) const {
    const int64_t next_plane = p.src_plane - p.rows * p.src_row;
    const uint8_t* row = p.src + (left + begin * p.dilation) * kLanes;
    for (int64_t plane = 0; plane < p.planes; ++plane, row += next_plane) {
      for (int64_t i = 0; i < p.rows; ++i, row += p.src_row) {
        const uint8_t* at = row;
        for (int64_t j = begin; j < end; ++j, at += p.dilation * kLanes) add(load_codes(at, p.is_signed));
      }
    }
  }
};

// Means of windows, less y's zero point.
struct CodesMean {
  const CodesPoolRow& p;
  F32 lo, hi;
  float ratio;
  bool is_normal;  // scales and ratio

  NEO_INLINE explicit CodesMean(const CodesPoolRow& row)
      : p(row),
        lo(broadcast((float)((row.y_is_signed ? -128 : 0) - row.y_zero))),
        hi(broadcast((float)((row.y_is_signed ? 127 : 255) - row.y_zero))),
        ratio(row.scale / row.y_scale),
        is_normal(row.scale > 1e-30f && row.y_scale > 1e-30f && ratio < 1e15f) {}

  // Whether many means lie halfway between two codes, so that only the operators' own roundings tell.
  NEO_INLINE bool is_often_halfway() const { return p.scale == p.y_scale && p.planes * p.rows * p.taps % 2 == 0; }

  // The elements that count in the window of the pixel o.
  NEO_INLINE int64_t count_of(int64_t o, const PoolTaps& columns) const {
    if (p.counted_rows == 0) return p.planes * p.rows * (columns.end - columns.begin);
    const int64_t room = p.padded_width - o * p.stride;
    return p.counted_rows * (room <= 0 ? 0 : smaller(p.taps, (room - 1) / p.dilation + 1));
  }

  // Means of so many elements, by the sums of the codes of those inside the image.
  struct Nearby {
    F32 factor, sure;
    I32 zeros;
  };
  NEO_INLINE Nearby nearby(int64_t taps, int64_t count) const {
    // A sum of numbers rounds at each of its taps, which moves the mean by no more than so many steps of y's scale;
    // float32 holds sums of codes of fewer taps. Nothing is sure of scales that are no normal numbers.
    constexpr int64_t kFewTaps = 1 << 15;
    const float rounds = (float)(taps + 3) * ratio * 255 * 0x1p-23f;
    const float sure = taps < kFewTaps && is_normal ? 0.4999f - rounds : -1.0f;
    return {broadcast(ratio / (float)count), broadcast(sure), broadcast_i32((int32_t)(taps * p.zero))};
  }

  // The codes, and the lanes that are sure of them.
  NEO_INLINE Mask round(const Nearby& by, I32 sum, I32& codes) const {
    const F32 steps = min(hi, max(lo, to_f32(sum - by.zeros) * by.factor));
    codes = round_to_i32(steps);
    return lt(abs(steps - to_f32(codes)), by.sure);
  }

  // The mean of the window of the pixel o, by the sum of its codes where that is sure.
  NEO_INLINE I32 of(int64_t o, I32 sum) const {
    const PoolTaps columns(p, o);
    const int64_t count = count_of(o, columns);
    I32 codes = broadcast_i32(0);
    if (count == 0) return codes;
    return all(round(nearby(p.planes * p.rows * (columns.end - columns.begin), count), sum, codes)) ? codes : exact(o);
  }

  // The mean as float32 operators make it.
  [[gnu::noinline]] I32 exact(int64_t o) const {
    const PoolTaps columns(p, o);
    const int64_t count = count_of(o, columns);
    if (count == 0) return broadcast_i32(0);
    F32 sum = zero();
    const I32 zero_point = broadcast_i32(p.zero);
    const F32 scale = broadcast(p.scale);
    columns.visit(
        p, [&](I32 codes) __attribute__((always_inline)) { sum = sum + to_f32(codes - zero_point) * scale; });
    // The quotient by a power of two is the product with its reciprocal.
    const bool is_power = (count & (count - 1)) == 0;
    const F32 mean = is_power ? sum * broadcast(1 / (float)count) : sum / broadcast((float)count);
    return round_to_i32(min(hi, max(lo, mean / broadcast(p.y_scale))));
  }
};

// Windows that mean_row() and max_row() do not take.
template <bool kAverage>
void pool_row_of(const CodesPoolRow& p) {
  const I32 first = broadcast_i32(kAverage ? 0 : (p.is_signed ? -128 : 0)), mask = mask_of_lanes(p.lanes);
  const CodesMean mean(p);
  for (int64_t o = 0; o < p.pixels; ++o) {
    I32 acc = first;
    PoolTaps(p, o).visit(
        p, [&](I32 codes) __attribute__((always_inline)) { acc = kAverage ? acc + codes : max(acc, codes); });
    if constexpr (kAverage) acc = mean.of(o, acc) + broadcast_i32(p.y_zero);
    store_codes(p.dst + o * kLanes, acc & mask, kAverage ? p.y_is_signed : p.is_signed, p.is_plain ? p.lanes : kLanes);
  }
}

// The mean of all pixels.
void pool_all(const CodesPoolRow& p) {
  const I32 mask = mask_of_lanes(p.lanes);
  const CodesMean of(p);
  I32 sums[4];
  for (I32& sum : sums) sum = broadcast_i32(0);
  int64_t i = 0;
  for (; i + 4 <= p.width; i += 4) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] = sums[k] + load_codes(p.src + (i + k) * kLanes, p.is_signed);
  }
  for (; i < p.width; ++i) sums[0] = sums[0] + load_codes(p.src + i * kLanes, p.is_signed);
  const I32 sum = sums[0] + sums[1] + (sums[2] + sums[3]) - broadcast_i32((int32_t)p.width * p.zero);
  F32 mean = zero();
  if (p.width > 0) mean = to_f32(sum) * broadcast(p.scale) / broadcast((float)p.width);
  const I32 codes = round_to_i32(min(of.hi, max(of.lo, mean / broadcast(p.y_scale)))) + broadcast_i32(p.y_zero);
  store_codes(p.dst, codes & mask, p.y_is_signed, p.is_plain ? p.lanes : kLanes);
}

// Output pixels at a time, whose windows have up to kPoolColumns columns of the image together.
constexpr int64_t kPoolColumns = 128;
struct PoolPixels {
  int64_t begin, end;     // of the output
  int64_t left, columns;  // the image's first column that they read, and how many
  int64_t first, last;    // those inside the image, counted from `left` on

  NEO_INLINE PoolPixels(const CodesPoolRow& p, int64_t from) {
    const int64_t span = (p.taps - 1) * p.dilation + 1;
    begin = from;
    end = smaller(begin + (kPoolColumns - span) / p.stride + 1, p.pixels);
    left = begin * p.stride - p.pad;
    columns = (end - 1 - begin) * p.stride + span;
    first = left < 0 ? smaller(-left, columns) : 0;
    last = smaller(p.width - left, columns);
    if (last < first) last = first;
  }
};

// The largest codes of columns, then of the columns of each window.
void max_row(const CodesPoolRow& p) {
  constexpr int64_t kBytes = kPixelsOfWords * kLanes;
  alignas(64) uint8_t largest[(kPoolColumns + 2 * kPixelsOfWords) * kLanes];
  const I32 flip = broadcast_i32(p.is_signed ? (int32_t)0x80808080 : 0), kept = lanes_of_pixels(p.lanes);
  const int64_t next_plane = p.src_plane - p.rows * p.src_row;
  for (int64_t begin = 0; begin < p.pixels;) {
    const PoolPixels o(p, begin);
    for (int64_t i = o.first * kLanes; i < o.last * kLanes; i += kBytes) {
      const int64_t count = smaller(kBytes, o.last * kLanes - i);
      const uint8_t* row = p.src + o.left * kLanes + i;
      I32 acc = broadcast_i32(0);
      for (int64_t plane = 0; plane < p.planes; ++plane, row += next_plane) {
        for (int64_t r = 0; r < p.rows; ++r, row += p.src_row) {
          alignas(64) uint8_t rest[kBytes];
          if (count < kBytes) __builtin_memcpy(rest, row, (size_t)count);
          acc = max_bytes(acc, load_i32((const int32_t*)(count < kBytes ? rest : row)) ^ flip);
        }
      }
      store_i32((int32_t*)(largest + i), acc);
    }
    __builtin_memset(largest, 0, (size_t)(o.first * kLanes));
    __builtin_memset(largest + o.last * kLanes, 0, (size_t)((o.columns - o.last) * kLanes));
    const int64_t windows = (o.end - 1 - begin) * p.stride + 1;
    for (int64_t i = 0; i < windows; i += kPixelsOfWords) {
      uint8_t* at = largest + i * kLanes;
      I32 acc = load_i32((const int32_t*)at);
      for (int64_t tap = 1; tap < p.taps; ++tap)
        acc = max_bytes(acc, load_i32((const int32_t*)(at + tap * p.dilation * kLanes)));
      store_i32((int32_t*)at, (acc ^ flip) & kept);
    }
    for (int64_t i = begin; i < o.end; ++i)
      __builtin_memcpy(p.dst + i * kLanes, largest + (i - begin) * p.stride * kLanes, kLanes);
    begin = o.end;
  }
}

// Sums of the codes of `count` columns.
NEO_INLINE void sum_columns(const CodesPoolRow& p, const uint8_t* src, int64_t count, int32_t* sums) {
  const int64_t next_plane = p.src_plane - p.rows * p.src_row;
  const auto sum = [&]<int kColumns>(I32(&acc)[kColumns]) __attribute__((always_inline)) {
    for (I32& a : acc) a = broadcast_i32(0);
    const uint8_t* row = src;
    for (int64_t plane = 0; plane < p.planes; ++plane, row += next_plane) {
      for (int64_t r = 0; r < p.rows; ++r, row += p.src_row) {
#pragma GCC unroll 4
        for (int k = 0; k < kColumns; ++k) acc[k] = acc[k] + load_codes(row + k * kLanes, p.is_signed);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kColumns; ++k) store_i32(sums + k * kLanes, acc[k]);
    src += kColumns * kLanes;
    sums += kColumns * kLanes;
  };
  I32 four[4], one[1];
  for (; count >= 4; count -= 4) sum(four);
  for (; count > 0; --count) sum(one);
}

// The sums of columns, then of the columns of each window.
void mean_row(const CodesPoolRow& p) {
  constexpr int kTogether = 4;
  int32_t sums[kPoolColumns * kLanes];
  const I32 mask = mask_of_lanes(p.lanes), y_zero = broadcast_i32(p.y_zero);
  const CodesMean mean(p);
  const bool is_exact = mean.is_often_halfway();
  const int64_t whole = p.planes * p.rows * p.taps, span = (p.taps - 1) * p.dilation + 1;
  const CodesMean::Nearby of_whole = mean.nearby(whole, p.counted_rows > 0 ? p.counted_rows * p.taps : whole);
  for (int64_t begin = 0; begin < p.pixels;) {
    const PoolPixels o(p, begin);
    if (!is_exact) {
      __builtin_memset(sums, 0, (size_t)(o.first * kLanes) * sizeof *sums);
      sum_columns(p, p.src + (o.left + o.first) * kLanes, o.last - o.first, sums + o.first * kLanes);
      __builtin_memset(sums + o.last * kLanes, 0, (size_t)((o.columns - o.last) * kLanes) * sizeof *sums);
    }
    for (int64_t i = begin; i < o.end;) {
      const int64_t left = i * p.stride - p.pad;
      const int32_t* at = sums + (i - begin) * p.stride * kLanes;
      uint8_t* dst = p.dst + i * kLanes;
      const bool are_whole = left >= 0 && left + (kTogether - 1) * p.stride + span <= p.width;
      if (!is_exact && are_whole && i + kTogether <= o.end) {
        I32 acc[kTogether], codes[kTogether];
#pragma GCC unroll 4
        for (int k = 0; k < kTogether; ++k) acc[k] = load_i32(at + k * p.stride * kLanes);
        for (int64_t tap = 1; tap < p.taps; ++tap) {
          const int32_t* column = at + tap * p.dilation * kLanes;
#pragma GCC unroll 4
          for (int k = 0; k < kTogether; ++k) acc[k] = acc[k] + load_i32(column + k * p.stride * kLanes);
        }
        Mask sure = mean.round(of_whole, acc[0], codes[0]);
#pragma GCC unroll 3
        for (int k = 1; k < kTogether; ++k) sure = mask_and(sure, mean.round(of_whole, acc[k], codes[k]));
        if (!all(sure)) {
          for (int k = 0; k < kTogether; ++k) codes[k] = mean.exact(i + k);
        }
        for (I32& code : codes) code = (code + y_zero) & mask;
        if constexpr (kStoresFour) {
          store_four(dst, kLanes, kTogether, codes[0], codes[1], codes[2], codes[3], 0, p.y_is_signed);
        } else {
          for (int k = 0; k < kTogether; ++k) store_codes(dst + k * kLanes, codes[k], p.y_is_signed, kLanes);
        }
        i += kTogether;
        continue;
      }
      I32 codes;
      if (is_exact) {
        codes = mean.exact(i);
      } else {
        I32 acc = load_i32(at);
        for (int64_t tap = 1; tap < p.taps; ++tap) acc = acc + load_i32(at + tap * p.dilation * kLanes);
        const bool is_whole = left >= 0 && left + span <= p.width;
        if (!is_whole || !all(mean.round(of_whole, acc, codes))) codes = mean.of(i, acc);
      }
      store_codes(dst, (codes + y_zero) & mask, p.y_is_signed, kLanes);
      ++i;
    }
    begin = o.end;
  }
}

void pool_row(const CodesPoolRow& p) {
  if (p.is_global) return pool_all(p);
  const bool is_narrow = (p.taps - 1) * p.dilation < kPoolColumns && !p.is_plain;
  if (is_narrow) return p.is_average ? mean_row(p) : max_row(p);
  p.is_average ? pool_row_of<true>(p) : pool_row_of<false>(p);
}

// The sums and products of the numbers in steps of y's scale, near enough: multiples of the codes and of their
// products. The float32 operators' result is within 16 * 2^-24 of the largest magnitude that a part may have.
template <CodesBinary::Op kOp>
struct NearbySteps {
  static constexpr bool kIsProduct = kOp == CodesBinary::Op::Mul;
  F32 a, b, begin, sure;

  explicit NearbySteps(const CodesBinary& f) {
    constexpr float kMaxCode = 255, kMaxPart = kIsProduct ? kMaxCode * kMaxCode : 2 * kMaxCode;
    constexpr float kRoundings = 0x1p-20f, kMaxSure = 1e5f;
    const float by_a = f.a_scale / f.y_scale, by_b = (kOp == CodesBinary::Op::Sub ? -1 : 1) * (f.b_scale / f.y_scale);
    const float factor = f.a_scale * f.b_scale / f.y_scale;
    const float part = kMaxPart * (kIsProduct ? factor : by_a + (by_b < 0 ? -by_b : by_b));
    // Factors that are no normal numbers leave nothing sure.
    const bool is_normal = f.a_scale > 1e-15f && f.b_scale > 1e-15f && f.y_scale > 1e-15f && f.y_scale < 1e15f;
    sure = broadcast(is_normal && part < kMaxSure ? 0.4999f - part * kRoundings : -1.0f);
    a = broadcast(kIsProduct ? factor : by_a);
    b = broadcast(by_b);
    begin = broadcast(-((float)f.a_zero * by_a + (float)f.b_zero * by_b));
  }
};

template <CodesBinary::Op kOp>
void binary_of(const CodesBinary& f, const uint8_t* a, const uint8_t* b, bool repeats, uint8_t* y, int64_t count) {
  constexpr int kTogether = 4;
  const F32 lo = broadcast(f.lo), hi = broadcast(f.hi);
  const I32 a_zero = broadcast_i32(f.a_zero), b_zero = broadcast_i32(f.b_zero), y_zero = broadcast_i32(f.y_zero);
  const NearbySteps<kOp> nearby(f);
  const auto exact = [&](I32 x, I32 z) __attribute__((always_inline)) {
    const F32 p = to_f32(x - a_zero) * broadcast(f.a_scale), q = to_f32(z - b_zero) * broadcast(f.b_scale);
    const F32 number = kOp == CodesBinary::Op::Add ? p + q : kOp == CodesBinary::Op::Sub ? p - q : p * q;
    const F32 steps = number / broadcast(f.y_scale);
    return round_to_i32(select(is_nan(steps), zero(), min(hi, max(lo, steps))));
  };
  const I32 same = repeats ? load_codes(b, f.b_is_signed) : broadcast_i32(0);
  int64_t i = 0;
  for (; i + kTogether * kLanes <= count; i += kTogether * kLanes) {
    I32 x[kTogether], z[kTogether], codes[kTogether];
    F32 off = zero();
#pragma GCC unroll 4
    for (int k = 0; k < kTogether; ++k) {
      x[k] = load_codes(a + i + k * kLanes, f.a_is_signed);
      z[k] = repeats ? same : load_codes(b + i + k * kLanes, f.b_is_signed);
      F32 steps;
      if constexpr (kOp == CodesBinary::Op::Mul) {
        steps = to_f32(x[k] - a_zero) * to_f32(z[k] - b_zero) * nearby.a;
      } else {
        steps = fma(to_f32(x[k]), nearby.a, fma(to_f32(z[k]), nearby.b, nearby.begin));
      }
      const F32 between = min(hi, max(lo, steps));
      codes[k] = round_to_i32(between);
      off = max(off, abs(between - to_f32(codes[k])));
    }
    if (!all(lt(off, nearby.sure))) {
#pragma GCC unroll 1
      for (int k = 0; k < kTogether; ++k) codes[k] = exact(x[k], z[k]);
    }
    if constexpr (kStoresFour) {
      store_four(y + i, kLanes, kTogether, codes[0], codes[1], codes[2], codes[3], f.y_zero, f.y_is_signed);
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < kTogether; ++k) store_codes(y + i + k * kLanes, codes[k] + y_zero, f.y_is_signed, kLanes);
    }
  }
  for (; i < count; i += kLanes) {
    const int64_t n = smaller(kLanes, count - i);
    alignas(64) uint8_t of_a[kLanes] = {}, of_b[kLanes] = {};
    __builtin_memcpy(of_a, a + i, (size_t)n);
    if (!repeats) __builtin_memcpy(of_b, b + i, (size_t)n);
    const I32 codes = exact(load_codes(of_a, f.a_is_signed), repeats ? same : load_codes(of_b, f.b_is_signed));
    store_codes(y + i, codes + y_zero, f.y_is_signed, n);
  }
}

void binary(const CodesBinary& f, const uint8_t* a, const uint8_t* b, bool repeats, uint8_t* y, int64_t count) {
  switch (f.op) {
    case CodesBinary::Op::Add:
      return binary_of<CodesBinary::Op::Add>(f, a, b, repeats, y, count);
    case CodesBinary::Op::Sub:
      return binary_of<CodesBinary::Op::Sub>(f, a, b, repeats, y, count);
    case CodesBinary::Op::Mul:
      return binary_of<CodesBinary::Op::Mul>(f, a, b, repeats, y, count);
  }
}

using Type = CodesLinear::Type;

NEO_INLINE constexpr int64_t item_of(Type type) {
  return type == Type::Int32 ? 4 : type == Type::UInt16 || type == Type::Int16 ? 2 : 1;
}

// A vector of codes of a byte or two.
template <Type kType>
NEO_INLINE I32 load_vector(const void* at) {
  if constexpr (kType == Type::UInt8) return load_u8((const uint8_t*)at);
  if constexpr (kType == Type::Int8) return load_i8((const int8_t*)at);
  const I32 words = load_u16((const uint16_t*)at);
  return kType == Type::Int16 ? shift_right<16>(shift_left<16>(words)) : words;
}

template <Type kType>
NEO_INLINE void store_vector(void* at, I32 x) {
  if constexpr (kType == Type::UInt8) {
    store_u8((uint8_t*)at, x);
  } else if constexpr (kType == Type::Int8) {
    store_i8((int8_t*)at, x);
  } else {
    store_u16((uint16_t*)at, x);
  }
}

// Elements [i, i + n) of codes, at most a vector; missing lanes are 0.
NEO_INLINE I32 load_some(const CodesLinear& f, const void* codes, int64_t i, int64_t n) {
  const int64_t item = item_of(f.type);
  const char* at = (const char*)codes + i * item;
  alignas(64) char lanes[4 * kLanes];
  if (n < kLanes) {
    store_i32((int32_t*)lanes, broadcast_i32(0));
    __builtin_memcpy(lanes, at, (size_t)(n * item));
    at = lanes;
  }
  if (f.mask) {
    const I32 sign = broadcast_i32(f.sign);
    return ((load_u8((const uint8_t*)at) & broadcast_i32(f.mask)) ^ sign) - sign;
  }
  switch (f.type) {
    case Type::UInt8:
      return load_vector<Type::UInt8>(at);
    case Type::Int8:
      return load_vector<Type::Int8>(at);
    case Type::UInt16:
      return load_vector<Type::UInt16>(at);
    case Type::Int16:
      return load_vector<Type::Int16>(at);
    case Type::Int32:
      break;
  }
  return load_i32((const int32_t*)at);
}

NEO_INLINE void store_some(const CodesLinear& f, void* codes, int64_t i, int64_t n, I32 x) {
  const int64_t item = item_of(f.type);
  char* to = (char*)codes + i * item;
  alignas(64) char lanes[4 * kLanes];
  char* at = n < kLanes ? lanes : to;
  if (f.mask) x = x & broadcast_i32(f.mask);
  if (item == 2) {
    store_u16((uint16_t*)at, x);
  } else if (f.type == Type::UInt8) {
    store_u8((uint8_t*)at, x);
  } else {
    store_i8((int8_t*)at, x);
  }
  if (n < kLanes) __builtin_memcpy(to, lanes, (size_t)(n * item));
}

// The scale and zero point of the elements from i on.
struct Grid {
  F32 scale;
  I32 zero;
};
NEO_INLINE Grid grid_at(const CodesLinear& f, int64_t i, int64_t n) {
  if (!f.scales) return {broadcast(f.scale), broadcast_i32(f.zero)};
  return {n < kLanes ? load_n(f.scales + i, n) : load(f.scales + i),
          f.zeros ? load_some(f, f.zeros, i, n) : broadcast_i32(0)};
}

// round(x / scale) between lo and hi; 0 of a NaN.
NEO_INLINE I32 rounded(F32 x, F32 scale, F32 lo, F32 hi) {
  const F32 steps = x / scale;
  return round_to_i32(select(is_nan(steps), zero(), min(hi, max(lo, steps))));
}

// Whole vectors of codes of a byte or two that have one scale; how many elements those are.
template <Type kType>
int64_t quantize_vectors(const CodesLinear& f, const float* x, void* y, int64_t count) {
  const CodesDivisor scale(f.scale);
  const F32 lo = broadcast((float)(f.lo - f.zero)), hi = broadcast((float)(f.hi - f.zero));
  const I32 zero_point = broadcast_i32(f.zero);
  int64_t i = 0;
  if constexpr (kStoresFour && item_of(kType) == 1) {
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      I32 codes[4];
      Mask sure = scale.nearby(load(x + i), lo, hi, codes[0]);
#pragma GCC unroll 3
      for (int k = 1; k < 4; ++k) sure = mask_and(sure, scale.nearby(load(x + i + k * kLanes), lo, hi, codes[k]));
      if (!all(sure)) {
#pragma GCC unroll 1
        for (int k = 0; k < 4; ++k) codes[k] = scale.exact(load(x + i + k * kLanes), lo, hi);
      }
      store_four((uint8_t*)y + i, kLanes, 4, codes[0], codes[1], codes[2], codes[3], f.zero, kType == Type::Int8);
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    const F32 numbers = load(x + i);
    const I32 steps = item_of(kType) == 1 ? scale.round(numbers, lo, hi) : rounded(numbers, scale.scale, lo, hi);
    store_vector<kType>((char*)y + i * item_of(kType), steps + zero_point);
  }
  return i;
}

template <Type kType>
int64_t dequantize_vectors(const CodesLinear& f, const void* x, float* y, int64_t count) {
  const F32 scale = broadcast(f.scale);
  const I32 zero_point = broadcast_i32(f.zero);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(y + i, to_f32(load_vector<kType>((const char*)x + i * item_of(kType)) - zero_point) * scale);
  return i;
}

int64_t quantize_whole(const CodesLinear& f, const float* x, void* y, int64_t count) {
  if (f.mask || f.scales) return 0;
  switch (f.type) {
    case Type::UInt8:
      return quantize_vectors<Type::UInt8>(f, x, y, count);
    case Type::Int8:
      return quantize_vectors<Type::Int8>(f, x, y, count);
    case Type::UInt16:
    case Type::Int16:
      return quantize_vectors<Type::UInt16>(f, x, y, count);
    case Type::Int32:
      break;
  }
  return 0;
}

void quantize(const CodesLinear& f, const float* x, void* y, int64_t count) {
  for (int64_t i = quantize_whole(f, x, y, count); i < count; i += kLanes) {
    const int64_t n = smaller(kLanes, count - i);
    const Grid g = grid_at(f, i, n);
    const F32 numbers = n < kLanes ? load_n(x + i, n) : load(x + i);
    const F32 lo = to_f32(broadcast_i32(f.lo) - g.zero), hi = to_f32(broadcast_i32(f.hi) - g.zero);
    store_some(f, y, i, n, rounded(numbers, g.scale, lo, hi) + g.zero);
  }
}

int64_t dequantize_whole(const CodesLinear& f, const void* x, float* y, int64_t count) {
  if (f.mask || f.scales) return 0;
  switch (f.type) {
    case Type::UInt8:
      return dequantize_vectors<Type::UInt8>(f, x, y, count);
    case Type::Int8:
      return dequantize_vectors<Type::Int8>(f, x, y, count);
    case Type::UInt16:
      return dequantize_vectors<Type::UInt16>(f, x, y, count);
    case Type::Int16:
      return dequantize_vectors<Type::Int16>(f, x, y, count);
    case Type::Int32:
      break;
  }
  return 0;
}

void dequantize(const CodesLinear& f, const void* x, float* y, int64_t count) {
  for (int64_t i = dequantize_whole(f, x, y, count); i < count; i += kLanes) {
    const int64_t n = smaller(kLanes, count - i);
    const Grid g = grid_at(f, i, n);
    const F32 numbers = to_f32(load_some(f, x, i, n) - g.zero) * g.scale;
    n < kLanes ? store_n(y + i, numbers, n) : store(y + i, numbers);
  }
}

void range(const float* x, int64_t count, float& lo, float& hi) {
  F32 least = broadcast(lo), most = broadcast(hi);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32 v = load(x + i);
    least = min(v, least);
    most = max(v, most);
  }
  lo = reduce_min(least);
  hi = reduce_max(most);
  for (; i < count; ++i) {
    lo = x[i] < lo ? x[i] : lo;
    hi = x[i] > hi ? x[i] : hi;
  }
}

void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  look_up_bytes(table, x, y, count);
}

constexpr CodesKernels kCodesKernels = {&pool_row, &quantize, &dequantize, &range, &binary, &look_up, &clear_lanes};

}  // namespace

const CodesKernels& codes_kernels() {
  return kCodesKernels;
}

}  // namespace neo::NEO_ISA
