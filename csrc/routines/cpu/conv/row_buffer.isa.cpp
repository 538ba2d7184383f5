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

constexpr RowKernels kKernels = {take_every};

}  // namespace

const RowKernels& row_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
