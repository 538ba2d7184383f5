#include "routines/cpu/int8/depthwise_codes.h"

#include "routines/cpu/int8/dot_store.h"
#include "simd/dot.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kBytesOfWord = 4;
#ifdef NEO_ISA_SCALAR
constexpr int kMaxPixels = 2;  // few machines run it: it is kept small
#else
constexpr int kMaxPixels = 8;
#endif
static_assert(kMaxPixels <= kDepthwiseBehind);

// A row of codes of one block as float32 numbers from the zero point on.
void fill_numbers(const DotFill& f, int64_t, int64_t) {
  const I32 zero_point = broadcast_i32(f.zero);
  auto* dst = (float*)f.dst;
  const uint8_t* src = f.src;
  for (int64_t p = 0; p < f.columns; ++p, dst += kLanes) {
    if (p < f.begin || p >= f.end) {
      store(dst, zero());
      continue;
    }
    store(dst, to_f32(load_codes(src, f.is_signed) - zero_point));
    src += kLanes;
  }
}

// The same as words of codes that count from 0 on.
template <int kColumns>
void fill_words(const DotFill& f, int64_t step, int64_t next) {
  uint8_t padding[kLanes];
  for (uint8_t& code : padding) code = (uint8_t)f.zero;
  const I32 flip = broadcast_i32(!f.is_signed ? 0 : (kColumns == kBytesOfWord ? (int32_t)0x80808080 : 0x00800080));
  const auto pixel = [&](int64_t p) __attribute__((always_inline)) {
    return p >= f.begin && p < f.end ? f.src + (p - f.begin) * kLanes : padding;
  };
  auto* dst = (int32_t*)f.dst;
  for (int64_t p = 0; p < f.columns; p += step, dst += kLanes) {
    const uint8_t* src = f.src + (p - f.begin) * kLanes;
    I32 words;
    if constexpr (kColumns == kBytesOfWord) {
      words = p >= f.begin && p + kColumns <= f.end ? load_columns(src)
                                                    : load_columns(pixel(p), pixel(p + 1), pixel(p + 2), pixel(p + 3));
    } else {
      words = p >= f.begin && p + next < f.end ? load_pairs(src, src + next * kLanes)
                                               : load_pairs(pixel(p), pixel(p + next));
    }
    store_i32(dst, words ^ flip);
  }
}

void fill_groups(const DotFill& f, const CodesGroupWord* words, int64_t count) {
  uint8_t padding[kLanes];
  for (uint8_t& code : padding) code = (uint8_t)f.zero;
  const I32 flip = broadcast_i32(f.is_signed ? (int32_t)0x80808080 : 0);
  const int64_t end = f.end < f.columns ? f.end : f.columns;
  for (int64_t k = 0; k < count; ++k) {
    const CodesGroupWord& word = words[k];
    const I32 index = load_i32((const int32_t*)word.index);
    const auto at = [&](int64_t p) __attribute__((always_inline)) {
      return (int32_t*)f.dst + (p * count + k) * kLanes;
    };
    const I32 outside = gather_bytes(padding, index, flip);
    int64_t p = 0;
    for (; p < f.begin && p < f.columns; ++p) store_i32(at(p), outside);
    const uint8_t* src = f.src + word.blocks[0];
    if (word.is_one_block) {
      for (; p < end; ++p, src += kLanes) store_i32(at(p), gather_bytes(src, index, flip));
    } else {
      const int64_t second = word.blocks[1] - word.blocks[0], third = word.blocks[2] - word.blocks[0],
                    last = word.blocks[3] - word.blocks[0];
      for (; p < end; ++p, src += kLanes)
        store_i32(at(p), gather_bytes({src, src + second, src + third, src + last}, index, flip));
    }
    for (; p < f.columns; ++p) store_i32(at(p), outside);
  }
}

template <int kColumns>
NEO_INLINE void dot_columns(I32& c, I32 a, I32 b) {
  kColumns == kBytesOfWord ? dot_bytes(c, a, b) : dot_pairs(c, a, b);
}

