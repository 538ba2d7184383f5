#pragma once

#include <vector>

#include "routines/gpu/gemm/block_product.h"
#include "routines/gpu/gemm/product.h"
#include "routines/routine.h"
#include "routines/space.h"

namespace neo::gpu {

// A product by matrix instructions: tiles of A and B come through local memory, where they are rounded to tf32. B is
// read as it lies, a constant or not.
struct Tf32GemmSchedule {
  int subgroups = 4;  // of a group, beside each other along the rows
  int rows = 32;      // of a subgroup, in sixteens
  int columns = 2;    // of one thread: a group has 32 times as many
  int depth = 16;     // products of a result between two barriers, in eights
  int unroll = 0;     // 1: those are written out
  int order = 0;      // of the groups, the fastest first: 0: rows, columns; 1: columns, rows

  static Tf32GemmSchedule of(const Schedule& schedule);
  static Tf32GemmSchedule of(std::span<const int64_t> values);  // of a point of its space
  BlockShape block() const { return {true, subgroups, kMatrixThreads, rows, columns, depth, unroll == 1}; }
};

const char* reject_tf32_schedule(const GemmForm& form, const Tf32GemmSchedule& schedule);
Space tf32_gemm_space(const GemmForm& form, const GemmShape& shape);
Profile tf32_gemm_profile(const GemmForm& form, const Tf32GemmSchedule& schedule, const GemmShape& shape);

// Packed constants: B as it is where it is one, then the bias, one element for each column.
class Tf32GemmProgram final : public Program {
 public:
  Tf32GemmProgram(GemmForm form, const Tf32GemmSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  GemmForm form_;
  Tf32GemmSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace neo::gpu
