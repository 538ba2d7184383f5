#pragma once

// The neon tier of simd/vec.h: AArch64 Advanced SIMD. Include simd/vec.h instead.

#include <arm_neon.h>

#include "base/span.h"

namespace neo::NEO_ISA {

constexpr int kLanes = 4;
constexpr int kVectorRegisters = 32;
constexpr bool kFusedMultiplyAdd = true;

struct F32 {
  float32x4_t v;
};
struct I32 {
  int32x4_t v;
};
struct Mask {
  uint32x4_t v;
};

NEO_INLINE F32 load(const float* p) {
  return {vld1q_f32(p)};
}
NEO_INLINE void store(float* p, F32 x) {
  vst1q_f32(p, x.v);
}
NEO_INLINE F32 load_n(const float* p, int64_t n) {
  float lanes[4] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
NEO_INLINE void store_n(float* p, F32 x, int64_t n) {
  float lanes[4];
  store(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE F32 broadcast(float x) {
  return {vdupq_n_f32(x)};
}
NEO_INLINE F32 zero() {
  return {vdupq_n_f32(0.0f)};
}

NEO_INLINE F32 add(F32 a, F32 b) {
  return {vaddq_f32(a.v, b.v)};
}
NEO_INLINE F32 sub(F32 a, F32 b) {
  return {vsubq_f32(a.v, b.v)};
}
NEO_INLINE F32 mul(F32 a, F32 b) {
  return {vmulq_f32(a.v, b.v)};
}
NEO_INLINE F32 div(F32 a, F32 b) {
  return {vdivq_f32(a.v, b.v)};
}
NEO_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
NEO_INLINE void accumulate(F32& c, F32 a, F32 b) {
  c = fma(a, b, c);
}
NEO_INLINE void accumulate(F32& c, const float& a, F32 b) {
  accumulate(c, broadcast(a), b);
}
NEO_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {vfmsq_f32(c.v, a.v, b.v)};
}
NEO_INLINE F32 neg(F32 a) {
  return {vnegq_f32(a.v)};
}
NEO_INLINE F32 abs(F32 a) {
  return {vabsq_f32(a.v)};
}
NEO_INLINE F32 sqrt(F32 a) {
  return {vsqrtq_f32(a.v)};
}
NEO_INLINE F32 floor(F32 a) {
  return {vrndmq_f32(a.v)};
}
NEO_INLINE F32 ceil(F32 a) {
  return {vrndpq_f32(a.v)};
}
NEO_INLINE F32 trunc(F32 a) {
  return {vrndq_f32(a.v)};
}
NEO_INLINE F32 round_even(F32 a) {
  return {vrndnq_f32(a.v)};
}

NEO_INLINE Mask lt(F32 a, F32 b) {
  return {vcltq_f32(a.v, b.v)};
}
NEO_INLINE Mask le(F32 a, F32 b) {
  return {vcleq_f32(a.v, b.v)};
}
NEO_INLINE Mask gt(F32 a, F32 b) {
  return {vcgtq_f32(a.v, b.v)};
}
NEO_INLINE Mask ge(F32 a, F32 b) {
  return {vcgeq_f32(a.v, b.v)};
}
NEO_INLINE Mask eq(F32 a, F32 b) {
  return {vceqq_f32(a.v, b.v)};
}
NEO_INLINE Mask ne(F32 a, F32 b) {
  return {vmvnq_u32(vceqq_f32(a.v, b.v))};
}
NEO_INLINE Mask mask_and(Mask a, Mask b) {
  return {vandq_u32(a.v, b.v)};
}
NEO_INLINE Mask mask_or(Mask a, Mask b) {
  return {vorrq_u32(a.v, b.v)};
}
NEO_INLINE Mask mask_not(Mask a) {
  return {vmvnq_u32(a.v)};
}
NEO_INLINE bool any(Mask a) {
  return vmaxvq_u32(a.v) != 0;
}
NEO_INLINE bool all(Mask a) {
  return vminvq_u32(a.v) != 0;
}
NEO_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {vbslq_f32(m.v, a.v, b.v)};
}

NEO_INLINE F32 min(F32 a, F32 b) {
  return {vminq_f32(a.v, b.v)};
}
NEO_INLINE F32 max(F32 a, F32 b) {
  return {vmaxq_f32(a.v, b.v)};
}
NEO_INLINE F32 min_nan(F32 a, F32 b) {
  return {vminq_f32(a.v, b.v)};
}
NEO_INLINE F32 max_nan(F32 a, F32 b) {
  return {vmaxq_f32(a.v, b.v)};
}

NEO_INLINE I32 load_i32(const int32_t* p) {
  return {vld1q_s32(p)};
}
NEO_INLINE void store_i32(int32_t* p, I32 x) {
  vst1q_s32(p, x.v);
}
NEO_INLINE I32 load_i32_n(const int32_t* p, int64_t n) {
  int32_t lanes[4] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load_i32(lanes);
}
NEO_INLINE void store_i32_n(int32_t* p, I32 x, int64_t n) {
  int32_t lanes[4];
  store_i32(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE I32 broadcast_i32(int32_t x) {
  return {vdupq_n_s32(x)};
}
NEO_INLINE I32 iota_i32() {
  const int32_t lanes[4] = {0, 1, 2, 3};
  return load_i32(lanes);
}
NEO_INLINE I32 add(I32 a, I32 b) {
  return {vaddq_s32(a.v, b.v)};
}
NEO_INLINE I32 sub(I32 a, I32 b) {
  return {vsubq_s32(a.v, b.v)};
}
NEO_INLINE I32 mul(I32 a, I32 b) {
  return {vmulq_s32(a.v, b.v)};
}
NEO_INLINE I32 min(I32 a, I32 b) {
  return {vminq_s32(a.v, b.v)};
}
NEO_INLINE I32 max(I32 a, I32 b) {
  return {vmaxq_s32(a.v, b.v)};
}
NEO_INLINE I32 bit_and(I32 a, I32 b) {
  return {vandq_s32(a.v, b.v)};
}
NEO_INLINE I32 bit_or(I32 a, I32 b) {
  return {vorrq_s32(a.v, b.v)};
}
NEO_INLINE I32 bit_xor(I32 a, I32 b) {
  return {veorq_s32(a.v, b.v)};
}
template <int k>
NEO_INLINE I32 shift_left(I32 a) {
  return {vshlq_n_s32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right(I32 a) {
  return {vshrq_n_s32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right_logical(I32 a) {
  return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), k))};
}
NEO_INLINE Mask eq(I32 a, I32 b) {
  return {vceqq_s32(a.v, b.v)};
}
NEO_INLINE Mask gt(I32 a, I32 b) {
  return {vcgtq_s32(a.v, b.v)};
}
NEO_INLINE I32 select(Mask m, I32 a, I32 b) {
  return {vbslq_s32(m.v, a.v, b.v)};
}

NEO_INLINE F32 to_f32(I32 a) {
  return {vcvtq_f32_s32(a.v)};
}
NEO_INLINE I32 round_to_i32(F32 a) {
  return {vcvtnq_s32_f32(a.v)};
}
NEO_INLINE I32 trunc_to_i32(F32 a) {
  return {vcvtq_s32_f32(a.v)};
}
NEO_INLINE I32 bits_as_i32(F32 a) {
  return {vreinterpretq_s32_f32(a.v)};
}
NEO_INLINE F32 bits_as_f32(I32 a) {
  return {vreinterpretq_f32_s32(a.v)};
}

NEO_INLINE I32 load_u8(const uint8_t* p) {
  const int32_t lanes[4] = {p[0], p[1], p[2], p[3]};
  return load_i32(lanes);
}
NEO_INLINE I32 load_i8(const int8_t* p) {
  const int32_t lanes[4] = {p[0], p[1], p[2], p[3]};
  return load_i32(lanes);
}
NEO_INLINE I32 load_u16(const uint16_t* p) {
  return {vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)))};
}
NEO_INLINE void store_u8(uint8_t* p, I32 x) {
  const uint16x4_t words = vqmovun_s32(x.v);
  const uint8x8_t bytes = vqmovn_u16(vcombine_u16(words, words));
  vst1_lane_u32((uint32_t*)p, vreinterpret_u32_u8(bytes), 0);
}
NEO_INLINE void store_i8(int8_t* p, I32 x) {
  const int16x4_t words = vqmovn_s32(x.v);
  const int8x8_t bytes = vqmovn_s16(vcombine_s16(words, words));
  vst1_lane_s32((int32_t*)p, vreinterpret_s32_s8(bytes), 0);
}
NEO_INLINE void store_u16(uint16_t* p, I32 x) {
  vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(x.v)));
}
NEO_INLINE F32 load_f16(const uint16_t* p) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))};
}
NEO_INLINE void store_f16(uint16_t* p, F32 x) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x.v)));
}
NEO_INLINE F32 gather(const float* p, I32 i) {
  const float lanes[4] = {p[vgetq_lane_s32(i.v, 0)], p[vgetq_lane_s32(i.v, 1)], p[vgetq_lane_s32(i.v, 2)],
                          p[vgetq_lane_s32(i.v, 3)]};
  return load(lanes);
}