// Sums of R pixels. Where weights are less than they should be, the bytes are summed as well and count by the shift.
template <int kColumns, bool kShifts, int R>
NEO_INLINE void sum_pixels(const CodesDepthwiseRun& d, const int64_t* pixel_at, I32 (&sums)[R]) {
  const uint8_t* src[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) src[r] = d.src + pixel_at[r];
  const I32 init = load_i32(d.result->init + d.column);
  if constexpr (kColumns > 1) {
    I32 acc[R], bytes[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      acc[r] = init;
      bytes[r] = broadcast_i32(0);
    }
    const auto* weight = (const int32_t*)d.weight;
    for (int64_t i = 0; i < d.rows; ++i) {
      int64_t at = d.tap_rows[i];
      for (int64_t j = 1; j <= d.items; ++j, weight += kLanes, at += d.item) {
        const I32 w = load_i32(weight), ones = broadcast_i32(j < d.items ? 0x01010101 : d.last_ones);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const I32 x = load_i32((const int32_t*)(src[r] + at));
          dot_columns<kColumns>(acc[r], x, w);
          if constexpr (kShifts) dot_bytes(bytes[r], x, ones);
        }
      }
    }
    const I32 shift = kShifts ? load_i32(d.result->shift + d.column) : broadcast_i32(0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = kShifts ? acc[r] + bytes[r] * shift : acc[r];
  } else {
    F32 acc[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = zero();
    const auto* weight = (const float*)d.weight;
    for (int64_t i = 0; i < d.rows; ++i) {
      int64_t at = d.tap_rows[i];
      for (int64_t j = 0; j < d.items; ++j, weight += kLanes, at += d.item) {
        const F32 w = load(weight);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) accumulate(acc[r], load((const float*)(src[r] + at)), w);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = round_to_i32(acc[r]) + init;
  }
}

// One copy of the code that stores any number of pixels of any result.
[[gnu::noinline]] void store_pixels(const CodesDepthwiseRun& d, const int32_t* sums, int64_t pixel, int64_t count) {
  const int64_t at = pixel * d.dst_pixel;
  store_rows(sums, count, *d.result, d.column, kLanes, d.dst, at, d.dst_pixel, d.residual ? d.residual + at : nullptr,
             d.dst_pixel);
}

template <int kColumns, bool kShifts, int R>
NEO_INLINE void run_pixels(const CodesDepthwiseRun& d, bool is_plain, int64_t pixel, int64_t count) {
  I32 sums[R];
  sum_pixels<kColumns, kShifts, R>(d, d.pixel_at + pixel, sums);
  if (kStoresFour && is_plain) {
    const auto sum_of = [&](int r) NEO_LAMBDA { return sums[r]; };
    store_plain<R, true>(*d.result, d.column, (uint8_t*)d.dst + pixel * d.dst_pixel, d.dst_pixel, count, sum_of);
    return;
  }
  alignas(64) int32_t kept[R * kLanes];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) store_i32(kept + r * kLanes, sums[r]);
  store_pixels(d, kept, pixel, count);
}

// Pixels in whole groups: those behind the last one are summed, too, but not stored.
template <int kColumns, bool kShifts>
void depthwise_run(const CodesDepthwiseRun& d) {
  constexpr int kFew = kMaxPixels / 2, kTogether = kShifts ? kFew : kMaxPixels;
  const bool plain = is_plain(*d.result, d.residual);
  for (int64_t p = 0; p < d.pixels; p += kTogether) {
    const int64_t count = d.pixels - p < kTogether ? d.pixels - p : kTogether;
    if (count > kFew) {
      run_pixels<kColumns, kShifts, kTogether>(d, plain, p, count);
    } else {
      run_pixels<kColumns, kShifts, kFew>(d, plain, p, count);
    }
  }
}

template <int kColumns, bool kShifts>
constexpr CodesDepthwiseKernels kDepthwiseKernels = {
    kLanes, kColumns, kColumns > 1 ? &fill_words<kColumns> : &fill_numbers,
    kColumns == kBytesOfWord ? &fill_groups : nullptr, &depthwise_run<kColumns, kShifts>};

}  // namespace

const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts) {
  if constexpr (kHasDotBytes) {
    if (bytes) return shifts ? kDepthwiseKernels<kBytesOfWord, true> : kDepthwiseKernels<kBytesOfWord, false>;
  }
  constexpr int kColumns = kSplitsPairs ? 1 : 2;
  return kDepthwiseKernels<kColumns, false>;
}

}  // namespace neo::NEO_ISA
