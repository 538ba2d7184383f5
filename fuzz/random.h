#pragma once

#include <cstddef>
#include <cstdint>

namespace neo::fuzz {

// A small generator with the same numbers everywhere (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  // 0 ... count - 1
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  bool one_in(size_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

}  // namespace neo::fuzz
