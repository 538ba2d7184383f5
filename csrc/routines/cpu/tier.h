#pragma once

#include "base/isa.h"

// NEO_PICK_TIER(isa, function): &<tier>::function of the strongest tier that `isa` contains, where has_kernels(isa).
// The function must be declared in the namespace of every tier.

#ifdef NEO_HAVE_AVX512
#define NEO_TIER_AVX512(isa, function) \
  if (::neo::kIsaAvx512.is_subset_of(isa)) return &::neo::avx512::function;
#else
#define NEO_TIER_AVX512(isa, function)
#endif
#ifdef NEO_HAVE_AVX2
#define NEO_TIER_AVX2(isa, function) \
  if (::neo::kIsaAvx2.is_subset_of(isa)) return &::neo::avx2::function;
#else
#define NEO_TIER_AVX2(isa, function)
#endif
#ifdef NEO_HAVE_NEON
#define NEO_TIER_NEON(isa, function) \
  if (::neo::kIsaNeon.is_subset_of(isa)) return &::neo::neon::function;
#else
#define NEO_TIER_NEON(isa, function)
#endif

// The last of them needs no test.
#if defined(NEO_HAVE_SCALAR)
#define NEO_TIER_LAST(function) return &::neo::scalar::function
#elif defined(NEO_HAVE_AVX2)
#define NEO_TIER_LAST(function) return &::neo::avx2::function
#elif defined(NEO_HAVE_AVX512)
#define NEO_TIER_LAST(function) return &::neo::avx512::function
#else
#define NEO_TIER_LAST(function) return &::neo::neon::function
#endif

#define NEO_PICK_TIER(isa, function)                                 \
  ([](::neo::Isa wanted_isa) -> decltype(&::neo::scalar::function) { \
    NEO_TIER_AVX512(wanted_isa, function)                            \
    NEO_TIER_AVX2(wanted_isa, function)                              \
    NEO_TIER_NEON(wanted_isa, function)                              \
    NEO_TIER_LAST(function);                                         \
  }(isa))

// Declares a kernel in the namespace of every tier: NEO_DECLARE_TIERS(void f(int)).
#define NEO_DECLARE_TIERS(...) \
  namespace neo::scalar {      \
  __VA_ARGS__;                 \
  }                            \
  namespace neo::avx2 {        \
  __VA_ARGS__;                 \
  }                            \
  namespace neo::avx512 {      \
  __VA_ARGS__;                 \
  }                            \
  namespace neo::neon {        \
  __VA_ARGS__;                 \
  }
