#include "routines/cpu/gemm/gemv_compressed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

constexpr int64_t kMaxLanes = 16;
constexpr int64_t kLine = 16;     // floats
constexpr int32_t kBinades = 15;  // of exponents that are kept
constexpr int64_t kWeightsPerOutlier = 1024;
constexpr int64_t kWorthOfATask = 200000;  // weights

struct Outlier {
  uint32_t at;  // row * width + column
  float value;
};
static_assert(sizeof(Outlier) == 8);

// The parts of the packed weights, in floats.
struct Parts {
  int64_t starts, outliers, panels;

  static Parts of(const CompressedPlan& plan) {
    const auto lines = [](int64_t floats) { return ceil_div(floats, kLine) * kLine; };
    Parts p;
    p.starts = kLine;
    p.outliers = p.starts + lines(plan.panels + 1);
    p.panels = p.outliers + lines(2 * plan.most);
    return p;
  }
};

int64_t panel_floats(const CompressedPlan& plan) {
  return plan.k * compressed_row_bytes(plan.lanes) / static_cast<int64_t>(sizeof(float));
}

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
  Panel(const CompressedPlan& plan, const float* packed, int64_t panel) : plan_(plan), scale_(packed[0]) {
    const Parts parts = Parts::of(plan);
    const auto* starts = reinterpret_cast<const uint32_t*>(packed + parts.starts) + panel;
    const auto* outliers = reinterpret_cast<const Outlier*>(packed + parts.outliers);
    // What a file holds may be anything.
    const int64_t last = std::min<int64_t>(starts[1], plan.most), first = std::min<int64_t>(starts[0], last);
    outliers_ = {outliers + first, outliers + last};
    rows_ = reinterpret_cast<const uint8_t*>(packed + parts.panels + panel * panel_floats(plan));
  }

  void multiply(const CompressedKernels& kernels, const float* x, int64_t step, float* sums) const {
    kernels.multiply(x, step, plan_.k, scale_, rows_, sums);
    for (const Outlier& outlier : outliers_) {
      if (row_of(outlier) < plan_.k) sums[column_of(outlier)] += x[row_of(outlier) * step] * outlier.value;
    }
    // An infinity times the zero in an outlier's place has made a sum that may not be one.
    uint64_t summed = 0;
    for (const Outlier& outlier : outliers_) {
      const int64_t column = column_of(outlier);
      if (!std::isnan(sums[column]) || (summed >> column & 1) != 0) continue;
      sums[column] = sum_of(column, x, step);
      summed |= uint64_t{1} << column;
    }
  }

 private:
  int64_t row_of(const Outlier& outlier) const { return outlier.at / plan_.width; }
  int64_t column_of(const Outlier& outlier) const { return outlier.at % plan_.width; }

  float weight(int64_t row, int64_t column) const {
    const uint8_t* at = rows_ + row * compressed_row_bytes(plan_.lanes);
    const uint8_t* high = at + plan_.width * 2 + column;
    const int64_t vector = column / plan_.lanes, lane = column % plan_.lanes;
    const uint32_t exponents = at[plan_.width * 3 + vector / 2 * plan_.lanes + lane];
    const uint32_t exponent = vector % 2 == 0 ? exponents & 15 : exponents >> 4;
    const uint32_t low = at[column * 2] | at[column * 2 + 1] << 8;
    return std::bit_cast<float>((*high & 0x80u) << 24 | exponent << 23 | (*high & 0x7fu) << 16 | low) * scale_;
  }

  float sum_of(int64_t column, const float* x, int64_t step) const {
    float sum = 0;
    size_t next = 0;
    for (int64_t row = 0; row < plan_.k; ++row) {
      const auto at = static_cast<uint32_t>(row * plan_.width + column);
      while (next < outliers_.size() && outliers_[next].at < at) ++next;
      const bool is_outlier = next < outliers_.size() && outliers_[next].at == at;
      sum += x[row * step] * (is_outlier ? outliers_[next].value : weight(row, column));
    }
    return sum;
  }

  const CompressedPlan& plan_;
  float scale_;
  std::span<const Outlier> outliers_;  // by row and column
  const uint8_t* rows_;
};

}  // namespace

