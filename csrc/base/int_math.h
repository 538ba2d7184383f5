#pragma once

#include <algorithm>
#include <cstdint>

namespace neo {

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline int64_t round_up(int64_t value, int64_t unit) {
  return ceil_div(value, unit) * unit;
}

struct IndexRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Part i of the n parts that [0, count) is cut into, as even as possible, the larger ones first.
inline IndexRange even_part(int64_t count, int64_t n, int64_t i) {
  return {count / n * i + std::min(i, count % n), count / n * (i + 1) + std::min(i + 1, count % n)};
}

}  // namespace neo
