#pragma once

#include <vector>

#include "base/int_math.h"
#include "routines/cpu/sparse/sparse.h"
#include "routines/packed_store.h"
#include "routines/space.h"

namespace neo {

// Error of a sum without the zeros, in units of the direct sum's: it is that sum, but an infinity times a zero is
// left out, which only a caller who asks for the direct methods notices.
constexpr double kSparseError = 1e-6;

// Weights of outputs for sources, in floats from one to the next.
struct SparseMatrix {
  const Tensor* weight = nullptr;
  int64_t outputs = 0, sources = 0;
  int64_t output_step = 0, source_step = 0;

  // A saved module has the packed weights alone: then nothing is known of them but their number.
  bool is_known() const { return !weight->is_absent(); }
  int64_t index(int64_t output, int64_t source) const { return output * output_step + source * source_step; }
};

// Why not weights that are known, or null. Fewer zeros leave more to do than the dense kernels lose by multiplying
// them.
const char* reject_sparse(const SparseMatrix& matrix);
int64_t nonzeros_of(const Tensor& weight);

// The weights of some outputs for some sources that are no zeros: where those of each output begin, or of each block of
// kSparseBlock outputs, then the weights.
struct SparseForm {
  int64_t outputs = 0, sources = 0;
  int64_t count = 0;  // of SparseWeights
  bool is_block = false;

  // As a schedule has it: "nonzeros" of single outputs, or "blocks".
  static SparseForm of(const SparseMatrix& matrix, const Schedule& schedule);
  // The schedules that weights which are known have zeros enough for: of single outputs, and of blocks.
  static std::vector<Schedule> schedules(const SparseMatrix& matrix);
  // All that weights may have which are not known; empty where they are.
  static Space space(const SparseMatrix& matrix);

  int64_t group() const { return is_block ? kSparseBlock : 1; }  // outputs of each
  int64_t groups() const { return ceil_div(outputs, group()); }
  int64_t weights() const { return count * group(); }
  int64_t size() const { return groups() + 1 + count * (1 + group()); }  // floats

  // Packs a value's constant, or checks what a saved module's store has.
  Tensor pack(const Value* weight, const SparseMatrix& matrix, PackedStore& store) const;
  // Sets the weights and outputs of a run.
  void set(const Tensor& packed, int64_t group, SparseRun& run) const;

 private:
  void fill(const SparseMatrix& matrix, float* to) const;
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
double sparse_cycles(const SparseForm& form, const SparseRunSize& run);

}  // namespace neo
