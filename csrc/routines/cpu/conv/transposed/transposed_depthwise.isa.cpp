#include "routines/cpu/conv/transposed/transposed_depthwise.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kOutputs = 8;  // sums in registers

// Outputs [first, first + R).
template <int R>
void run_outputs(const TransposedLine& p, int64_t first) {
  F32 acc[R];
  const F32 bias = p.bias ? load(p.bias) : zero();
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = bias;
  for (int64_t i = 0; i < p.row_count; ++i) {
    const float* weight = p.weights[i] + p.first_weight;
    int64_t column = first + p.first_offset;
    for (int64_t j = 0; j < p.taps; ++j, weight += p.weight_step, column += p.offset_step) {
      const F32 tap = load(weight);
      const float* at = p.rows[i] + column * kLanes;
      if (column >= 0 && column + R <= p.columns) [[likely]] {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[r] = fma(load(at + r * kLanes), tap, acc[r]);
      } else {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          if ((uint64_t)(column + r) < (uint64_t)p.columns) acc[r] = fma(load(at + r * kLanes), tap, acc[r]);
        }
      }
    }
  }
  const F32 lo = broadcast(p.lo), hi = broadcast(p.hi);
  float* dst = p.dst + first * p.dst_step;
  const float* residual = p.residual ? p.residual + first * p.dst_step : nullptr;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r, dst += p.dst_step) {
    F32 x = acc[r];
    if (residual) x = x + load(residual + r * p.dst_step);
    x = min(hi, max(lo, x));
    if (p.valid == kLanes) [[likely]] {
      store(dst, x);
    } else {
      store(dst, zero());
      store_n(dst, x, p.valid);
    }
  }
}

// In parts as even as can be: a part of one or two outputs would wait for its own additions.
void run_line(const TransposedLine& p) {
  constexpr void (*kParts[kOutputs + 1])(const TransposedLine&, int64_t) = {
      nullptr,        run_outputs<1>, run_outputs<2>, run_outputs<3>, run_outputs<4>,
      run_outputs<5>, run_outputs<6>, run_outputs<7>, run_outputs<8>};
  const int64_t count = (p.count + kOutputs - 1) / kOutputs;
  for (int64_t i = 0, done = 0; i < count; ++i) {
    const int64_t part = (p.count - done) / (count - i);
    kParts[part](p, done);
    done += part;
  }
}

constexpr TransposedDepthwiseKernels kKernels = {kLanes, run_line};

}  // namespace

const TransposedDepthwiseKernels& transposed_depthwise_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
