#pragma once

// Kernels that resize one axis, or two neighbours, of elements of any type: sums are of float32 where the elements are,
// else of float64. Safe in kernel files.

#include <stdint.h>

#include "routines/cpu/eltwise/typed_program.h"

namespace neo {

// Every output is the sum of `taps` inputs: tap t of output o is at [t * outputs + o].
struct MixTable {
  int64_t taps = 0;  // 0: inputs stay as they are
  int64_t outputs = 1;
  const int32_t* position = nullptr;
  const double* weight = nullptr;
  const double* start = nullptr;  // by output: what the sum begins with; null: zero
};

// A tensor seen as [planes, input_rows, columns, inner] that becomes [planes, row.outputs, column.outputs, inner]. A
// task is a row of the result, or a part of one where columns stay: rows are mixed first, then the columns of the mixed
// row. Integers are rounded to nearest, as far as they reach.
struct RowMix {
  int64_t planes = 1;
  int64_t input_rows = 1, columns = 1, inner = 1;
  MixTable row, column;
  int64_t part = 1;                       // elements of a task where columns stay
  Lane from = Lane::F64, to = Lane::F64;  // both F32, or I8, U8, I32, I64 or F64
  const void* src = nullptr;
  void* dst = nullptr;
  void* workspace = nullptr;  // an input row and a row of the result, as numbers to compute with; or a part

  int64_t input_row() const { return columns * inner; }
  int64_t output_row() const { return column.outputs * inner; }
  int64_t parts() const { return column.taps == 0 ? (input_row() + part - 1) / part : 1; }
  int64_t tasks() const { return planes * row.outputs * parts(); }
};

}  // namespace neo
