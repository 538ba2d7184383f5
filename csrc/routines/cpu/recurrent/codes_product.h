#pragma once

#include "routines/cost/target.h"
#include "routines/cpu/int8/dot_tile.h"
#include "routines/cpu/recurrent/recurrent_codes.h"
#include "routines/cpu/tier.h"
#include "routines/packed_store.h"
#include "routines/patterns/recurrent_form.h"

NEO_DECLARE_TIERS(void recurrent_code_range(const float*, int64_t, int64_t, int64_t, float*))
NEO_DECLARE_TIERS(void recurrent_codes_of_rows(const CodesOfRows&))
NEO_DECLARE_TIERS(void recurrent_sums_of_codes(const SumsOfCodes&))
NEO_DECLARE_TIERS(void recurrent_product_of_row(const SumsOfCodes&, const int32_t*, const uint8_t*, int64_t, bool))

namespace neo {

struct CodedRowsKernels {
  const DotKernels& dot;
  decltype(&scalar::recurrent_code_range) range;
  decltype(&scalar::recurrent_codes_of_rows) codes_of_rows;
  decltype(&scalar::recurrent_sums_of_codes) sums_of_codes;
  decltype(&scalar::recurrent_product_of_row) product_of_row;

  static CodedRowsKernels of(const Target& target);
  bool bytes() const { return dot.codes == 4; }
  int64_t words(int64_t depth) const { return (depth + dot.codes - 1) / dot.codes; }
};

// Rows of codes in scratch memory: the range they were made over, words, and the sums of each row.
struct RowCodes {
  float scale = 1;
  int32_t zero = 0;
  uint8_t* codes = nullptr;
  int32_t* sums = nullptr;  // null where the weights have no zero points

  // Words of all rows and their sums, in floats.
  static int64_t floats(const CodedRowsKernels& kernels, int64_t rows, int64_t depth) {
    return rows * (kernels.words(depth) + 1);
  }
  // The scale and zero point of DynamicQuantizeLinear over a range that holds 0.
  void set_range(const float* range);
  void place(const CodedRowsKernels& kernels, int64_t rows, int64_t depth, bool has_sums, float* memory);
  void fill(const CodedRowsKernels& kernels, const float* x, int64_t x_row, int64_t begin, int64_t end,
            int64_t depth) const;
};

// One of the two matrices of codes, [direction][block][word][gates][lanes] as the kernels of products of codes take it.
class CodesMatrix {
 public:
  CodesMatrix() = default;
  // `weight` [directions][depth][gates * hidden]; scales and zero points per direction or per column.
  CodesMatrix(const RecurrentForm& form, const Value& weight, const Value& scale, const Value* zero, int64_t depth,
              const CodedRowsKernels& kernels, PackedStore& store);

  static int64_t floats(const RecurrentForm& form, int64_t depth, const CodedRowsKernels& kernels);
  bool has_zeros() const { return has_zeros_; }

  // The numbers of all gates of a block, part = direction * blocks + block, for the rows [begin, end) of codes:
  // [gate][row][lanes], `gate` floats from one gate to the next; with the bias [gate][lanes] where there is one.
  void multiply(const CodedRowsKernels& kernels, const RowCodes& codes, int64_t part, int64_t begin, int64_t end,
                const float* bias, float* to, int64_t gate) const;

 private:
  int64_t depth_ = 0, words_ = 0, columns_ = 0;  // columns: of all blocks, padding included
  bool has_zeros_ = false;                       // in its words
  Tensor values_;                                // words, then by column: sums, zero points, scales
};

}  // namespace neo
