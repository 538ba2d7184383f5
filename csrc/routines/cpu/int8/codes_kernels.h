#pragma once

// Pools and elementwise functions of 8-bit codes, and the way from numbers to codes and back.

#include <stdint.h>

namespace neo {

// One row of the outputs of a pool over channel blocks.
struct CodesPoolRow {
  const uint8_t* src = nullptr;       // of the window's first row inside the image, column 0
  int64_t src_row = 0;                // bytes from row to row of the window
  int64_t rows = 0;                   // of the window inside the image
  int64_t src_plane = 0, planes = 1;  // likewise of pools over three axes
  int64_t width = 0, taps = 1, stride = 1, dilation = 1, pad = 0;  // of columns
  int64_t pixels = 0;
  uint8_t* dst = nullptr;
  int64_t lanes = 0;      // that exist; the others become 0, or are not there
  bool is_plain = false;  // the result: what is behind the last lane is not written
  bool is_signed = false;
  // Else the maximum. The numbers' mean as float32 operators make it: means of few codes often lie halfway between two.
  bool is_average = false;
  bool is_global = false;  // an average of all pixels, one row of them, which is that of whole sums
  float scale = 1, y_scale = 1;
  int32_t zero = 0, y_zero = 0;
  bool y_is_signed = false;
  // Elements that count besides those inside the image: rows of all planes, and columns up to this many, from pad
  // before the first.
  int64_t counted_rows = 0, padded_width = 0;
};

// y = code of number(a) op number(b), between lo and hi less y_zero.
struct CodesBinary {
  enum class Op : uint8_t { Add, Sub, Mul };
  Op op = Op::Add;
  bool a_is_signed = false, b_is_signed = false, y_is_signed = false;
  int32_t a_zero = 0, b_zero = 0, y_zero = 0;
  float a_scale = 1, b_scale = 1, y_scale = 1;
  float lo = 0, hi = 0;
};

// Codes of any width, held in their own type or one element per byte, and the scale of each.
struct CodesLinear {
  enum class Type : uint8_t { UInt8, Int8, UInt16, Int16, Int32 };
  Type type = Type::UInt8;
  int32_t lo = 0, hi = 255;  // of the codes
  // Of codes of less than a byte: the bits that they have, the others may be anything, and the one of the sign, or 0.
  int32_t mask = 0, sign = 0;
  float scale = 1;
  int32_t zero = 0;
  // One for each element, in place of the two above; no zero points: 0.
  const float* scales = nullptr;
  const void* zeros = nullptr;  // of the codes' type
};

struct CodesKernels {
  void (*pool_row)(const CodesPoolRow&);
  // A NaN becomes the zero point.
  void (*quantize)(const CodesLinear&, const float* x, void* y, int64_t count);
  void (*dequantize)(const CodesLinear&, const void* x, float* y, int64_t count);
  // Lowers lo and raises hi to what x has; a NaN does not count.
  void (*range)(const float* x, int64_t count, float& lo, float& hi);
  // `repeats`: b has a vector of codes, with which all vectors of a are combined.
  void (*binary)(const CodesBinary&, const uint8_t* a, const uint8_t* b, bool repeats, uint8_t* y, int64_t count);
  // y[i] = table[x[i]], of a table of 256; y may be x.
  void (*look_up)(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count);
  // Makes the lanes from `valid` on of pixels of a vector zero.
  void (*clear_lanes)(uint8_t* y, int64_t pixels, int64_t valid);
};

namespace scalar {
const CodesKernels& codes_kernels();
}
namespace avx2 {
const CodesKernels& codes_kernels();
}
namespace avx512 {
const CodesKernels& codes_kernels();
}
namespace neon {
const CodesKernels& codes_kernels();
}

}  // namespace neo
