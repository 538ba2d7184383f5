#include "routines/cpu/int8/few_channels.h"

#include "routines/cpu/int8/dot_store.h"
#include "simd/dot.h"

namespace neo::NEO_ISA {
namespace {

// Pixels of words of bytes, which fill a block of channels.
void fill_bytes(const DotFill& f, int64_t words, int64_t end) {
  constexpr int64_t kWordsOfBlock = 4;
  const I32 flip = broadcast_i32(f.is_signed ? (int32_t)0x80808080 : 0);
  for (int64_t word = 0; word < words; word += kWordsOfBlock) {
    const uint8_t* src = f.src + word / kWordsOfBlock * f.src_block;
    int32_t* planes = (int32_t*)f.dst + word * f.dst_pixel;
    const int64_t count = words - word < kWordsOfBlock ? words - word : kWordsOfBlock;
    int64_t p = f.begin;
    for (; p + kLanes <= end; p += kLanes, src += kLanes * kLanes) {
      I32 bits[4];
      load_word_planes(src, bits);
      for (int64_t k = 0; k < count; ++k) store_i32(planes + k * f.dst_pixel + p, bits[k] ^ flip);
    }
    for (; p < end; ++p, src += kLanes) {
      for (int64_t k = 0; k < count; ++k) {
        uint32_t bits;
        __builtin_memcpy(&bits, src + 4 * k, 4);
        planes[k * f.dst_pixel + p] = (int32_t)(bits ^ (f.is_signed ? 0x80808080u : 0));
      }
    }
  }
}

// Pixels of words of int16 from the zero point on. Halves of words beyond the last channel meet weights of zero.
void fill_pairs(const DotFill& f, int64_t end) {
  const I32 zero_point = broadcast_i32(f.zero);
  for (int64_t first = 0; first < f.channels; first += kLanes) {
    const int64_t count = f.channels - first < kLanes ? f.channels - first : kLanes;
    const uint8_t* src = f.src + first / kLanes * f.src_block;
    for (int64_t p = f.begin; p < end; ++p, src += kLanes) {
      uint16_t codes[kLanes];
      store_u16(codes, load_codes(src, f.is_signed) - zero_point);
      for (int64_t c = 0; c < count; ++c) {
        const int64_t word = (first + c) / 2 * f.dst_pixel + p;
        __builtin_memcpy(f.dst + 4 * word + (first + c) % 2 * 2, &codes[c], 2);
      }
    }
  }
}

template <bool kBytes>
void fill_planes_of_words(const DotFill& f) {
  const uint32_t zero_code = (uint8_t)(f.zero ^ (f.is_signed ? 0x80 : 0));
  const I32 outside = broadcast_i32(kBytes ? (int32_t)(0x01010101u * zero_code) : 0);
  auto* dst = (int32_t*)f.dst;
  constexpr int64_t kCodes = kBytes ? 4 : 2;
  const int64_t words = (f.channels + kCodes - 1) / kCodes, end = f.end < f.columns ? f.end : f.columns;
  // Vectors of padding first, whose ends the pixels overwrite.
  for (int64_t word = 0; word < words; ++word) {
    int32_t* plane = dst + word * f.dst_pixel;
    for (int64_t p = 0; p < f.begin && p < f.columns; p += kLanes) store_i32(plane + p, outside);
  }
  kBytes ? fill_bytes(f, words, end) : fill_pairs(f, end);
  for (int64_t word = 0; word < words; ++word) {
    int32_t* plane = dst + word * f.dst_pixel;
    for (int64_t p = end > f.begin ? end : f.begin; p < f.columns; p += kLanes) store_i32(plane + p, outside);
  }
}

// A vector of pixels of one channel.
[[gnu::noinline]] void store_channel(const FewChannelsRun& d, const int32_t* sums, int64_t c, int64_t at,
                                     int64_t count) {
  const DotResult& r = *d.result;
  const I32 sum = load_i32(sums) + broadcast_i32(r.init[c]);
  at += c * d.dst_channel;
  const bool is_whole = count >= kLanes;
  if (r.is_whole) {
    is_whole ? store_i32((int32_t*)d.dst + at, sum) : store_i32_n((int32_t*)d.dst + at, sum, count);
    return;
  }
  const F32 steps = to_f32(sum) * broadcast(r.scale[c]) + broadcast(r.add[c]);
  const F32 kept = min(broadcast(r.hi), max(broadcast(r.lo), steps));
  if (r.is_float) {
    is_whole ? store((float*)d.dst + at, kept) : store_n((float*)d.dst + at, kept, count);
  } else {
    store_codes((uint8_t*)d.dst + at, round_to_i32(kept) + broadcast_i32(r.zero), r.is_signed, count);
  }
}

template <bool kBytes, int C, int V>
void run_pixels(const FewChannelsRun& d) {
  for (int64_t p = 0; p < d.pixels; p += V * kLanes) {
    I32 acc[C][V];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[c][v] = broadcast_i32(0);
    }
    const int32_t* weight = d.weight;
    for (int64_t i = 0; i < d.rows; ++i) {
      const int32_t* src = d.src + d.row_at[i] + p;
#pragma GCC unroll 1
      for (int64_t j = 0; j < d.columns; ++j, src += d.dilation, weight += C) {
        I32 x[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          x[v] = kBytes ? load_i32(src + v * kLanes) : split_pairs(load_i32(src + v * kLanes));
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
          const I32 w = broadcast_i32(weight[c]);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) kBytes ? dot_bytes(acc[c][v], x[v], w) : dot_pairs(acc[c][v], w, x[v]);
        }
      }
    }
    // In memory, so that one copy of the code stores them.
    alignas(64) int32_t sums[C * V * kLanes];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store_i32(sums + (c * V + v) * kLanes, acc[c][v]);
    }
#pragma GCC unroll 1
    for (int64_t i = 0; i < d.channels * V; ++i) {
      const int64_t at = p + i % V * kLanes;
      if (at < d.pixels) store_channel(d, sums + i * kLanes, i / V, at, d.pixels - at);
    }
  }
}

template <bool kBytes>
void run_few_channels(const FewChannelsRun& d) {
  if constexpr (kBytes) {
    if (d.channels == 1) return run_pixels<kBytes, 1, 4>(d);
  }
  run_pixels<kBytes, kMaxFewChannels, 2>(d);
}

template <bool kBytes>
constexpr FewChannelsKernels kFewChannels = {kLanes, &fill_planes_of_words<kBytes>, &run_few_channels<kBytes>};

}  // namespace

const FewChannelsKernels& few_channels_kernels(bool bytes) {
  if constexpr (kHasDotBytes) {
    if (bytes) return kFewChannels<true>;
  }
  return kFewChannels<false>;
}

}  // namespace neo::NEO_ISA
