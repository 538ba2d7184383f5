#include "routines/cpu/gemm/exponent_packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "routines/cost/step_cost.h"

namespace neo {
namespace {

constexpr int64_t kLineFloats = 16;  // floats
constexpr int32_t kBinades = 15;     // of exponents that are kept

struct Outlier {
  uint32_t at;  // row * width + column
  float value;
};
static_assert(sizeof(Outlier) == 8);

// The parts of the packed weights, in floats.
struct Parts {
  int64_t starts, outliers, panels;

  static Parts of(const ExponentPackedShape& shape) {
    const auto lines = [](int64_t floats) { return ceil_div(floats, kLineFloats) * kLineFloats; };
    Parts p;
    p.starts = kLineFloats;
    p.outliers = p.starts + lines(shape.panels + 1);
    p.panels = p.outliers + lines(2 * shape.most_outliers());
    return p;
  }
};

// The exponent, as a float's bits have it.
int32_t exponent_of(float x) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(x) >> 23 & 0xff);
}

float power_of_two(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent) << 23);
}

// The least magnitude that is no outlier beside this largest one.
float least_of(float largest) {
  return power_of_two(exponent_of(largest) - kBinades + 1);
}

// One panel as it is packed.
class Panel {
 public:
  Panel(const ExponentPackedShape& shape, const float* packed, int64_t panel) : shape_(shape), scale_(packed[0]) {
    const Parts parts = Parts::of(shape);
    const auto* starts = reinterpret_cast<const uint32_t*>(packed + parts.starts) + panel;
    const auto* outliers = reinterpret_cast<const Outlier*>(packed + parts.outliers);
    // A file may hold anything.
    const int64_t last = std::min<int64_t>(starts[1], shape.most_outliers());
    outliers_ = {outliers + std::min<int64_t>(starts[0], last), outliers + last};
    groups_ = packed + parts.panels + panel * shape.panel_floats();
  }

  void multiply(const ExponentPackedKernels& kernels, const float* x, int64_t step, float* sums) const {
    float before[kMaxExponentPackedWidth];
    if (!outliers_.empty()) std::copy_n(sums, shape_.width(), before);
    kernels.multiply[shape_.vectors - 1](x, step, shape_.rows, scale_, groups_, shape_.prefetched, sums);
    for (const Outlier& outlier : outliers_) {
      if (row_of(outlier) < shape_.rows) sums[column_of(outlier)] += x[row_of(outlier) * step] * outlier.value;
    }
    // An infinity times the zero in an outlier's place has made a sum that may not be one.
    uint64_t summed = 0;
    for (const Outlier& outlier : outliers_) {
      const int64_t column = column_of(outlier);
      if (!std::isnan(sums[column]) || (summed >> column & 1) != 0) continue;
      sums[column] = sum_of(column, x, step, before[column]);
      summed |= uint64_t{1} << column;
    }
  }

 private:
  int64_t row_of(const Outlier& outlier) const { return outlier.at / shape_.width(); }
  int64_t column_of(const Outlier& outlier) const { return outlier.at % shape_.width(); }

  // See compress() of the kernels.
  float weight(int64_t row, int64_t column) const {
    const int64_t at = row * shape_.vectors + column / shape_.lanes;
    const float* lane = groups_ + at / 8 * 7 * shape_.lanes + column % shape_.lanes;
    const auto word = [&](int64_t i) { return std::bit_cast<uint32_t>(lane[i * shape_.lanes]); };
    constexpr uint32_t kHole = 0x78000000;
    if (at % 8 < 7) return std::bit_cast<float>(word(at % 8) & ~kHole) * scale_;
    const uint32_t last = word(6) & kHole;
    uint32_t bits = (last >> 28 & 7) | last << 4;
    for (int i = 0; i < 6; ++i) bits |= (word(i) & kHole) >> 4 * (i + 1);
    return std::bit_cast<float>(bits) * scale_;
  }

  float sum_of(int64_t column, const float* x, int64_t step, float sum) const {
    size_t next = 0;
    for (int64_t row = 0; row < shape_.rows; ++row) {
      const auto at = static_cast<uint32_t>(row * shape_.width() + column);
      while (next < outliers_.size() && outliers_[next].at < at) ++next;
      const bool is_outlier = next < outliers_.size() && outliers_[next].at == at;
      sum += x[row * step] * (is_outlier ? outliers_[next].value : weight(row, column));
    }
    return sum;
  }

