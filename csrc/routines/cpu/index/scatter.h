#pragma once

#include <type_traits>

#include "ops/scatter.h"

namespace neo {

// Combines elements of one type with updates in their order.
template <class T>
struct Combine {
  ScatterReduction reduction;

  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // Sums and products wrap.
      using U = std::make_unsigned_t<T>;
      if (reduction == ScatterReduction::Add) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      if (reduction == ScatterReduction::Mul) {
        return static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) * static_cast<U>(b));
      }
    }
    return combine_updates(reduction, a, b);
  }
};

// Truth values: the sum of two is true where one is.
struct CombineTruth {
  ScatterReduction reduction;

  uint8_t operator()(uint8_t a, uint8_t b) const {
    const bool either = reduction == ScatterReduction::Add || reduction == ScatterReduction::Max;
    return static_cast<uint8_t>(either ? (a | b) != 0 : (a & b) != 0);
  }
};

// Calls f(T(), combine) for elements of a dtype; false where there is no kernel for it.
template <class F>
bool with_combine(DType dtype, ScatterReduction reduction, F&& f) {
  const auto of = [&]<class T>(T zero) {
    f(zero, Combine<T>{reduction});
    return true;
  };
  switch (dtype) {
    case DType::Bool:
      f(uint8_t{0}, CombineTruth{reduction});
      return true;
    case DType::Float32:
      return of(0.0F);
    case DType::Float64:
      return of(0.0);
    case DType::Int8:
      return of(int8_t{0});
    case DType::UInt8:
      return of(uint8_t{0});
    case DType::Int32:
      return of(int32_t{0});
    case DType::Int64:
      return of(int64_t{0});
    default:
      return false;
  }
}

// Whether with_combine() has the dtype.
inline bool has_combine(DType dtype) {
  return with_combine(dtype, ScatterReduction::Add, [](auto, auto) {});
}

}  // namespace neo
