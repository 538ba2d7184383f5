#include "routines/gpu/vision/boxes.h"

#include <bit>
#include <cmath>
#include <limits>

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

Expr first_smaller(const Expr& a, const Expr& b) {
  return select(b < a, b, a);
}

Expr first_larger(const Expr& a, const Expr& b) {
  return select(a < b, b, a);
}

Expr rounded_product(const Expr& a, const Expr& b) {
  return fma(a, b, 0.0f);
}

Expr area(const BoxExpr& box) {
  return rounded_product(box.x1 - box.x0, box.y1 - box.y0);
}

Overlap::Overlap(float threshold) : threshold_(threshold) {
  kind_ = threshold < 0                                 ? Kind::Negative
          : threshold == 0                              ? Kind::Zero
          : std::bit_cast<uint32_t>(threshold) % 2 == 0 ? Kind::Even
                                                        : Kind::Odd;
  half_ = (std::nextafter(threshold, std::numeric_limits<float>::infinity()) - threshold) / 2;
}

const char* Overlap::suffix() const {
  switch (kind_) {
    case Kind::Negative:
      return "below";
    case Kind::Zero:
      return "zero";
    case Kind::Even:
      return "even";
    default:
      return "odd";
  }
}

Overlap::Numbers Overlap::declare(Builder& b) const {
  return {b.number("threshold", DType::Float32), b.number("half", DType::Float32)};
}

Expr Overlap::above(const Expr& both, const Expr& either, const Numbers& numbers) const {
  if (kind_ == Kind::Negative) return both >= 0.0f;
  if (kind_ == Kind::Zero) {  // the quotient rounds to 0 up to 2^-150
    return both * std::ldexp(1.0F, 75) > either * std::ldexp(1.0F, -75);
  }
  const Expr rest = fma(-either, numbers.threshold, both), bound = either * numbers.half;
  return kind_ == Kind::Odd ? rest >= bound : rest > bound;
}

Expr Overlap::overlaps(Builder& b, const BoxExpr& mine, const Expr& my_area, const BoxExpr& theirs,
                       const Expr& their_area, const Numbers& numbers) const {
  const Expr width = b.let("width", first_smaller(mine.x1, theirs.x1) - first_larger(mine.x0, theirs.x0));
  const Expr height = b.let("height", first_smaller(mine.y1, theirs.y1) - first_larger(mine.y0, theirs.y0));
  const Expr both = b.let("both", rounded_product(width, height));
  const Expr either = b.let("either", my_area + their_area - both);
  return width > 0.0f && height > 0.0f && my_area > 0.0f && their_area > 0.0f && either > 0.0f &&
         above(both, either, numbers);
}

}  // namespace neo::gpu
