#include "routines/cpu/int8/codes_kernels.h"

#include "routines/cpu/int8/dot_store.h"
#include "simd/lookup.h"

namespace neo::NEO_ISA {
namespace {

NEO_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Divides by the scale of codes of 8 bits and rounds. The product with the reciprocal is within 3 * 2^-24 of the
// quotient's magnitude, which is below 256: lanes are divided where that could round to another code.
struct CodesDivisor {
  F32 scale, reciprocal, sure;

  NEO_INLINE explicit CodesDivisor(float by)
      : scale(broadcast(by)),
        reciprocal(broadcast(1 / by)),
        sure(broadcast(by > 1e-30f && by < 1e30f ? 0.4999f : -1.0f)) {}

  // round(x / scale) between lo and hi; 0 of a NaN.
  NEO_INLINE I32 round(F32 x, F32 lo, F32 hi) const {
    const F32 nearby = min(hi, max(lo, x * reciprocal));
    const I32 codes = round_to_i32(nearby);
    if (all(lt(abs(nearby - to_f32(codes)), sure))) return codes;
    const F32 steps = x / scale;
    return round_to_i32(select(is_nan(steps), zero(), min(hi, max(lo, steps))));
  }
};

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

template <bool kAverage>
void pool_row_of(const CodesPoolRow& p) {
  const I32 first = broadcast_i32(p.is_signed ? -128 : 0);
  const I32 mask = select(gt(broadcast_i32((int32_t)p.lanes), iota_i32()), broadcast_i32(-1), broadcast_i32(0));
  const F32 lo = broadcast((float)((p.y_is_signed ? -128 : 0) - p.y_zero));
  const F32 hi = broadcast((float)((p.y_is_signed ? 127 : 255) - p.y_zero));
  for (int64_t o = 0; o < p.pixels; ++o) {
    const int64_t left = o * p.stride - p.pad;
    int64_t begin = left < 0 ? (-left + p.dilation - 1) / p.dilation : 0;
    int64_t end = left >= p.width ? 0 : smaller(p.taps, (p.width - 1 - left) / p.dilation + 1);
    if (end < begin) end = begin;
    I32 acc = first;
    F32 sum = zero();
    const uint8_t* row = p.src + (left + begin * p.dilation) * kLanes;
    const int64_t next_plane = p.src_plane - p.rows * p.src_row;
    for (int64_t plane = 0; plane < p.planes; ++plane, row += next_plane) {
      for (int64_t i = 0; i < p.rows; ++i, row += p.src_row) {
        const uint8_t* at = row;
        for (int64_t j = begin; j < end; ++j, at += p.dilation * kLanes) {
          const I32 codes = load_codes(at, p.is_signed);
          if constexpr (kAverage) {
            sum = sum + to_f32(codes - broadcast_i32(p.zero)) * broadcast(p.scale);
          } else {
            acc = max(acc, codes);
          }
        }
      }
    }
    if constexpr (kAverage) {
      int64_t count = p.planes * p.rows * (end - begin);
      if (p.counted_rows > 0) {
        const int64_t room = p.padded_width - o * p.stride;
        count = p.counted_rows * (room <= 0 ? 0 : smaller(p.taps, (room - 1) / p.dilation + 1));
      }
      const F32 mean = count > 0 ? sum / broadcast((float)count) : zero();
      acc = round_to_i32(min(hi, max(lo, mean / broadcast(p.y_scale)))) + broadcast_i32(p.y_zero);
    }
    store_codes(p.dst + o * kLanes, acc & mask, kAverage ? p.y_is_signed : p.is_signed, p.is_plain ? p.lanes : kLanes);
  }
}

// The mean of all pixels.
void pool_all(const CodesPoolRow& p) {
  const I32 mask = select(gt(broadcast_i32((int32_t)p.lanes), iota_i32()), broadcast_i32(-1), broadcast_i32(0));
  const F32 lo = broadcast((float)((p.y_is_signed ? -128 : 0) - p.y_zero));
  const F32 hi = broadcast((float)((p.y_is_signed ? 127 : 255) - p.y_zero));
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
  const I32 codes = round_to_i32(min(hi, max(lo, mean / broadcast(p.y_scale)))) + broadcast_i32(p.y_zero);
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

void pool_row(const CodesPoolRow& p) {
  if (p.is_global) return pool_all(p);
  if (!p.is_average && (p.taps - 1) * p.dilation < kPoolColumns) return max_row(p);
  p.is_average ? pool_row_of<true>(p) : pool_row_of<false>(p);
}

template <CodesBinary::Op kOp>
void binary_of(const CodesBinary& f, const uint8_t* a, const uint8_t* b, bool repeats, uint8_t* y, int64_t count) {
  const F32 lo = broadcast(f.lo), hi = broadcast(f.hi);
  const CodesDivisor y_scale(f.y_scale);
  const auto number = [](I32 codes, int32_t zero_point, float scale) __attribute__((always_inline)) {
    return to_f32(codes - broadcast_i32(zero_point)) * broadcast(scale);
  };
  const auto codes_of = [&](F32 p, F32 q) __attribute__((always_inline)) {
    const F32 x = kOp == CodesBinary::Op::Add ? p + q : kOp == CodesBinary::Op::Sub ? p - q : p * q;
    return y_scale.round(x, lo, hi) + broadcast_i32(f.y_zero);
  };
  const auto first = [&](I32 codes) __attribute__((always_inline)) {
    return number(codes, f.a_zero, f.a_scale);
  };
  const auto second = [&](I32 codes) __attribute__((always_inline)) {
    return number(codes, f.b_zero, f.b_scale);
  };
  const F32 same = repeats ? second(load_codes(b, f.b_is_signed)) : zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32 p = first(load_codes(a + i, f.a_is_signed));
    const F32 q = repeats ? same : second(load_codes(b + i, f.b_is_signed));
    store_codes(y + i, codes_of(p, q), f.y_is_signed, kLanes);
  }
  if (i < count) {
    const auto load_last = [&](const uint8_t* x, bool is_signed) __attribute__((always_inline)) {
      return is_signed ? load_i8_n((const int8_t*)x + i, count - i) : load_u8_n(x + i, count - i);
    };
    const F32 p = first(load_last(a, f.a_is_signed));
    const F32 q = repeats ? same : second(load_last(b, f.b_is_signed));
    store_codes(y + i, codes_of(p, q), f.y_is_signed, count - i);
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

NEO_INLINE int64_t item_of(Type type) {
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
