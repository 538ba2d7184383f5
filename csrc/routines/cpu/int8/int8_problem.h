#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "routines/cpu/int8/dot_tile.h"
#include "routines/patterns/int8_product.h"

namespace neo {

// Codes in a word of the kernels: the parameter "codes" of a schedule.
constexpr int64_t kByteCodes = 4, kWordCodes = 2;

// Whether the target sums products of four bytes at once.
bool has_dot_bytes(const Target& target);

// A core's cycles in those that cycles_us() counts, of which a core with two multiply-adds per cycle has two.
double core_cycles(const Target& target);

// The weights less their zero points; reads them.
class Int8Weights {
 public:
  explicit Int8Weights(const Int8Product& product);
  int32_t at(int64_t channel, int64_t k) const;  // k: input channel of the group, then tap

 private:
  std::vector<double> codes_, zeros_;
  int64_t channels_ = 0, depth_ = 0;
  bool by_rows_ = false;
};

// Where the constants by padded channel are packed: init, scale, add and mask of DotResult, and the sums of the
// weights, by which init changes with a zero point that only running tells.
struct PackedColumns {
  static constexpr int64_t kArrays = 5;
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
  ConvShape shape(const Dims& x, const Dims& y) const;
  ConvShape hint() const;
  // For what does not depend on sizes of batch and space: packed constants.
  ConvShape constant_shape() const;
  double traffic_bytes() const;  // of input, residual and result, at the hint

  // The schemas of a candidate; residual and result are held alike.
  Candidate candidate(const Workload& workload, bool blocks_x, bool blocks_y, const Target& target) const;
  void pack_columns(const PackedColumns& columns) const;
  DotResult result(const int32_t* columns, int64_t padded) const;

 private:
  float step() const;
};

// The codes in a word that a target's kernels can take: bytes where it multiplies them and the weights are some, else
// int16. Of a saved module, whose weights are not at hand, either.
std::vector<int64_t> word_codes(const Int8Problem& problem, const Target& target);

}  // namespace neo
