#pragma once

// Every function of simd/vec.h and simd/math.h as a function over arrays, one table per instruction set, so that one
// test file, compiled for the baseline, can check all tiers.

#include <stdint.h>

namespace neo::testing {

struct UnaryProbe {
  const char* name;
  void (*run)(const float* x, float* y, int64_t n);  // n divides by lanes
};
struct BinaryProbe {
  const char* name;
  void (*run)(const float* a, const float* b, float* y, int64_t n);
};

struct SimdProbes {
  int lanes;
  bool fused_multiply_add;
  const UnaryProbe* unary;  // ends with a null name
  const BinaryProbe* binary;
  void (*multiply_add)(const float* a, const float* b, const float* c, float* y, float* negated, int64_t n);
  void (*copy_part)(const float* x, float* y, int64_t n);  // n <= lanes, through load_n and store_n
  void (*copy_part_i32)(const int32_t* x, int32_t* y, int64_t n);
  float (*reduce_add)(const float* x);  // one vector
  float (*reduce_max)(const float* x);
  float (*reduce_min)(const float* x);
  void (*transpose)(const float* x, float* y);                   // lanes x lanes
  void (*even)(const float* x, float* y);                        // of two vectors
  void (*pick)(const float* x, const int32_t* lanes, float* y);  // of a vector, else what y holds
  void (*f16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*bf16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_bf16)(const float* x, uint16_t* y, int64_t n);
  void (*round_to_i32)(const float* x, int32_t* y, int64_t n);
  void (*trunc_to_i32)(const float* x, int32_t* y, int64_t n);
  void (*saturate_u8)(const int32_t* x, uint8_t* y, int64_t n);
  void (*saturate_i8)(const int32_t* x, int8_t* y, int64_t n);
  void (*widen_u8)(const uint8_t* x, int32_t* y, int64_t n);
  void (*widen_i8)(const int8_t* x, int32_t* y, int64_t n);
  void (*integer)(const int32_t* a, const int32_t* b, int32_t* y);  // kIntegerProbes results of one vector each
  void (*gather)(const float* table, const int32_t* index, float* y);
};

// The order of SimdProbes::integer.
enum IntegerProbe {
  kAdd,
  kSub,
  kMul,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kLeft3,
  kRight3,
  kLogical3,
  kEqual,
  kGreater,
  kIota,
  kIntegerProbes
};

}  // namespace neo::testing

namespace neo {
namespace scalar {
const testing::SimdProbes& simd_probes();
}
namespace avx2 {
const testing::SimdProbes& simd_probes();
}
namespace avx512 {
const testing::SimdProbes& simd_probes();
}
namespace neon {
const testing::SimdProbes& simd_probes();
}
}  // namespace neo
