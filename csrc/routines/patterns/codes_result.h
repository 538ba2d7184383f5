#pragma once

#include <stdint.h>

namespace neo {

// The way from a sum of products of codes to its result, in units of the result's codes (or as float32 numbers):
//   t = float(sum) * scale + add, by the scale and addend of its column
// Without a residual the code is round(t) + zero, between lo and hi. With one, t is a number, or a code of the middle
// grid that is rounded and counts numbers again; the residual's number is added, and the code is round(t / y_scale) +
// zero.
struct CodesResult {
  bool is_float = false;  // float32 numbers between lo and hi
  bool is_whole = false;  // the sums themselves, int32
  bool is_signed = false;
  float lo = 0, hi = 0;  // of codes: less zero
  int32_t zero = 0;
  bool has_middle = false;
  float middle_lo = 0, middle_hi = 0, middle_scale = 1;  // less the middle's zero point
  bool residual_is_signed = false;
  float residual_scale = 1, y_scale = 1;
  int32_t residual_zero = 0;
};

}  // namespace neo