  const ExponentPackedShape& shape_;
  float scale_;
  std::span<const Outlier> outliers_;  // by row and column
  const float* groups_;
};

}  // namespace

int64_t ExponentPackedShape::panel_floats() const {
  return ceil_div(rows, kExponentPackedRows) * exponent_packed_group_floats(vectors, lanes);
}

int64_t ExponentPackedShape::size() const {
  return Parts::of(*this).panels + panels * panel_floats();
}

const char* reject_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels,
                                   const Tensor& weights) {
  if (shape.rows * shape.width() > UINT32_MAX) return "more rows than an outlier can name";
  if (weights.is_absent()) return nullptr;
  float largest = 0;
  weights.visit_numbers([&](const void* values, int64_t count) {
    largest = std::max(largest, kernels.largest(static_cast<const float*>(values), count));
    return true;
  });
  if (largest == 0) return nullptr;
  // The scale and the least magnitude must be normal floats.
  const int32_t exponent = exponent_of(largest);
  if (exponent <= kBinades || exponent - kBinades > 127) return "the weights are too large or too small";
  const int64_t most = shape.most_outliers();
  int64_t outliers = 0;
  weights.visit_numbers([&](const void* values, int64_t count) {
    outliers += kernels.count_outliers(static_cast<const float*>(values), count, least_of(largest), most - outliers);
    return outliers <= most;
  });
  if (outliers > most) return "more than a weight in 1024 lies outside 15 binades";
  return nullptr;
}

void pack_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels, const float* weights,
                          const PlainRows& plain_rows, float* packed) {
  constexpr int64_t kRows = 16 * kExponentPackedRows;
  const Parts parts = Parts::of(shape);
  const float largest = kernels.largest(weights, shape.weights);
  const int32_t base = largest == 0 ? 0 : exponent_of(largest) - kBinades;
  const float least = largest == 0 ? 0 : least_of(largest);
  std::memset(packed, 0, static_cast<size_t>(parts.panels) * sizeof(float));
  packed[0] = largest == 0 ? 0 : power_of_two(base + 127);
  auto* starts = reinterpret_cast<uint32_t*>(packed + parts.starts);
  auto* outliers = reinterpret_cast<Outlier*>(packed + parts.outliers);
  float* to = packed + parts.panels;
  std::vector<float> plain(static_cast<size_t>(kRows * shape.width()));
  uint32_t found = 0;
  for (int64_t panel = 0; panel < shape.panels; ++panel) {
    for (int64_t row = 0; row < shape.rows; row += kRows) {
      const int64_t rows = std::min(kRows, shape.rows - row), groups = ceil_div(rows, kExponentPackedRows);
      plain_rows(panel, row, rows, plain.data());
      std::fill(plain.begin() + rows * shape.width(), plain.end(), 0.0f);
      kernels.compress(plain.data(), groups, shape.vectors, base, least, to);
      to += groups * exponent_packed_group_floats(shape.vectors, shape.lanes);
      if (kernels.count_outliers(plain.data(), rows * shape.width(), least, 0) == 0) continue;
      for (int64_t at = 0; at < rows * shape.width(); ++at) {
        const float value = plain[static_cast<size_t>(at)];
        if (value == 0 || std::fabs(value) >= least) continue;
        outliers[found++] = {static_cast<uint32_t>(row * shape.width() + at), value};
      }
    }
    starts[panel + 1] = found;
  }
}

void multiply_exponent_packed(const ExponentPackedShape& shape, const ExponentPackedKernels& kernels,
                              const float* packed, int64_t panel, const float* x, int64_t step, float* sums) {
  Panel(shape, packed, panel).multiply(kernels, x, step, sums);
}

double exponent_packed_cycles(const Target& target) {
  return target.lanes() > 8 ? 3 : 4.5;
}

int64_t exponent_packed_prefetch(const Target& target, bool in_memory) {
  if (far_byte_us(target) == 0) return 0;
  return in_memory ? 128 : 1024;
}

}  // namespace neo
