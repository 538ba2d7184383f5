#pragma once

#include <algorithm>
#include <limits>

namespace neo {

// A box as suppression of overlapping boxes compares it, in float32.
struct Box {
  float x_min, x_max, y_min, y_max;

  float area() const { return (x_max - x_min) * (y_max - y_min); }
};

// Intersection over union; NaN, which is above no threshold, where they do not meet or one of them has no area.
inline float intersection_over_union(const Box& a, const Box& b) {
  const float width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const float height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  if (!(width > 0) || !(height > 0)) return std::numeric_limits<float>::quiet_NaN();
  const float area_a = a.area();
  const float area_b = b.area();
  const float both = width * height;
  const float either = area_a + area_b - both;
  if (!(area_a > 0) || !(area_b > 0) || !(either > 0)) return std::numeric_limits<float>::quiet_NaN();
  return both / either;
}

}  // namespace neo
