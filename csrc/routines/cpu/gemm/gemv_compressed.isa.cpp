#include "routines/cpu/gemm/gemv_compressed.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kVectors = kCompressedVectors;
constexpr int64_t kWidth = kVectors * kLanes;
// Of a row: where its parts begin.
constexpr int64_t kHigh = kWidth * 2, kExponents = kWidth * 3;
constexpr int64_t kRow = compressed_row_bytes(kLanes);

// `most` where x is not a number, which max leaves to the machine.
NEO_INLINE F32 larger(F32 x, F32 most) {
  return select(lt(most, x), x, most);
}

float largest(const float* values, int64_t count) {
  F32 most = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = larger(abs(load(values + i)), most);
  return reduce_max(larger(abs(load_n(values + i, count - i)), most));
}

NEO_INLINE Mask is_outlier(F32 x, F32 least) {
  return (!le(least, abs(x))) & ne(x, zero());
}

int64_t count_outliers(const float* values, int64_t count, float least, int64_t most) {
  const F32 bound = broadcast(least);
  int64_t found = 0;
  for (int64_t i = 0; i < count && found <= most; i += kLanes) {
    const int64_t end = i + kLanes < count ? i + kLanes : count;
    if (!any(is_outlier(end - i == kLanes ? load(values + i) : load_n(values + i, end - i), bound))) continue;
    for (int64_t j = i; j < end; ++j) found += values[j] != 0 && !(values[j] >= least || values[j] <= -least);
  }
  return found <= most ? found : most + 1;
}

void compress(const float* panel, int64_t rows, int32_t base, float least, uint8_t* to) {
  const F32 bound = broadcast(least);
  const I32 first = broadcast_i32(base), none = broadcast_i32(0);
  for (int64_t i = 0; i < rows; ++i, panel += kWidth, to += kRow) {
    I32 exponents[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32 x = load(panel + v * kLanes);
      const Mask zero_or_out = is_outlier(x, bound) | eq(x, zero());
      const I32 bits = select(zero_or_out, none, bits_as_i32(x));
      const I32 exponent = (shift_right_logical<23>(bits) & broadcast_i32(0xff)) - first;
      exponents[v] = select(zero_or_out, none, exponent);
      const I32 high =
          (shift_right_logical<16>(bits) & broadcast_i32(0x7f)) | (shift_right_logical<24>(bits) & broadcast_i32(0x80));
      store_u16((uint16_t*)(to + v * kLanes * 2), bits);
      store_u8(to + kHigh + v * kLanes, high);
    }
#pragma GCC unroll 2
    for (int pair = 0; pair < kVectors / 2; ++pair) {
      store_u8(to + kExponents + pair * kLanes, exponents[2 * pair] | shift_left<4>(exponents[2 * pair + 1]));
    }
  }
}

void multiply(const float* x, int64_t step, int64_t rows, float scale, const uint8_t* panel, float* sums) {
  // Bytes from what is read to what is fetched.
  constexpr int64_t kAhead = 4096;
  const I32 sign_and_high = broadcast_i32((int32_t)0x807f0000), exponent = broadcast_i32(0x07800000);
  const F32 factor = broadcast(scale);
  F32 acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) acc[v] = load(sums + v * kLanes);
  for (int64_t i = 0; i < rows; ++i, panel += kRow) {
    const F32 a = broadcast(x[i * step]);
#pragma GCC unroll 4
    for (int64_t line = 0; line < kRow; line += 64) prefetch_read(panel + kAhead + line);
#pragma GCC unroll 2
    for (int pair = 0; pair < kVectors / 2; ++pair) {
      const I32 both = load_u8(panel + kExponents + pair * kLanes);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int v = 2 * pair + half;
        const I32 low = load_u16((const uint16_t*)(panel + v * kLanes * 2));
        const I32 high = shift_left<16>(load_i8((const int8_t*)(panel + kHigh + v * kLanes)));
        const I32 own = half == 0 ? shift_left<23>(both) : shift_left<19>(both);
        const I32 bits = bit_select(exponent, own, bit_select(sign_and_high, high, low));
        acc[v] = fma(a, bits_as_f32(bits) * factor, acc[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store(sums + v * kLanes, acc[v]);
}

void finish(const float* sums, const float* bias, float lo, float hi, int64_t columns, float* y) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t count = columns - i < kLanes ? columns - i : kLanes;
    F32 value = load(sums + i);
    if (bias) value = value + load(bias + i);
    value = min(broadcast(hi), max(broadcast(lo), value));
    store_n(y + i, value, count);
  }
}

constexpr CompressedKernels kKernels = {largest, count_outliers, compress, multiply, finish};

}  // namespace

const CompressedKernels& compressed_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
