#pragma once

// The scalar tier of simd/vec.h: four lanes in the compiler's own vectors, which any target has (SSE2 on x86-64).
// Include simd/vec.h instead.

#include "base/span.h"

namespace neo::NEO_ISA {

constexpr int kLanes = 4;
constexpr int kVectorRegisters = 16;
constexpr bool kFusedMultiplyAdd = false;

typedef float FloatLanes __attribute__((vector_size(16)));
typedef int32_t IntLanes __attribute__((vector_size(16)));
typedef uint32_t UintLanes __attribute__((vector_size(16)));

struct F32 {
  FloatLanes v;
};
struct I32 {
  IntLanes v;
};
struct Mask {
  IntLanes v;
};

NEO_INLINE F32 load(const float* p) {
  F32 x;
  __builtin_memcpy(&x.v, p, sizeof x.v);
  return x;
}
NEO_INLINE void store(float* p, F32 x) {
  __builtin_memcpy(p, &x.v, sizeof x.v);
}
NEO_INLINE F32 load_n(const float* p, int64_t n) {
  return {FloatLanes{n > 0 ? p[0] : 0.0f, n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, n > 3 ? p[3] : 0.0f}};
}
NEO_INLINE void store_n(float* p, F32 x, int64_t n) {
  if (n > 0) p[0] = x.v[0];
  if (n > 1) p[1] = x.v[1];
  if (n > 2) p[2] = x.v[2];
  if (n > 3) p[3] = x.v[3];
}
NEO_INLINE F32 broadcast(float x) {
  return {FloatLanes{x, x, x, x}};
}
NEO_INLINE F32 zero() {
  return broadcast(0.0f);
}

NEO_INLINE F32 add(F32 a, F32 b) {
  return {a.v + b.v};
}
NEO_INLINE F32 sub(F32 a, F32 b) {
  return {a.v - b.v};
}
NEO_INLINE F32 mul(F32 a, F32 b) {
  return {a.v * b.v};
}
NEO_INLINE F32 div(F32 a, F32 b) {
  return {a.v / b.v};
}
NEO_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {a.v * b.v + c.v};
}
NEO_INLINE void accumulate(F32& c, F32 a, F32 b) {
  c = fma(a, b, c);
}
NEO_INLINE void accumulate(F32& c, const float& a, F32 b) {
  accumulate(c, broadcast(a), b);
}
NEO_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {c.v - a.v * b.v};
}

NEO_INLINE I32 bits_as_i32(F32 a) {
  return {(IntLanes)a.v};
}
NEO_INLINE F32 bits_as_f32(I32 a) {
  return {(FloatLanes)a.v};
}
NEO_INLINE F32 neg(F32 a) {
  return {(FloatLanes)((IntLanes)a.v ^ INT32_MIN)};
}
NEO_INLINE F32 abs(F32 a) {
  return {(FloatLanes)((IntLanes)a.v & INT32_MAX)};
}
NEO_INLINE F32 sqrt(F32 a) {
  return {
      FloatLanes{__builtin_sqrtf(a.v[0]), __builtin_sqrtf(a.v[1]), __builtin_sqrtf(a.v[2]), __builtin_sqrtf(a.v[3])}};
}

NEO_INLINE Mask lt(F32 a, F32 b) {
  return {a.v < b.v};
}
NEO_INLINE Mask le(F32 a, F32 b) {
  return {a.v <= b.v};
}
NEO_INLINE Mask gt(F32 a, F32 b) {
  return {a.v > b.v};
}
NEO_INLINE Mask ge(F32 a, F32 b) {
  return {a.v >= b.v};
}
NEO_INLINE Mask eq(F32 a, F32 b) {
  return {a.v == b.v};
}
NEO_INLINE Mask ne(F32 a, F32 b) {
  return {a.v != b.v};
}
NEO_INLINE Mask mask_and(Mask a, Mask b) {
  return {a.v & b.v};
}
NEO_INLINE Mask mask_or(Mask a, Mask b) {
  return {a.v | b.v};
}
NEO_INLINE Mask mask_not(Mask a) {
  return {~a.v};
}
NEO_INLINE bool any(Mask a) {
  return (a.v[0] | a.v[1] | a.v[2] | a.v[3]) != 0;
}
NEO_INLINE bool all(Mask a) {
  return (a.v[0] & a.v[1] & a.v[2] & a.v[3]) != 0;
}
NEO_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {(FloatLanes)(((IntLanes)a.v & m.v) | ((IntLanes)b.v & ~m.v))};
}
NEO_INLINE I32 select(Mask m, I32 a, I32 b) {
  return {(a.v & m.v) | (b.v & ~m.v)};
}

