#pragma once

#include <vector>

#include "routines/gpu/gemm/product.h"
#include "routines/patterns/gemm_problem.h"
#include "routines/routine.h"
#include "routines/space.h"

namespace neo::gpu {

// A product by register blocks: each thread makes `rows` x (`vectors` x `lanes`) of the result. B is read in panels of
// so many columns, packed at compile time, or by a kernel before where it comes at run time.
struct GemmSchedule {
  int lanes = 8;    // columns of a vector: 4, 8, 16
  int vectors = 2;  // of columns
  int rows = 4;
  int inner = 1;  // of the summed axis, written out; A is read in vectors of so many where it lies dense along it
  int order = 0;  // of the groups, the fastest first: 0: rows, columns; 1: columns, rows
  int threads_row = 1;
  int threads_column = 1;
  int split = 1;  // threads that share the summed axis of a block, and add up their parts in local memory

  static GemmSchedule of(const Schedule& schedule);
  static GemmSchedule of(std::span<const int64_t> values);  // of a point of its space
  int panel() const { return vectors * lanes; }
};

Space gemm_space(const GemmForm& form, int64_t m, int64_t n, int64_t k);
const char* reject_gemm_schedule(const GemmSchedule& schedule);

// Floats of B [matrix][panel][k][panel's columns]; alpha is in it.
int64_t packed_b_size(const GemmForm& form, const GemmSchedule& schedule, const Dims& b);
void pack_b(const GemmForm& form, const GemmSchedule& schedule, const Dims& b, const float* from, float* to);

// Packed constants: B where it is one, then the bias if there is one.
class GemmProgram final : public Program {
 public:
  GemmProgram(GemmForm form, const GemmSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  GemmForm form_;
  GemmSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;  // the product, then the packing where B comes at run time
};

kernel::Kernel gemm_kernel(const GemmForm& form, const GemmSchedule& schedule);
kernel::Kernel gemm_pack_kernel(const GemmForm& form, const GemmSchedule& schedule);

}  // namespace neo::gpu
