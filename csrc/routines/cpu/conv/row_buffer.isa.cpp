#include "routines/cpu/conv/row_buffer.h"

#include <string.h>

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// A constant stride lets the compiler load whole vectors and shuffle.
template <int kStride>
void take_every_fixed(const float* __restrict src, int64_t count, float* __restrict dst) {
  for (int64_t i = 0; i < count; ++i) dst[i] = src[i * kStride];
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
