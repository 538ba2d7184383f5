#pragma once

#include "routines/cpu/recurrent/recurrent_call.h"

namespace neo {

// The rows of sequences of lengths of their own. Longer sequences come first, so that those which have a step are the
// first ones of all, and the rows of a step lie together: step 0's, step 1's, ... In tables in scratch memory.
struct RaggedRows {
  int64_t* order = nullptr;   // [batch]: the sequence of each place
  int64_t* length = nullptr;  // [batch]: its length
  int64_t* starts = nullptr;  // [steps + 1]: the first row of each step
  int64_t* places = nullptr;  // [steps + 1]
  int64_t* y_rows = nullptr;  // [direction][rows]: where each row's result lies in Y, floats

  static int64_t floats(const RecurrentSizesOfRun& sizes, int64_t directions);
  static RaggedRows at(float* memory, const RecurrentSizesOfRun& sizes);

  int64_t active(int64_t step) const { return starts[step + 1] - starts[step]; }

  // Fills the tables.
  void order_by_length(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, const int32_t* lengths) const;
  // Copies the rows [begin, end) of X of one direction, elements of `item` bytes.
  void gather(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, int64_t direction, int64_t begin,
              int64_t end, int64_t item, const void* x, void* to) const;
};

// Copies lengths, those that do not fit bounded: a saved module may not have looked at them.
void bound_lengths(const int32_t* lengths, int64_t steps, int64_t batch, int32_t* to);

// The sizes of a run whose sequences have these lengths.
RecurrentSizesOfRun sizes_of_lengths(const int32_t* lengths, int64_t steps, int64_t batch);

// Zeros behind the ends of sequences, elements of `item` bytes.
void clear_ends(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, const int32_t* lengths, int64_t item,
                void* y);

}  // namespace neo
