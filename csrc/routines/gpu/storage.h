#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "routines/gpu/program.h"
#include "routines/routine.h"

// Values of float16 and bfloat16: kernels hold them so in memory and compute with float32, as on the CPU. A program of
// float32 becomes one of halves by kernel::with_storage().
namespace neo::gpu {

inline bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

// Whether kernels compute with the dtype in float32.
inline bool computes_in_float32(DType dtype) {
  return dtype == DType::Float32 || is_half(dtype);
}

// In which dtype a workload's floats are held: that of its first input where it is a half, else float32.
DType storage_of(const Workload& workload);

// The elements of a constant of float32 or halves.
class ConstantFloats {
 public:
  ConstantFloats() = default;  // of nothing: data() is null
  explicit ConstantFloats(const Value* value);
  const float* data() const { return wide_.empty() ? given_ : wide_.data(); }

 private:
  const float* given_ = nullptr;
  std::vector<float> wide_;
};

// Bytes of so many packed elements.
inline int64_t packed_bytes(int64_t count, DType storage) {
  return count * item_bytes(storage);
}

// As PackedStore::floats, the elements held in `storage`.
void pack_stored(PackedStore& packed, DType storage, int64_t count, std::initializer_list<const Value*> of,
                 FunctionRef<void(float*)> fill);

// A program whose every parameter of float32 that does not say its storage is held in `storage`.
std::unique_ptr<Program> stored_program(std::unique_ptr<Program> program, DType storage);

// A workload of one node with float32 in the place of halves, to ask what is known of float32 alone.
class WideTwin {
 public:
  explicit WideTwin(const Workload& workload);
  const Workload& workload() const { return workload_; }

 private:
  Graph graph_;
  Workload workload_;
};

// The twin of a workload of halves; any other workload itself.
class WideView {
 public:
  explicit WideView(const Workload& workload)
      : workload_(&workload), twin_(storage_of(workload) == DType::Float32 ? nullptr : new WideTwin(workload)) {}
  const Workload& workload() const { return twin_ ? twin_->workload() : *workload_; }

 private:
  const Workload* workload_;
  std::unique_ptr<const WideTwin> twin_;
};

}  // namespace neo::gpu
