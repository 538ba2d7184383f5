#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/int_math.h"
#include "routines/cpu/int8/dot_conv.h"
#include "routines/patterns/int8_columns.h"

namespace neo {

// Codes in a word of the kernels: the parameter "codes" of a schedule.
constexpr int64_t kByteCodes = 4, kWordCodes = 2;

// Whether the target sums products of four bytes at once.
bool has_dot_bytes(const Target& target);

// A core's cycles in those that cycles_us() counts, of which a core with two multiply-adds per cycle has two.
double core_cycles(const Target& target);

// Cycles, as cycles_us() counts them, of one word of a register block of so many rows and vectors.
double dot_word_cycles(double rows, double vectors, int64_t codes, const Target& target);

// Cycles of a core in which a vector of sums becomes codes.
double result_cycles(const Target& target);

// Where the constants by padded channel are packed: init, scale, add and mask of DotResult, the sums of the weights, by
// which init changes with a zero point that only running tells, and the shift and the addend of DotResult.
struct PackedColumns {
  static constexpr int64_t kArrays = 7;
  int32_t* at = nullptr;
  int64_t padded = 0;
  bool bytes = false;  // codes of x count from 0 on, else from their zero point on
};

// A group's product as a convolution; a product of matrices has one row, whose pixels are the matrix's rows.
struct Int8Problem {
  Int8Product product;
  ConvGeometry geometry;  // of a Conv
  bool is_conv = false;
  int64_t depth = 0, channels = 0;  // of the product

  static std::optional<Int8Problem> read(const Workload& workload, std::string* why);

  // This and result() read no value and no node: steps outlive the graph.
  DotShape shape(const Dims& x, const Dims& y) const;
  DotShape hint() const;
  // For what does not depend on sizes of batch and space: packed constants.
  DotShape constant_shape() const;
  double traffic_bytes() const;  // of input, residual and result, at the hint

  // The schemas of a candidate; residual and result are held alike.
  Candidate candidate(const Workload& workload, bool blocks_x, bool blocks_y, const Target& target) const;
  void pack_columns(const PackedColumns& columns) const;
  DotResult result(const int32_t* columns, int64_t padded) const;
  // Bytes of the table of the function behind the product; 0 where there is none.
  int64_t table_bytes() const { return product.function.nodes.empty() ? 0 : kCodeTable; }
  double table_cycles(const Target& target) const;  // of a core, at the hint

  // Scale or zero point of x are known only when the step runs: in its arguments of these numbers, where not negative.
  struct RunTimeGrid {
    int scale = -1, zero = -1;
    bool is_any() const { return scale >= 0 || zero >= 0; }
  };
  RunTimeGrid run_time_grid(const Candidate& candidate) const;
  // The grid of x, and what it makes of the packed init and scale of a result: of 2 * padded numbers from `to` on those
  // of the given columns. `bytes` as in PackedColumns.
  CodeGrid bind_grid(const RunTimeGrid& grid, std::byte* const* args, int64_t padded, IndexRange columns, bool bytes,
                     int32_t* to, DotResult& result) const;
};

}  // namespace neo
