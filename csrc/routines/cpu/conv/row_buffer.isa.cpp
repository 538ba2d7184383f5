#include "routines/cpu/conv/row_buffer.h"

#include <string.h>

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// `count` of the floats that lie kStride, a power of two, apart; no access beyond the last one.
template <int kStride>
NEO_INLINE F32 load_every(const float* src, int64_t count) {
  const int64_t floats = (count - 1) * kStride + 1;
  F32 part[kStride];
#pragma GCC unroll 4
  for (int i = 0; i < kStride; ++i) {
    const int64_t left = floats - i * kLanes;
    part[i] = load_n(src + i * kLanes, left < 0 ? 0 : (left < kLanes ? left : kLanes));
  }
  if constexpr (kStride == 2) return even(part[0], part[1]);
  return even(even(part[0], part[1]), even(part[kStride - 2], part[kStride - 1]));
}

template <int kStride>
void take_every_fixed(const float* src, int64_t count, float* dst) {
  int64_t i = 0;
  for (; i + kLanes < count; i += kLanes, src += kStride * kLanes) {
    F32 part[kStride];
#pragma GCC unroll 4
    for (int j = 0; j < kStride; ++j) part[j] = load(src + j * kLanes);
    if constexpr (kStride == 2) {
      store(dst + i, even(part[0], part[1]));
    } else {
      store(dst + i, even(even(part[0], part[1]), even(part[kStride - 2], part[kStride - 1])));
    }
  }
  store_n(dst + i, load_every<kStride>(src, count - i), count - i);
}

void take_every(const float* src, int64_t stride, int64_t count, float* dst) {
  if (count <= 0) return;
  switch (stride) {
    case 1:
      memcpy(dst, src, (size_t)count * sizeof(float));
      break;
    case 2:
      take_every_fixed<2>(src, count, dst);
      break;
    case 4:
      take_every_fixed<4>(src, count, dst);
      break;
    default:
      for (int64_t i = 0; i < count; ++i) dst[i] = src[i * stride];
  }
}

// The lanes of two vectors that the first and the second half of their lanes in turn take; -1: of the other one.
struct Turns {
  int32_t of_first[2][kLanes], of_second[2][kLanes];
};

constexpr Turns turns() {
  Turns t = {};
  for (int i = 0; i < 2 * kLanes; ++i) {
    t.of_first[i / kLanes][i % kLanes] = i % 2 == 0 ? i / 2 : -1;
    t.of_second[i / kLanes][i % kLanes] = i % 2 == 0 ? -1 : i / 2;
  }
  return t;
}

constexpr Turns kTurns = turns();

NEO_INLINE int64_t at_most(int64_t n, int64_t most) {
  return n < most ? n : most;
}

void interleave(const float* src, int64_t src_row, int64_t rows, int64_t count, const float* residual, float lo,
                float hi, float* dst) {
  const F32 low = broadcast(lo), high = broadcast(hi);
  const auto put = [&](int64_t i, F32 x) {
    if (i >= count) return;
    const int64_t n = at_most(count - i, kLanes);
    if (residual) x = x + load_n(residual + i, n);
    store_n(dst + i, clamp_nan(x, low, high), n);
  };
  if (rows == 1) {
    for (int64_t i = 0; i < count; i += kLanes) put(i, load_n(src + i, at_most(count - i, kLanes)));
  } else if (rows == 2) {
    for (int64_t i = 0; i < count; i += 2 * kLanes) {
      const F32 a = load_n(src + i / 2, at_most((count - i + 1) / 2, kLanes));
      const F32 b = load_n(src + src_row + i / 2, at_most((count - i) / 2, kLanes));
      for (int half = 0; half < 2; ++half) {
        const F32 firsts = pick(zero(), a, load_i32(kTurns.of_first[half]));
        put(i + half * kLanes, pick(firsts, b, load_i32(kTurns.of_second[half])));
      }
    }
  } else {
    for (int64_t first = 0; first < rows; ++first, src += src_row) {
      for (int64_t i = first, t = 0; i < count; i += rows, ++t) {
        const float x = residual ? src[t] + residual[i] : src[t];
        dst[i] = x < lo ? lo : (x > hi ? hi : x);
      }
    }
  }
}

constexpr RowKernels kKernels = {take_every, interleave};

}  // namespace

const RowKernels& row_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
