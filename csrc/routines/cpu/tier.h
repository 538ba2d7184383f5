#pragma once

#include "base/isa.h"

// NEO_PICK_TIER(isa, function): &<tier>::function of the strongest tier in this build that `isa` contains. The function
// must be declared in the namespace of every tier.

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

#ifdef NEO_ONLY_TIER
// A build of one tier: `isa` must contain it.
#define NEO_PICK_TIER(isa, function) (static_cast<void>(isa), &::neo::NEO_ONLY_TIER::function)
#else
#define NEO_PICK_TIER(isa, function)                                 \
  ([](::neo::Isa wanted_isa) -> decltype(&::neo::scalar::function) { \
    NEO_TIER_AVX512(wanted_isa, function)                            \
    NEO_TIER_AVX2(wanted_isa, function)                              \
    NEO_TIER_NEON(wanted_isa, function)                              \
    return &::neo::scalar::function;                                 \
  }(isa))
#endif

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