// 2^23 added and taken away rounds to an integer; above it every float is one.
NEO_INLINE F32 round_even(F32 a) {
  const FloatLanes magnitude = abs(a).v;
  const FloatLanes rounded = (magnitude + 8388608.0f) - 8388608.0f;
  const IntLanes sign = (IntLanes)a.v & INT32_MIN;
  return select({magnitude < 8388608.0f}, F32{(FloatLanes)((IntLanes)rounded | sign)}, a);
}
NEO_INLINE F32 floor(F32 a) {
  const F32 r = round_even(a);
  const FloatLanes one = (FloatLanes)((r.v > a.v) & (IntLanes)broadcast(1.0f).v);
  return select({r.v > a.v}, F32{r.v - one}, r);
}
NEO_INLINE F32 ceil(F32 a) {
  return neg(floor(neg(a)));
}
NEO_INLINE F32 trunc(F32 a) {
  const F32 down = floor(abs(a));
  return {(FloatLanes)((IntLanes)down.v | ((IntLanes)a.v & INT32_MIN))};
}

NEO_INLINE F32 min(F32 a, F32 b) {
  return select(lt(a, b), a, b);
}
NEO_INLINE F32 max(F32 a, F32 b) {
  return select(gt(a, b), a, b);
}
NEO_INLINE F32 min_nan(F32 a, F32 b) {
  return select(mask_or(lt(a, b), ne(a, a)), a, b);
}
NEO_INLINE F32 max_nan(F32 a, F32 b) {
  return select(mask_or(gt(a, b), ne(a, a)), a, b);
}

NEO_INLINE I32 load_i32(const int32_t* p) {
  I32 x;
  __builtin_memcpy(&x.v, p, sizeof x.v);
  return x;
}
NEO_INLINE void store_i32(int32_t* p, I32 x) {
  __builtin_memcpy(p, &x.v, sizeof x.v);
}
NEO_INLINE I32 load_i32_n(const int32_t* p, int64_t n) {
  return {IntLanes{n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0}};
}
NEO_INLINE void store_i32_n(int32_t* p, I32 x, int64_t n) {
  if (n > 0) p[0] = x.v[0];
  if (n > 1) p[1] = x.v[1];
  if (n > 2) p[2] = x.v[2];
  if (n > 3) p[3] = x.v[3];
}
NEO_INLINE I32 broadcast_i32(int32_t x) {
  return {IntLanes{x, x, x, x}};
}
NEO_INLINE I32 iota_i32() {
  return {IntLanes{0, 1, 2, 3}};
}
NEO_INLINE I32 add(I32 a, I32 b) {
  return {(IntLanes)((UintLanes)a.v + (UintLanes)b.v)};
}
NEO_INLINE I32 sub(I32 a, I32 b) {
  return {(IntLanes)((UintLanes)a.v - (UintLanes)b.v)};
}
NEO_INLINE I32 mul(I32 a, I32 b) {
  return {(IntLanes)((UintLanes)a.v * (UintLanes)b.v)};
}
NEO_INLINE I32 bit_and(I32 a, I32 b) {
  return {a.v & b.v};
}
NEO_INLINE I32 bit_or(I32 a, I32 b) {
  return {a.v | b.v};
}
NEO_INLINE I32 bit_xor(I32 a, I32 b) {
  return {a.v ^ b.v};
}
template <int k>
NEO_INLINE I32 shift_left(I32 a) {
  return {(IntLanes)((UintLanes)a.v << k)};
}
template <int k>
NEO_INLINE I32 shift_right(I32 a) {
  return {a.v >> k};
}
template <int k>
NEO_INLINE I32 shift_right_logical(I32 a) {
  return {(IntLanes)((UintLanes)a.v >> k)};
}
NEO_INLINE Mask eq(I32 a, I32 b) {
  return {a.v == b.v};
}
NEO_INLINE Mask gt(I32 a, I32 b) {
  return {a.v > b.v};
}
NEO_INLINE I32 min(I32 a, I32 b) {
  return select(gt(a, b), b, a);
}
NEO_INLINE I32 max(I32 a, I32 b) {
  return select(gt(a, b), a, b);
}

NEO_INLINE F32 to_f32(I32 a) {
  return {__builtin_convertvector(a.v, FloatLanes)};
}
// The conversion of a lane that does not fit is undefined in C++, so such lanes are made zero first.
NEO_INLINE I32 trunc_to_i32(F32 a) {
  const F32 safe = select(lt(abs(a), broadcast(2147483648.0f)), a, zero());
  return {__builtin_convertvector(safe.v, IntLanes)};
}
NEO_INLINE I32 round_to_i32(F32 a) {
  return trunc_to_i32(round_even(a));
}

