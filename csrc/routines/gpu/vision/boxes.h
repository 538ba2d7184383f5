#pragma once

#include "kernel_ir/builder.h"

namespace neo::gpu {

// Corners of a box, as scalars of float32.
struct BoxExpr {
  kernel::Expr x0, y0, x1, y1;
};

// The smaller and the larger as std::min and std::max choose, NaN among the arguments too.
kernel::Expr first_smaller(const kernel::Expr& a, const kernel::Expr& b);
kernel::Expr first_larger(const kernel::Expr& a, const kernel::Expr& b);

// a * b, rounded: no compiler makes it part of another operation.
kernel::Expr rounded_product(const kernel::Expr& a, const kernel::Expr& b);
// Sizes as they are used by overlaps().
kernel::Expr area(const BoxExpr& box);

// Whether intersection over union, as float32 arithmetic of the CPU rounds it, is above a threshold. Without a
// division, whose rounding is a device's own: i / u rounds to more than t where i > u * t + u * h, with h half the
// distance from t to the next number, and where both are equal and t is odd; i - u * t is exact near equality.
class Overlap {
 public:
  explicit Overlap(float threshold);
  // Part of a kernel's name: kernels differ by the kind of threshold, not by its value.
  const char* suffix() const;
  // The kernel's parameters for the threshold, and their values in a launch.
  struct Numbers {
    kernel::Expr threshold, half;
  };
  Numbers declare(kernel::Builder& b) const;
  double threshold() const { return threshold_; }
  double half() const { return half_; }
  kernel::Expr above(const kernel::Expr& both, const kernel::Expr& either, const Numbers& numbers) const;
  // Two boxes and their areas.
  kernel::Expr overlaps(kernel::Builder& b, const BoxExpr& mine, const kernel::Expr& my_area, const BoxExpr& theirs,
                        const kernel::Expr& their_area, const Numbers& numbers) const;

 private:
  enum class Kind : uint8_t { Negative, Zero, Even, Odd };
  Kind kind_;
  float threshold_, half_;
};

}  // namespace neo::gpu