CompressedPlan plan_compressed(int64_t k, int64_t n, int64_t lanes) {
  CompressedPlan plan;
  plan.k = k;
  plan.n = n;
  plan.lanes = lanes;
  plan.width = kCompressedVectors * lanes;
  plan.panels = ceil_div(n, plan.width);
  plan.most = k * n / kWeightsPerOutlier;
  plan.panel_chunk = std::clamp<int64_t>(kWorthOfATask / std::max<int64_t>(1, k * plan.width), 1, plan.panels);
  plan.tasks = ceil_div(plan.panels, plan.panel_chunk);
  return plan;
}

const char* reject_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const float* b) {
  const float largest = kernels.largest(b, plan.k * plan.n);
  if (largest == 0) return nullptr;
  // The scale and the least magnitude must be normal floats.
  const int32_t exponent = exponent_of(largest);
  if (exponent <= kBinades || exponent - kBinades > 127) return "the weights are too large or too small";
  if (kernels.count_outliers(b, plan.k * plan.n, least_of(largest), plan.most) > plan.most) {
    return "more than a weight in 1024 lies outside 15 binades";
  }
  return nullptr;
}

int64_t compressed_size(const CompressedPlan& plan) {
  return Parts::of(plan).panels + plan.panels * panel_floats(plan);
}

void pack_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const PackKernels& pack,
                     const float* b, int64_t row, int64_t column, float* packed) {
  constexpr int64_t kRows = 128;
  const Parts parts = Parts::of(plan);
  const float largest = kernels.largest(b, plan.k * plan.n);
  const int32_t base = largest == 0 ? 0 : exponent_of(largest) - kBinades;
  const float least = largest == 0 ? 0 : least_of(largest);
  std::memset(packed, 0, static_cast<size_t>(parts.panels) * sizeof(float));
  packed[0] = largest == 0 ? 0 : power_of_two(base + 127);
  auto* starts = reinterpret_cast<uint32_t*>(packed + parts.starts);
  auto* outliers = reinterpret_cast<Outlier*>(packed + parts.outliers);
  auto* to = reinterpret_cast<uint8_t*>(packed + parts.panels);
  std::vector<float> plain(static_cast<size_t>(kRows * plan.width));
  uint32_t found = 0;
  for (int64_t p = 0; p < plan.panels; ++p) {
    const int64_t first = p * plan.width, columns = std::min(plan.width, plan.n - first);
    for (int64_t i = 0; i < plan.k; i += kRows) {
      const int64_t rows = std::min(kRows, plan.k - i);
      pack.panel(b + i * row + first * column, row, column, rows, columns, kCompressedVectors, 1.0f, plain.data());
      kernels.compress(plain.data(), rows, base, least, to);
      to += rows * compressed_row_bytes(plan.lanes);
      if (kernels.count_outliers(plain.data(), rows * plan.width, least, 0) == 0) continue;
      for (int64_t at = 0; at < rows * plan.width; ++at) {
        const float value = plain[static_cast<size_t>(at)];
        if (value == 0 || std::fabs(value) >= least) continue;
        outliers[found++] = {static_cast<uint32_t>(i * plan.width + at), value};
      }
    }
    starts[p + 1] = found;
  }
}

void run_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const CompressedArgs& args,
                    int64_t task_begin, int64_t task_end) {
  const int64_t begin = task_begin * plan.panel_chunk, end = std::min(task_end * plan.panel_chunk, plan.panels);
  for (int64_t p = begin; p < end; ++p) {
    alignas(64) float sums[kCompressedVectors * kMaxLanes] = {};
    Panel(plan, args.b, p).multiply(kernels, args.x, args.x_step, sums);
    const int64_t first = p * plan.width, columns = std::min(plan.width, plan.n - first);
    kernels.finish(sums, args.bias ? args.bias + first : nullptr, args.lo, args.hi, columns, args.y + first);
    if (args.activation) args.activation(args.y + first, columns);
  }
}

}  // namespace neo