NEO_INLINE I32 load_u8(const uint8_t* p) {
  return {IntLanes{p[0], p[1], p[2], p[3]}};
}
NEO_INLINE I32 load_i8(const int8_t* p) {
  return {IntLanes{p[0], p[1], p[2], p[3]}};
}
NEO_INLINE I32 load_u16(const uint16_t* p) {
  return {IntLanes{p[0], p[1], p[2], p[3]}};
}
NEO_INLINE void store_u8(uint8_t* p, I32 x) {
  const I32 s = min(max(x, broadcast_i32(0)), broadcast_i32(255));
  for (int i = 0; i < kLanes; ++i) p[i] = (uint8_t)s.v[i];
}
NEO_INLINE void store_i8(int8_t* p, I32 x) {
  const I32 s = min(max(x, broadcast_i32(-128)), broadcast_i32(127));
  for (int i = 0; i < kLanes; ++i) p[i] = (int8_t)s.v[i];
}
NEO_INLINE void store_u16(uint16_t* p, I32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = (uint16_t)x.v[i];
}

// Halves become floats by a shift into place and a multiplication that repairs the exponent; subnormal halves
// come out of the same multiplication.
NEO_INLINE F32 load_f16(const uint16_t* p) {
  const I32 h = load_u16(p);
  const I32 magnitude = bit_and(h, broadcast_i32(0x7fff));
  const I32 sign = shift_left<16>(bit_and(h, broadcast_i32(0x8000)));
  // A subnormal half is no subnormal float, which may count as zero.
  const F32 subnormal = mul(to_f32(magnitude), broadcast(0x1p-24f));
  const I32 normal = add(shift_left<13>(magnitude), broadcast_i32(0x38000000));
  const I32 finite = select(gt(broadcast_i32(0x400), magnitude), bits_as_i32(subnormal), normal);
  const I32 special = bit_or(shift_left<13>(magnitude), broadcast_i32(0x7f800000));
  const I32 bits = select(gt(magnitude, broadcast_i32(0x7bff)), special, finite);
  return bits_as_f32(bit_or(bits, sign));
}
NEO_INLINE void store_f16(uint16_t* p, F32 x) {
  const I32 sign = bit_and(bits_as_i32(x), broadcast_i32(INT32_MIN));
  const F32 magnitude = abs(x);
  const I32 u = bits_as_i32(magnitude);
  const I32 odd = bit_and(shift_right_logical<13>(u), broadcast_i32(1));
  const I32 normal = shift_right_logical<13>(add(add(u, broadcast_i32((int32_t)0xc8000fff)), odd));
  const I32 subnormal = sub(bits_as_i32(add(magnitude, broadcast(0.5f))), broadcast_i32(0x3f000000));
  I32 h = select(lt(magnitude, broadcast(0x1p-14f)), subnormal, normal);
  h = select(ge(magnitude, broadcast(65520.0f)), broadcast_i32(0x7c00), h);
  h = select(ne(x, x), broadcast_i32(0x7e00), h);
  store_u16(p, bit_or(h, shift_right_logical<16>(sign)));
}
NEO_INLINE F32 gather(const float* p, I32 i) {
  return {FloatLanes{p[i.v[0]], p[i.v[1]], p[i.v[2]], p[i.v[3]]}};
}

NEO_INLINE float reduce_add(F32 a) {
  return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
}
NEO_INLINE float reduce_max(F32 a) {
  const float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2], y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return x > y ? x : y;
}
NEO_INLINE float reduce_min(F32 a) {
  const float x = a.v[0] < a.v[2] ? a.v[0] : a.v[2], y = a.v[1] < a.v[3] ? a.v[1] : a.v[3];
  return x < y ? x : y;
}

NEO_INLINE F32 pick(F32 kept, F32 x, I32 i) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (i.v[lane] >= 0) kept.v[lane] = x.v[i.v[lane]];
  }
  return kept;
}
// The lanes of a (0 to 3) and b (4 to 7) with these numbers.
template <int I0, int I1, int I2, int I3>
NEO_INLINE FloatLanes choose(FloatLanes a, FloatLanes b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, I0, I1, I2, I3);
#else
  return __builtin_shuffle(a, b, IntLanes{I0, I1, I2, I3});
#endif
}
NEO_INLINE F32 even(F32 a, F32 b) {
  return {choose<0, 2, 4, 6>(a.v, b.v)};
}
NEO_INLINE void transpose(F32* rows) {
  const FloatLanes ab0 = choose<0, 4, 1, 5>(rows[0].v, rows[1].v);
  const FloatLanes ab1 = choose<2, 6, 3, 7>(rows[0].v, rows[1].v);
  const FloatLanes cd0 = choose<0, 4, 1, 5>(rows[2].v, rows[3].v);
  const FloatLanes cd1 = choose<2, 6, 3, 7>(rows[2].v, rows[3].v);
  rows[0].v = choose<0, 1, 4, 5>(ab0, cd0);
  rows[1].v = choose<2, 3, 6, 7>(ab0, cd0);
  rows[2].v = choose<0, 1, 4, 5>(ab1, cd1);
  rows[3].v = choose<2, 3, 6, 7>(ab1, cd1);
}

}  // namespace neo::NEO_ISA
