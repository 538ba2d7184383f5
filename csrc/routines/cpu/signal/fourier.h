#pragma once

// Kernels of discrete Fourier transforms of any length, many lines at a time. Safe in kernel files.

#include <stdint.h>

#include "base/span.h"

namespace neo {

constexpr int kFourierLines = 8;       // that are transformed side by side
constexpr int kFourierMaxStages = 24;  // of a length
constexpr int kFourierMaxRadix = 13;   // lengths with a larger prime factor go by Bluestein's algorithm

// A transform of `size` numbers as stages of small ones (Stockham's order, which needs no reversal of digits).
struct FourierStages {
  int64_t size = 1;
  int64_t count = 0;
  int64_t radix[kFourierMaxStages] = {};
  int64_t twiddle[kFourierMaxStages] = {};  // of each stage in `table`
  int64_t roots[kFourierMaxStages] = {};    // the powers of e^(-2 pi i / radix)
  const double* table = nullptr;            // pairs of cosine and sine
};

// Where the numbers of lines are: line = outer * inner + i, in elements.
struct FourierLines {
  int64_t outer = 0, inner = 0, step = 0;  // from one to the next: outer index, inner index, number
  int64_t parts = 2;                       // 1: real numbers
};

struct FourierArgs {
  FourierStages stages;
  int64_t size = 1;  // of the transform; unlike stages.size that of Bluestein's algorithm
  bool bluestein = false;
  int64_t chirp = 0;     // in stages.table: e^(-pi i k^2 / size) for k < size
  int64_t spectrum = 0;  // in stages.table: the transform of the chirp's conjugate
  bool inverse = false;
  bool mirrors = false;  // the input is the first half of the spectrum of a real signal
  bool wide = false;     // elements are float64, else float32
  int64_t lines = 0, inner = 1;
  int64_t given = 0;  // numbers of the input; those behind them are zero
  int64_t bins = 0;   // numbers of the output
  FourierLines from, to;
  const void* src = nullptr;
  const void* window = nullptr;  // a factor for each number, or null
  void* dst = nullptr;
  double* workspace = nullptr;  // fourier_workspace() numbers

  // Doubles that a task needs: two complex blocks of lines.
  NEO_INLINE int64_t workspace_size() const { return 4 * stages.size * kFourierLines; }
};

}  // namespace neo
