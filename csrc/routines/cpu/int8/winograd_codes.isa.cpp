#include "routines/cpu/int8/winograd_codes.h"

#include "routines/cpu/int8/dot_store.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kTile = (int)kCodesWinogradTile, kWindow = (int)kCodesWinogradWindow;

NEO_INLINE void transform_input(const PairWords (&x)[kWindow], PairWords (&y)[kWindow]) {
  const PairWords even = x[4] - x[2], odd = x[3] - x[1], twice = odd + odd;
  const PairWords a = even - 3 * x[2], b = odd - 3 * x[1];
  y[0] = 4 * (x[0] - x[2]) + even;
  y[1] = a + b;
  y[2] = a - b;
  y[3] = even + twice;
  y[4] = even - twice;
  y[5] = x[5] - x[3] - 2 * twice;
}

void winograd_input(const CodesWinogradInput& w) {
  constexpr int kOffset = kWindow + 1;  // the only point that a number added to all codes reaches: 36 times
  const uint8_t middle = w.is_signed ? 128 : 0;
  const auto offset = (int16_t)(36 * (w.zero + middle));
  for (int64_t block = 0; block < w.blocks; block += 2) {
    const bool has_two = block + 1 < w.blocks;
    const uint8_t* first = w.src + block * w.src_block;
    const uint8_t* second = has_two ? first + w.src_block : first;
    PairWords half[kWindow][kWindow], x[kWindow], y[kWindow];
#pragma GCC unroll 1
    for (int j = 0; j < kWindow; ++j) {
#pragma GCC unroll 6
      for (int i = 0; i < kWindow; ++i) {
        const int64_t at = i * w.src_row + j * kLanes;
        x[i] = __builtin_convertvector(load_pair(first + at, second + at) ^ middle, PairWords);
      }
      transform_input(x, y);
#pragma GCC unroll 6
      for (int i = 0; i < kWindow; ++i) half[i][j] = y[i];
    }
    int16_t* dst = w.dst + block * kLanes;
#pragma GCC unroll 1
    for (int i = 0; i < kWindow; ++i) {
      transform_input(half[i], y);
      if (i == kOffset / kWindow) y[kOffset % kWindow] -= offset;
#pragma GCC unroll 6
      for (int j = 0; j < kWindow; ++j, dst += w.dst_point)
        __builtin_memcpy(dst, &y[j], has_two ? sizeof(PairWords) : sizeof(PairWords) / 2);
    }
  }
}

// 24 times the transform, modulo 2^32.
NEO_INLINE void transform_output(const I32 (&m)[kWindow], I32 (&y)[kTile]) {
  const I32 s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  y[0] = m[0] + s2 - shift_left<2>(s1);
  y[1] = shift_left<1>(d2 - shift_left<1>(d1));
  y[2] = shift_left<2>(s2 - s1);
  y[3] = shift_left<2>(shift_left<1>(d2 + m[5]) - d1);
}

void winograd_output(const CodesWinogradOutput& w) {
  constexpr int32_t kInverseOf9 = 954437177;
  const I32 inverse = broadcast_i32(kInverseOf9), init = load_i32(w.result->init + w.column);
  I32 half[kTile][kWindow], m[kWindow], y[kTile];
#pragma GCC unroll 1
  for (int j = 0; j < kWindow; ++j) {
#pragma GCC unroll 6
    for (int i = 0; i < kWindow; ++i) m[i] = load_i32(w.src + (i * kWindow + j) * w.src_point);
    transform_output(m, y);
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) half[i][j] = y[i];
  }
  alignas(64) int32_t sums[kTile * kLanes];
#pragma GCC unroll 1
  for (int64_t i = 0; i < w.rows; ++i) {
    transform_output(half[i], y);
#pragma GCC unroll 4
    for (int j = 0; j < kTile; ++j) store_i32(sums + j * kLanes, shift_right<6>(y[j] * inverse) + init);
    store_rows(sums, w.columns, *w.result, w.column, kLanes, w.dst, i * w.dst_row, kLanes,
               w.residual ? w.residual + i * w.dst_row : nullptr, kLanes);
  }
}

constexpr CodesWinogradKernels kCodesWinogradKernels = {&winograd_input, &winograd_output};

}  // namespace

const CodesWinogradKernels& codes_winograd_kernels() {
  return kCodesWinogradKernels;
}

}  // namespace neo::NEO_ISA
