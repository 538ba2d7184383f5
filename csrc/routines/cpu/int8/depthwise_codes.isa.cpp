#include "routines/cpu/int8/depthwise_codes.h"

#include "routines/cpu/int8/dot_store.h"
#include "simd/dot.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kRows = kVectorRegisters == 32 ? 8 : 6;
constexpr int64_t kColumns = 4;  // in a word

// A row of codes of one block as float32 numbers from the zero point on, or as bytes that count from 0 on.
template <bool kBytes>
void fill_block(const DotFill& f) {
  constexpr int64_t kPixel = kLanes * (kBytes ? 1 : 4);
  const I32 zero_point = broadcast_i32(f.zero), shift = broadcast_i32(f.is_signed ? 128 : 0);
  const auto put = [&](int64_t pixel, I32 codes) __attribute__((always_inline)) {
    uint8_t* dst = f.dst + pixel * kPixel;
    kBytes ? store_u8(dst, codes + shift) : store((float*)dst, to_f32(codes - zero_point));
  };
  for (int64_t p = 0; p < f.begin; ++p) put(p, zero_point);
  if constexpr (kBytes) {
    if (f.begin < f.end) copy_as_bytes(f.dst + f.begin * kPixel, f.src, (f.end - f.begin) * kPixel, f.is_signed);
  } else {
    const uint8_t* src = f.src;
    for (int64_t p = f.begin; p < f.end; ++p, src += kLanes) put(p, load_codes(src, f.is_signed));
  }
  for (int64_t p = f.end; p < f.columns; ++p) put(p, zero_point);
}

// Sums of R pixels. Where weights are less than they should be, the bytes are summed as well and count by the shift.
template <bool kBytes, bool kShifts, int R>
NEO_INLINE void sum_pixels(const CodesDepthwiseRow& d, const uint8_t* src, int32_t* sums) {
  const I32 init = load_i32(d.result->init + d.column);
  if constexpr (kBytes) {
    I32 acc[R], bytes[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      acc[r] = init;
      bytes[r] = broadcast_i32(0);
    }
    const auto* weight = (const int32_t*)d.weight;
    for (int64_t i = 0; i < d.kh; ++i) {
      for (int64_t j = 0; j < d.kw; j += kColumns, weight += kLanes) {
        const uint8_t* at = src + i * d.tap_row + j * d.tap_column;
        const int64_t missing = d.kw - j < kColumns ? kColumns - (d.kw - j) : 0;
        const I32 w = load_i32(weight), ones = broadcast_i32((int32_t)(0x01010101u >> (8 * missing)));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const I32 x = load_columns(at + r * d.src_pixel);
          dot_bytes(acc[r], x, w);
          if constexpr (kShifts) dot_bytes(bytes[r], x, ones);
        }
      }
    }
    const I32 shift = kShifts ? load_i32(d.result->shift + d.column) : broadcast_i32(0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store_i32(sums + r * kLanes, kShifts ? acc[r] + bytes[r] * shift : acc[r]);
  } else {
    F32 acc[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = zero();
    const auto* weight = (const float*)d.weight;
    for (int64_t i = 0; i < d.kh; ++i) {
      for (int64_t j = 0; j < d.kw; ++j, weight += kLanes) {
        const uint8_t* at = src + i * d.tap_row + j * d.tap_column;
        const F32 w = load(weight);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) accumulate(acc[r], load((const float*)(at + r * d.src_pixel)), w);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store_i32(sums + r * kLanes, round_to_i32(acc[r]) + init);
  }
}

template <bool kBytes, bool kShifts>
void depthwise_row(const CodesDepthwiseRow& d) {
  constexpr int kTogether = kShifts ? kRows / 2 : kRows;
  alignas(64) int32_t sums[kTogether * kLanes];
  for (int64_t p = 0; p < d.pixels; p += kTogether) {
    const int64_t count = d.pixels - p < kTogether ? d.pixels - p : kTogether;
    const uint8_t* src = d.src + p * d.src_pixel;
    if (count == kTogether) {
      sum_pixels<kBytes, kShifts, kTogether>(d, src, sums);
    } else {
      for (int64_t r = 0; r < count; ++r) sum_pixels<kBytes, kShifts, 1>(d, src + r * d.src_pixel, sums + r * kLanes);
    }
    const int64_t at = p * d.dst_pixel;
    store_rows(sums, kLanes, nullptr, count, *d.result, d.column, kLanes, d.dst, at, d.dst_pixel,
               d.residual ? d.residual + at : nullptr, d.dst_pixel);
  }
}

template <bool kBytes, bool kShifts>
constexpr CodesDepthwiseKernels kDepthwiseKernels = {kLanes, kBytes, kLanes*(kBytes ? 1 : 4), &fill_block<kBytes>,
                                                     &depthwise_row<kBytes, kShifts>};

}  // namespace

const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts) {
  if constexpr (kHasDotBytes) {
    if (bytes) return shifts ? kDepthwiseKernels<true, true> : kDepthwiseKernels<true, false>;
  }
  return kDepthwiseKernels<false, false>;
}

}  // namespace neo::NEO_ISA