NEO_INLINE float reduce_add(F32 a) {
  const float32x2_t d = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
NEO_INLINE float reduce_max(F32 a) {
  return vmaxvq_f32(a.v);
}
NEO_INLINE float reduce_min(F32 a) {
  return vminvq_f32(a.v);
}

NEO_INLINE F32 even(F32 a, F32 b) {
  return {vuzp1q_f32(a.v, b.v)};
}
NEO_INLINE F32 pick(F32 kept, F32 x, I32 i) {
  // The bytes of lane i; those of -1 are beyond the table, which keeps.
  const int32x4_t bytes = vmlaq_n_s32(vdupq_n_s32(0x03020100), i.v, 0x04040404);
  return {vreinterpretq_f32_u8(
      vqtbx1q_u8(vreinterpretq_u8_f32(kept.v), vreinterpretq_u8_f32(x.v), vreinterpretq_u8_s32(bytes)))};
}
NEO_INLINE void transpose(F32* rows) {
  const float32x4_t ab0 = vzip1q_f32(rows[0].v, rows[1].v), ab1 = vzip2q_f32(rows[0].v, rows[1].v);
  const float32x4_t cd0 = vzip1q_f32(rows[2].v, rows[3].v), cd1 = vzip2q_f32(rows[2].v, rows[3].v);
  rows[0].v = vcombine_f32(vget_low_f32(ab0), vget_low_f32(cd0));
  rows[1].v = vcombine_f32(vget_high_f32(ab0), vget_high_f32(cd0));
  rows[2].v = vcombine_f32(vget_low_f32(ab1), vget_low_f32(cd1));
  rows[3].v = vcombine_f32(vget_high_f32(ab1), vget_high_f32(cd1));
}

}  // namespace neo::NEO_ISA
