#include "simd_probe.h"

#include "simd/math.h"
#include "simd/trigonometry.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

using namespace neo::testing;

#define NEO_UNARY(f)                                                               \
  UnaryProbe {                                                                     \
#f, [](const float* x, float* y, int64_t n) {                                    \
      for (int64_t i = 0; i < n; i += kLanes) store(y + i, NEO_ISA::f(load(x + i))); \
    } \
  }
#define NEO_BINARY(f)                                                                           \
  BinaryProbe {                                                                                 \
#f, [](const float* a, const float* b, float* y, int64_t n) {                                 \
      for (int64_t i = 0; i < n; i += kLanes) store(y + i, NEO_ISA::f(load(a + i), load(b + i))); \
    } \
  }
#define NEO_COMPARE(f)                                                                                 \
  BinaryProbe {                                                                                        \
#f, [](const float* a, const float* b, float* y, int64_t n) {                                        \
      for (int64_t i = 0; i < n; i += kLanes) {                                                          \
        store(y + i, select(NEO_ISA::f(load(a + i), load(b + i)), broadcast(1.0f), zero()));             \
      }                                                                                                  \
    } \
  }

const UnaryProbe kUnary[] = {
    NEO_UNARY(neg),   NEO_UNARY(abs),        NEO_UNARY(sqrt),      NEO_UNARY(floor), NEO_UNARY(ceil),
    NEO_UNARY(trunc), NEO_UNARY(round_even), NEO_UNARY(exp),       NEO_UNARY(expm1), NEO_UNARY(log),
    NEO_UNARY(log1p), NEO_UNARY(sigmoid),    NEO_UNARY(tanh),      NEO_UNARY(erf),   NEO_UNARY(softplus),
    NEO_UNARY(silu),  NEO_UNARY(gelu),       NEO_UNARY(gelu_tanh), NEO_UNARY(sin),   NEO_UNARY(cos),
    NEO_UNARY(tan),   NEO_UNARY(asin),       NEO_UNARY(acos),      NEO_UNARY(atan),  NEO_UNARY(sinh),
    NEO_UNARY(cosh),  NEO_UNARY(asinh),      NEO_UNARY(acosh),     NEO_UNARY(atanh), {nullptr, nullptr}};

const BinaryProbe kBinary[] = {NEO_BINARY(add),   NEO_BINARY(sub),       NEO_BINARY(mul),     NEO_BINARY(div),
                               NEO_BINARY(min),   NEO_BINARY(max),       NEO_BINARY(min_nan), NEO_BINARY(max_nan),
                               NEO_BINARY(pow),   NEO_BINARY(copy_sign), NEO_COMPARE(lt),     NEO_COMPARE(le),
                               NEO_COMPARE(gt),   NEO_COMPARE(ge),       NEO_COMPARE(eq),     NEO_COMPARE(ne),
                               {nullptr, nullptr}};

void integer(const int32_t* x, const int32_t* y, int32_t* out) {
  const I32 a = load_i32(x), b = load_i32(y);
  const I32 one = broadcast_i32(1), none = broadcast_i32(0);
  const I32 results[kIntegerProbes] = {a + b,
                                       a - b,
                                       a * b,
                                       min(a, b),
                                       max(a, b),
                                       a & b,
                                       a | b,
                                       a ^ b,
                                       shift_left<3>(a),
                                       shift_right<3>(a),
                                       shift_right_logical<3>(a),
                                       select(eq(a, b), one, none),
                                       select(gt(a, b), one, none),
                                       iota_i32()};
  for (int i = 0; i < kIntegerProbes; ++i) store_i32(out + i * kLanes, results[i]);
}

#define NEO_MAP(to, from)                                           \
  [](const auto* x, auto* y, int64_t n) {                           \
    for (int64_t i = 0; i < n; i += kLanes) to(y + i, from(x + i)); \
  }

const SimdProbes kProbes = {
    .lanes = kLanes,
    .fused_multiply_add = kFusedMultiplyAdd,
    .unary = kUnary,
    .binary = kBinary,
    .multiply_add =
        [](const float* a, const float* b, const float* c, float* y, float* negated, int64_t n) {
          for (int64_t i = 0; i < n; i += kLanes) {
            store(y + i, fma(load(a + i), load(b + i), load(c + i)));
            store(negated + i, fnma(load(a + i), load(b + i), load(c + i)));
          }
        },
    .copy_part = [](const float* x, float* y, int64_t n) { store_n(y, load_n(x, n), n); },
    .copy_part_i32 = [](const int32_t* x, int32_t* y, int64_t n) { store_i32_n(y, load_i32_n(x, n), n); },
    .reduce_add = [](const float* x) { return reduce_add(load(x)); },
    .reduce_max = [](const float* x) { return reduce_max(load(x)); },
    .reduce_min = [](const float* x) { return reduce_min(load(x)); },
    .transpose =
        [](const float* x, float* y) {
          F32 rows[kLanes];
          for (int i = 0; i < kLanes; ++i) rows[i] = load(x + i * kLanes);
          transpose(rows);
          for (int i = 0; i < kLanes; ++i) store(y + i * kLanes, rows[i]);
        },
    .even = [](const float* x, float* y) { store(y, even(load(x), load(x + kLanes))); },
    .pick = [](const float* x, const int32_t* lanes, float* y) { store(y, pick(load(y), load(x), load_i32(lanes))); },
    .f16_to_f32 = NEO_MAP(store, load_f16),
    .f32_to_f16 = NEO_MAP(store_f16, load),
    .bf16_to_f32 = NEO_MAP(store, load_bf16),
    .f32_to_bf16 = NEO_MAP(store_bf16, load),
    .round_to_i32 =
        [](const float* x, int32_t* y, int64_t n) {
          for (int64_t i = 0; i < n; i += kLanes) store_i32(y + i, round_to_i32(load(x + i)));
        },
    .trunc_to_i32 =
        [](const float* x, int32_t* y, int64_t n) {
          for (int64_t i = 0; i < n; i += kLanes) store_i32(y + i, trunc_to_i32(load(x + i)));
        },
    .saturate_u8 = NEO_MAP(store_u8, load_i32),
    .saturate_i8 = NEO_MAP(store_i8, load_i32),
    .widen_u8 = NEO_MAP(store_i32, load_u8),
    .widen_i8 = NEO_MAP(store_i32, load_i8),
    .integer = integer,
    .gather = [](const float* table, const int32_t* index, float* y) { store(y, gather(table, load_i32(index))); },
};

}  // namespace

const SimdProbes& simd_probes() {
  return kProbes;
}

}  // namespace neo::NEO_ISA
