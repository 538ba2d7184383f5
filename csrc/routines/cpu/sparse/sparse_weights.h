#pragma once

#include <functional>
#include <initializer_list>

#include "routines/cpu/sparse/sparse.h"
#include "routines/packed_store.h"
#include "routines/space.h"

namespace neo {

// Error of a sum without the zeros, in units of the direct sum's: it is that sum, but an infinity times a zero is
// left out, which only a caller who asks for the direct methods notices.
constexpr double kSparseError = 1e-6;

// Why not weights that are known, or null. Fewer zeros leave more to do than the dense kernels lose by multiplying
// them. A saved module has the packed weights alone: then nothing is known of them but their number.
const char* reject_sparse(const Tensor& weight);
int64_t nonzeros_of(const Tensor& weight);
// "nonzeros" where only a schedule tells how many there are: empty where the weights do.
Space sparse_space(const Tensor& weight);

// The weights of some outputs for some sources that are no zeros: where each output's begin, then the weights.
struct SparseForm {
  int64_t outputs = 0, sources = 0, nonzeros = 0;

  int64_t size() const { return outputs + 1 + 2 * nonzeros; }  // floats
  static const int32_t* starts(const Tensor& packed) { return reinterpret_cast<const int32_t*>(packed.as<float>()); }
  const SparseWeight* weights(const Tensor& packed) const {
    return reinterpret_cast<const SparseWeight*>(packed.as<float>() + outputs + 1);
  }

  // Packs what weight_at(output, source) gives of a value's constant, or checks what a saved module's store has.
  Tensor pack(const Value* weight, PackedStore& store, const std::function<float(int64_t, int64_t)>& weight_at) const;

 private:
  void fill(const std::function<float(int64_t, int64_t)>& weight_at, float* to) const;
  // Whether what is packed keeps to the weights and sources that there are.
  bool is_sound(const Tensor& packed) const;
};

// A run of results, for its estimate.
struct SparseRunSize {
  double vectors = 0;       // 0: one result
  double source_bytes = 0;  // of all sources
  bool is_aligned = true;   // whether each begins where a vector does
};
// Cycles of all outputs of a run.
double sparse_cycles(double nonzeros, double outputs, const SparseRunSize& run);

}  // namespace neo
