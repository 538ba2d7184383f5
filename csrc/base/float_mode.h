#pragma once

#include <cstdint>

namespace neo {

// How a thread computes with floating-point numbers: the rounding direction, the traps and what becomes of denormal
// numbers. On x86-64 the control bits of MXCSR, on 64-bit Arm FPCR, elsewhere 0.
uint64_t float_mode();
void set_float_mode(uint64_t mode);

enum class Denormals {
  Flush,  // denormal operands and results are zeros of their sign
  Keep,   // as IEEE 754 has them
};

// The mode that neo computes in, whatever the calling program has set: rounding to nearest, no traps.
uint64_t neo_float_mode(Denormals denormals);

// Sets a mode for this thread and restores the mode before it at the end, however the scope is left.
class FloatModeScope {
 public:
  explicit FloatModeScope(uint64_t mode) : before_(float_mode()) { set_float_mode(mode); }
  explicit FloatModeScope(Denormals denormals) : FloatModeScope(neo_float_mode(denormals)) {}
  ~FloatModeScope() { set_float_mode(before_); }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

  uint64_t before() const { return before_; }

 private:
  uint64_t before_;
};

}  // namespace neo
