#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace neo {

// Unsigned numbers whose order is that of the elements, NaN behind all numbers; elements that are equal have one key.
template <std::integral T>
auto ordered_key(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<Key>(x);
  } else {
    constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
    using Wide = std::make_signed_t<Key>;
    return static_cast<Key>(static_cast<Wide>(x)) ^ kSign;
  }
}

template <std::floating_point T>
auto ordered_key(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if (x != x) return std::numeric_limits<Key>::max();
  Key bits = std::bit_cast<Key>(x);
  if (bits == kSign) bits = 0;
  return bits & kSign ? static_cast<Key>(~bits) : static_cast<Key>(bits | kSign);
}

}  // namespace neo
