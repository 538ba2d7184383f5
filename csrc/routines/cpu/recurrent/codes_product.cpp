#include "routines/cpu/recurrent/codes_product.h"

#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "ops/op.h"
#include "routines/cpu/int8/int8_problem.h"

namespace neo {
namespace {

constexpr int kGates = 4;
static_assert(kGates == kDotVectors);

constexpr int64_t kFirstTap = 0;

// A matrix of codes as it is given.
class GivenCodes {
 public:
  GivenCodes(const RecurrentForm& form, const Value& weight, const Value& scale, const Value* zero, int64_t depth)
      : codes_(load_ints(*weight.constant)),
        scales_(load_doubles(*scale.constant)),
        zeros_(zero ? load_ints(*zero->constant) : std::vector<int64_t>(static_cast<size_t>(form.directions))),
        directions_(form.directions),
        depth_(depth),
        width_(kGates * form.hidden) {}

  int64_t code(int64_t d, int64_t k, int64_t column) const {
    return codes_[static_cast<size_t>((d * depth_ + k) * width_ + column)];
  }
  int64_t zero(int64_t d, int64_t column) const { return of(zeros_, d, column); }
  double scale(int64_t d, int64_t column) const { return of(scales_, d, column); }

 private:
  template <class T>
  T of(const std::vector<T>& all, int64_t d, int64_t column) const {
    const auto each = static_cast<int64_t>(all.size()) / directions_;
    return all[static_cast<size_t>(d * each + column % each)];
  }

  std::vector<int64_t> codes_;
  std::vector<double> scales_;
  std::vector<int64_t> zeros_;
  int64_t directions_, depth_, width_;
};

}  // namespace

CodedRowsKernels CodedRowsKernels::of(const Target& target) {
  return {NEO_PICK_TIER(target.isa, dot_kernels)(has_dot_bytes(target)),
          NEO_PICK_TIER(target.isa, recurrent_code_range), NEO_PICK_TIER(target.isa, recurrent_codes_of_rows),
          NEO_PICK_TIER(target.isa, recurrent_sums_of_codes), NEO_PICK_TIER(target.isa, recurrent_product_of_row)};
}

void RowCodes::set_range(const float* range) {
  scale = range[0] == range[1] ? 1.0f : (range[1] - range[0]) / 255.0f;
  const float steps = std::nearbyint(0.0f - range[0] / scale);
  zero = std::isnan(steps) ? 0 : static_cast<int32_t>(std::clamp(steps, 0.0f, 255.0f));
}

void RowCodes::place(const CodedRowsKernels& kernels, int64_t rows, int64_t depth, bool has_sums, float* memory) {
  codes = reinterpret_cast<uint8_t*>(memory);
  sums = has_sums ? reinterpret_cast<int32_t*>(memory + rows * kernels.words(depth)) : nullptr;
}

void RowCodes::fill(const CodedRowsKernels& kernels, const float* x, int64_t x_row, int64_t begin, int64_t end,
                    int64_t depth) const {
  CodesOfRows a;
  a.x = x + begin * x_row;
  a.x_row = x_row;
  a.rows = end - begin;
  a.depth = depth;
  a.scale = scale;
  a.zero = zero;
  a.bytes = kernels.bytes();
  a.codes_row = kernels.words(depth) * 4;
  a.codes = codes + begin * a.codes_row;
  a.sums = sums ? sums + begin : nullptr;
  kernels.codes_of_rows(a);
}

int64_t CodesMatrix::floats(const RecurrentForm& form, int64_t depth, const CodedRowsKernels& kernels) {
  const int64_t lanes = kernels.dot.lanes;
  return form.directions * ceil_div(form.hidden, lanes) * kGates * lanes * (kernels.words(depth) + 3);
}

CodesMatrix::CodesMatrix(const RecurrentForm& form, const Value& weight, const Value& scale, const Value* zero,
                         int64_t depth, const CodedRowsKernels& kernels, PackedStore& store)
    : depth_(depth), words_(kernels.words(depth)) {
  const int64_t lanes = kernels.dot.lanes, blocks = ceil_div(form.hidden, lanes), parts = form.directions * blocks;
  columns_ = parts * kGates * lanes;
  const bool bytes = kernels.bytes();
  values_ = store.floats(floats(form, depth, kernels), {&weight, &scale, zero}, [&](float* to) {
    const GivenCodes given(form, weight, scale, zero, depth);
    std::fill_n(to, columns_ * (words_ + 3), 0.0f);
    auto* sums = reinterpret_cast<int32_t*>(to + columns_ * words_);
    int32_t* zeros = sums + columns_;
    float* scales = to + columns_ * (words_ + 2);
    // Bytes are signed, and keep their zero points; int16 hold differences.
    const int64_t less = bytes && weight.dtype() == DType::UInt8 ? 128 : 0;
    for (int64_t at = 0; at < columns_; ++at) {
      const int64_t part = at / (kGates * lanes), gate = at / lanes % kGates, lane = at % lanes;
      const int64_t d = part / blocks, unit = part % blocks * lanes + lane, column = gate * form.hidden + unit;
      if (unit >= form.hidden) continue;
      const int64_t zero_point = given.zero(d, column) - less;
      auto* words = reinterpret_cast<int32_t*>(to + (part * words_ * kGates + gate) * lanes);
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t code = given.code(d, k, column) - less;
        const int64_t codes = kernels.dot.codes;
        put_dot_weight(words + k / codes * kGates * lanes, codes, dot_weight_at(lanes, codes, lane, k % codes),
                       static_cast<int32_t>(bytes ? code : code - zero_point));
        sum += code - zero_point;
      }
      sums[at] = static_cast<int32_t>(sum);
      zeros[at] = bytes ? static_cast<int32_t>(zero_point) : 0;
      scales[at] = static_cast<float>(given.scale(d, column));
    }
  });
  const auto* zeros = values_.as<int32_t>() + columns_ * (words_ + 1);
  has_zeros_ = std::any_of(zeros, zeros + columns_, [](int32_t z) { return z != 0; });
}

