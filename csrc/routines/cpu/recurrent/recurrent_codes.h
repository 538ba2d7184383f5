#pragma once

// Kernels of a layer whose products are of 8-bit codes (com.microsoft.DynamicQuantizeLSTM): rows of numbers become
// uint8 codes over the range of all of them, and the exact sums of products become numbers. Safe in kernel files.

#include <stdint.h>

namespace neo {

// Rows of numbers that become words of codes: four bytes, or two int16 less the zero point.
struct CodesOfRows {
  const float* x = nullptr;
  int64_t x_row = 0;
  int64_t rows = 0;
  int64_t depth = 0;  // numbers of a row
  float scale = 1;
  int32_t zero = 0;
  bool bytes = false;
  uint8_t* codes = nullptr;  // a row's are whole words; the rest of the last one is written too
  int64_t codes_row = 0;     // bytes
  int32_t* sums = nullptr;   // of each row's codes, or null
};

// Sums of the gates of a block, which become numbers in place.
struct SumsOfCodes {
  int32_t* sums = nullptr;  // [gate][row][lanes]
  int64_t gate = 0;         // elements from one gate to the next
  int64_t gates = 0;
  int64_t rows = 0;
  float scale = 1;                        // of the rows' codes
  int32_t zero = 0;                       // theirs, where the words hold it
  const int32_t* row_sums = nullptr;      // of the rows' codes, or null: the weights' zero points are 0
  const int32_t* column_sums = nullptr;   // [gate][lanes]: of the weights, less their zero points
  const int32_t* weight_zeros = nullptr;  // [gate][lanes]: where the words hold them
  const float* weight_scales = nullptr;   // [gate][lanes]
  const float* bias = nullptr;            // [gate][lanes], or null
};

}  // namespace neo
