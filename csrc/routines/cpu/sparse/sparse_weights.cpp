#include "routines/cpu/sparse/sparse_weights.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace neo {
namespace {

constexpr double kLeastZeros = 0.6;

int64_t most_nonzeros(const Tensor& weight) {
  return static_cast<int64_t>((1 - kLeastZeros) * static_cast<double>(weight.size()));
}

}  // namespace

const char* reject_sparse(const Tensor& weight) {
  if (weight.size() == 0) return "there are no weights";
  if (weight.is_splat()) return "all weights are alike";
  if (!weight.is_absent() && nonzeros_of(weight) > most_nonzeros(weight))
    return "fewer than 60 % of the weights are zeros";
  return nullptr;
}

int64_t nonzeros_of(const Tensor& weight) {
  const float* w = weight.as<float>();
  return weight.size() - std::count(w, w + weight.size(), 0.0f);
}

Space sparse_space(const Tensor& weight) {
  if (!weight.is_absent()) return {};
  std::vector<int64_t> counts(static_cast<size_t>(most_nonzeros(weight)) + 1);
  std::iota(counts.begin(), counts.end(), 0);
  return Space({{"nonzeros", std::move(counts)}}, [](std::span<const int64_t>) { return true; });
}

Tensor SparseForm::pack(const Value* weight, PackedStore& store,
                        const std::function<float(int64_t, int64_t)>& weight_at) const {
  static_assert(sizeof(SparseWeight) == 2 * sizeof(float));
  NEO_CHECK(nonzeros >= 0 && nonzeros <= outputs * sources, Model, "load",
            "sparse weights must be at most all of the weights. Got ", nonzeros);
  Tensor packed = store.floats(size(), {weight}, [&](float* to) { fill(weight_at, to); });
  if (is_sound(packed)) return packed;
  // A benchmark hands out any memory, since what is packed seldom matters to the time.
  NEO_CHECK(!weight->constant->is_absent(), Model, "load", "sparse weights must be of the sources that there are");
  packed = Tensor(DType::Float32, {size()});
  fill(weight_at, packed.as<float>());
  return packed;
}

void SparseForm::fill(const std::function<float(int64_t, int64_t)>& weight_at, float* to) const {
  auto* begin = reinterpret_cast<int32_t*>(to);
  auto* next = reinterpret_cast<SparseWeight*>(to + outputs + 1);
  int32_t count = 0;
  for (int64_t k = 0; k < outputs; ++k) {
    begin[k] = count;
    for (int64_t source = 0; source < sources; ++source) {
      const float value = weight_at(k, source);
      if (value == 0.0f) continue;
      NEO_ASSERT(count < nonzeros, "a schedule is of its weights");
      next[count++] = {static_cast<int32_t>(source), value};
    }
  }
  begin[outputs] = count;
  NEO_ASSERT(count == nonzeros, "a schedule is of its weights");
}

bool SparseForm::is_sound(const Tensor& packed) const {
  const int32_t* begin = starts(packed);
  const bool rises = std::is_sorted(begin, begin + outputs + 1) && begin[0] == 0;
  return rises && begin[outputs] == nonzeros &&
         std::all_of(weights(packed), weights(packed) + nonzeros,
                     [&](const SparseWeight& w) { return w.source >= 0 && w.source < sources; });
}

double sparse_cycles(double nonzeros, double outputs, const SparseRunSize& run) {
  // Cycles of a vector from the first cache, on two lines of it, and from the second; the least that a weight takes,
  // for one result too; and what an output takes to begin.
  constexpr double kNear = 1.5, kSplit = 2.6, kFar = 3, kLeast = 5, kOne = 2.2, kOutput = 40, kNearBytes = 24576;
  if (run.vectors == 0) return nonzeros * kOne + outputs * kOutput;
  const double vector = run.source_bytes > kNearBytes ? kFar : (run.is_aligned ? kNear : kSplit);
  return nonzeros * std::max(kLeast, run.vectors * vector) + outputs * kOutput;
}

}  // namespace neo