void CodesMatrix::multiply(const CodedRowsKernels& kernels, const RowCodes& codes, int64_t part, int64_t begin,
                           int64_t end, const float* bias, float* to, int64_t gate) const {
  const int64_t lanes = kernels.dot.lanes, column = part * kGates * lanes;
  SumsOfCodes a;
  a.sums = reinterpret_cast<int32_t*>(to);
  a.gate = gate;
  a.gates = kGates;
  a.rows = end - begin;
  a.scale = codes.scale;
  a.zero = kernels.bytes() ? codes.zero : 0;
  a.row_sums = codes.sums ? codes.sums + begin : nullptr;
  a.column_sums = values_.as<int32_t>() + columns_ * words_ + column;
  a.weight_zeros = a.column_sums + columns_;
  a.weight_scales = values_.as<float>() + columns_ * (words_ + 2) + column;
  a.bias = bias;
  const auto* weights = values_.as<int32_t>() + column * words_;
  if (end - begin == 1) {
    kernels.product_of_row(a, weights, codes.codes + begin * words_ * 4, words_, kernels.bytes());
    return;
  }
  DotTile tile;
  tile.step = words_ * 4;
  tile.taps = &kFirstTap;
  tile.tap_count = 1;
  tile.block_words = tile.last_words = words_;
  tile.weight = weights;
  tile.result = &whole_sums();
  tile.columns = kGates * lanes;
  tile.dst_row = lanes;
  tile.dst_vector = gate;
  const int64_t most = kernels.dot.max_rows[kGates];
  for (int64_t row = begin; row < end;) {
    const int64_t count = std::min(most, end - row);
    tile.src = codes.codes + row * tile.step;
    tile.dst = to + (row - begin) * lanes;
    kernels.dot.tiles[kGates][count](tile);
    row += count;
  }
  kernels.sums_of_codes(a);
}

}  // namespace neo
