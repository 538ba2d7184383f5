#pragma once

// Several vectors that take every step of a computation side by side. A function of many dependent steps waits for each
// of them; beside those of other vectors the steps fill the wait. Functions of simd/math.h that are templates take F32
// or Pack, to the same bits.

#include "simd/vec.h"

namespace neo::NEO_ISA {

template <int N>
struct Pack {
  F32 v[N];
};
template <int N>
struct PackMask {
  Mask v[N];
};

// As many as leave registers for the constants; sixteen hold no second vector beside them.
constexpr int kPackVectors = kVectorRegisters == 32 ? 6 : 1;

template <class V>
NEO_INLINE V constant(float x) {
  if constexpr (__is_same(V, F32)) {
    return broadcast(x);
  } else {
    V pack;
#pragma GCC unroll 8
    for (F32& v : pack.v) v = broadcast(x);
    return pack;
  }
}

#define NEO_PACK_1(name)                                                       \
  template <int N>                                                             \
  NEO_INLINE Pack<N> name(Pack<N> a) {                                         \
    Pack<N> y;                                                                 \
    _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i) y.v[i] = name(a.v[i]); \
    return y;                                                                  \
  }
#define NEO_PACK_2(name)                                                               \
  template <int N>                                                                     \
  NEO_INLINE Pack<N> name(Pack<N> a, Pack<N> b) {                                      \
    Pack<N> y;                                                                         \
    _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i) y.v[i] = name(a.v[i], b.v[i]); \
    return y;                                                                          \
  }
#define NEO_PACK_3(name)                                                                       \
  template <int N>                                                                             \
  NEO_INLINE Pack<N> name(Pack<N> a, Pack<N> b, Pack<N> c) {                                   \
    Pack<N> y;                                                                                 \
    _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i) y.v[i] = name(a.v[i], b.v[i], c.v[i]); \
    return y;                                                                                  \
  }
NEO_PACK_1(neg)
NEO_PACK_1(abs)
NEO_PACK_1(exp2_of_steps)
NEO_PACK_2(operator+)
NEO_PACK_2(operator-)
NEO_PACK_2(operator*)
NEO_PACK_2(min)
NEO_PACK_2(max)
NEO_PACK_2(limit)
NEO_PACK_2(quotient)
NEO_PACK_2(scale_by_exp2)
NEO_PACK_2(copy_sign)
NEO_PACK_3(fma)
NEO_PACK_3(fnma)
#undef NEO_PACK_1
#undef NEO_PACK_2
#undef NEO_PACK_3

template <int N>
NEO_INLINE PackMask<N> lt(Pack<N> a, Pack<N> b) {
  PackMask<N> y;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) y.v[i] = lt(a.v[i], b.v[i]);
  return y;
}
template <int N>
NEO_INLINE Pack<N> select(PackMask<N> m, Pack<N> a, Pack<N> b) {
  Pack<N> y;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) y.v[i] = select(m.v[i], a.v[i], b.v[i]);
  return y;
}
template <int N>
NEO_INLINE Pack<N> quotient(Pack<N> a, Pack<N> b, PackMask<N> m) {
  Pack<N> y;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) y.v[i] = quotient(a.v[i], b.v[i], m.v[i]);
  return y;
}

}  // namespace neo::NEO_ISA
