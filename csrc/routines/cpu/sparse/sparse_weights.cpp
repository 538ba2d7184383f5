#include "routines/cpu/sparse/sparse_weights.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"

namespace neo {
namespace {

// Shares of zeros from which on the sparse kernels have less to do than the dense ones: of weights, and of blocks.
constexpr double kMinZeros = 0.6, kMinZeroBlocks = 0.4;

int64_t max_nonzeros(int64_t weights) {
  return static_cast<int64_t>((1 - kMinZeros) * static_cast<double>(weights));
}
int64_t max_blocks(int64_t outputs, int64_t sources) {
  const int64_t blocks = outputs > 1 ? ceil_div(outputs, int64_t{kSparseBlock}) * sources : 0;
  return static_cast<int64_t>((1 - kMinZeroBlocks) * static_cast<double>(blocks));
}

// Blocks that are not all zeros.
int64_t blocks_of(const SparseMatrix& matrix) {
  const float* w = matrix.weight->as<float>();
  int64_t blocks = 0;
  for (int64_t first = 0; first < matrix.outputs; first += kSparseBlock) {
    const int64_t end = std::min(first + kSparseBlock, matrix.outputs);
    for (int64_t source = 0; source < matrix.sources; ++source) {
      bool is_zero = true;
      for (int64_t output = first; output < end; ++output) is_zero = is_zero && w[matrix.index(output, source)] == 0.0f;
      blocks += !is_zero;
    }
  }
  return blocks;
}

// Runs that are spread over the weights, in which fewer than half of the zeros that are asked for tell dense weights.
bool is_clearly_dense(const Tensor& weight) {
  constexpr int64_t kRuns = 64, kRun = 64, kSample = kRuns * kRun;
  if (weight.size() < 4 * kSample) return false;
  std::array<float, kRun> run{};
  int64_t zeros = 0;
  for (int64_t i = 0; i < kRuns; ++i) {
    weight.copy_numbers((weight.size() - kRun) / (kRuns - 1) * i, kRun, run.data());
    zeros += std::count(run.begin(), run.end(), 0.0f);
  }
  return static_cast<double>(zeros) < kMinZeroBlocks / 2 * kSample;
}

}  // namespace

const char* reject_sparse(const SparseMatrix& matrix) {
  const Tensor& weight = *matrix.weight;
  if (weight.size() == 0) return "there are no weights";
  if (weight.is_splat()) return "all weights are alike";
  if (matrix.is_known() && (is_clearly_dense(weight) || SparseForm::schedules(matrix).empty()))
    return "fewer than 60 % of the weights are zeros, and fewer than 40 % of blocks of four outputs";
  return nullptr;
}

int64_t nonzeros_of(const Tensor& weight) {
  int64_t zeros = 0;
  weight.visit_numbers([&](const void* values, int64_t count) {
    const auto* w = static_cast<const float*>(values);
    zeros += std::count(w, w + count, 0.0f);
    return true;
  });
  return weight.size() - zeros;
}

SparseForm SparseForm::of(const SparseMatrix& matrix, const Schedule& schedule) {
  SparseForm form{matrix.outputs, matrix.sources, value_of(schedule, "nonzeros"), false};
  if (const int64_t blocks = value_of(schedule, "blocks"); blocks > 0) {
    form.count = blocks;
    form.is_block = true;
  }
  return form;
}

std::vector<Schedule> SparseForm::schedules(const SparseMatrix& matrix) {
  std::vector<Schedule> all;
  if (!matrix.is_known()) return all;
  const Tensor& weight = *matrix.weight;
  const int64_t nonzeros = nonzeros_of(weight), most = max_blocks(matrix.outputs, matrix.sources);
  if (nonzeros <= max_nonzeros(weight.size())) all.push_back({{"nonzeros", nonzeros}});
  // No fewer weights are in blocks than are not zero.
  if (nonzeros == 0 || nonzeros > most * kSparseBlock) return all;
  if (const int64_t blocks = blocks_of(matrix); blocks <= most) all.push_back({{"blocks", blocks}});
  return all;
}

Space SparseForm::space(const SparseMatrix& matrix) {
  if (matrix.is_known()) return {};
  const auto up_to = [](int64_t most) {
    std::vector<int64_t> counts(static_cast<size_t>(most) + 1);
    std::iota(counts.begin(), counts.end(), 0);
    return counts;
  };
  return Space({{"nonzeros", up_to(max_nonzeros(matrix.weight->size()))},
                {"blocks", up_to(max_blocks(matrix.outputs, matrix.sources))}},
               [](std::span<const int64_t> v) { return v[0] == 0 || v[1] == 0; });
}

namespace {

template <int kOutputs>
void fill_groups(const SparseMatrix& matrix, int64_t expected, int64_t groups, float* to) {
  const float* w = matrix.weight->as<float>();
  auto* begin = reinterpret_cast<int32_t*>(to);
  auto* next = reinterpret_cast<SparseWeights<kOutputs>*>(to + groups + 1);
  int32_t count = 0;
  for (int64_t group = 0; group < groups; ++group) {
    begin[group] = count;
    for (int64_t source = 0; source < matrix.sources; ++source) {
      SparseWeights<kOutputs> weights = {static_cast<int32_t>(source), {}};
      bool is_zero = true;
      for (int i = 0; i < kOutputs && group * kOutputs + i < matrix.outputs; ++i) {
        weights.value[i] = w[matrix.index(group * kOutputs + i, source)];
        is_zero = is_zero && weights.value[i] == 0.0f;
      }
      if (is_zero) continue;
      NEO_ASSERT(count < expected, "a schedule is of its weights");
      next[count++] = weights;
    }
  }
  begin[groups] = count;
  NEO_ASSERT(count == expected, "a schedule is of its weights");
}

}  // namespace

Tensor SparseForm::pack(const Value* weight, const SparseMatrix& matrix, PackedStore& store) const {
  NEO_CHECK(count >= 0 && count <= groups() * sources, Model, "load",
            "sparse weights must be at most all of the weights. Got ", count);
  Tensor packed = store.floats(size(), {weight}, [&](float* to) { fill(matrix, to); });
  if (is_sound(packed)) return packed;
  // A benchmark hands out any memory, since what is packed seldom matters to the time.
  NEO_CHECK(matrix.is_known(), Model, "load", "sparse weights must be of the sources that there are");
  packed = Tensor(DType::Float32, {size()});
  fill(matrix, packed.as<float>());
  return packed;
}

void SparseForm::set(const Tensor& packed, int64_t group, SparseRun& run) const {
  const auto* begin = reinterpret_cast<const int32_t*>(packed.as<float>());
  run.weights = packed.as<float>() + groups() + 1 + begin[group] * (1 + this->group());
  run.weight_count = begin[group + 1] - begin[group];
  run.is_block = is_block;
  run.outputs = std::min(this->group(), outputs - group * this->group());
}

void SparseForm::fill(const SparseMatrix& matrix, float* to) const {
  static_assert(sizeof(SparseWeights<kSparseBlock>) == (1 + kSparseBlock) * sizeof(float));
  is_block ? fill_groups<kSparseBlock>(matrix, count, groups(), to) : fill_groups<1>(matrix, count, groups(), to);
}

bool SparseForm::is_sound(const Tensor& packed) const {
  const auto* begin = reinterpret_cast<const int32_t*>(packed.as<float>());
  if (!std::is_sorted(begin, begin + groups() + 1) || begin[0] != 0 || begin[groups()] != count) return false;
  const int32_t* source = begin + groups() + 1;
  for (int64_t i = 0; i < count; ++i, source += 1 + group()) {
    if (*source < 0 || *source >= sources) return false;
  }
  return true;
}

double sparse_cycles(const SparseForm& form, const SparseRunSize& run) {
  // Cycles of a vector from the first cache, and from the second; the least that a weight takes, for one result too;
  // and what an output takes to begin. A vector on two lines of a cache takes longer, but each place of a kernel's row
  // reads the same lines.
  constexpr double kNear = 1.5, kFar = 3, kSplit = 2.6, kMinCycles = 5, kOne = 2.2, kOutput = 40, kNearBytes = 24576;
  // The same of a block.
  constexpr double kBlockNear = 2.4, kBlockFar = 4, kBlockSplit = 2.8, kBlockMinCycles = 6, kBlockOne = 4;
  const double count = static_cast<double>(form.count),
               start = kOutput * static_cast<double>(form.is_block ? 2 * form.groups() : form.outputs);
  if (run.vectors == 0) return count * (form.is_block ? kBlockOne : kOne) + start;
  const bool is_far = run.source_bytes > kNearBytes;
  const double split = form.is_block ? kBlockSplit : kSplit, far = form.is_block ? kBlockFar : kFar,
               near = form.is_block ? kBlockNear : kNear;
  const double vector = !run.is_aligned ? split : (is_far ? far : near);
  return count * std::max(form.is_block ? kBlockMinCycles : kMinCycles, run.vectors * vector) + start;
}

}  // namespace neo
