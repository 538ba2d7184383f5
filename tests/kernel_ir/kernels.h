#pragma once

#include <map>
#include <string>

#include "kernel_ir/stmt.h"

// Kernels that together use all of the IR, each on a task of the kind it is for. Sizes are the launch's.
namespace neo::kernel::examples {

Kernel gemm_registers(const std::string& name, int rows, int vectors, int lanes);
Kernel gemm_local();
Kernel scan_blocks();  // of three stages: sums of blocks, of the blocks' totals, both added
Kernel scan_totals();
Kernel scan_add();
Kernel sort_blocks();  // argsort: blocks by a bitonic network, then runs merged by rank
Kernel sort_merge();
Kernel conv_subgroup();
Kernel softmax_subgroup();
Kernel eltwise_vector();
Kernel mirror_vector();
Kernel repeat_strided();
Kernel gather_rows();
Kernel histogram();
Kernel gemm_matrices();
Kernel round_to_tf32();
Kernel dot_bytes();
Kernel scale_codes();
Kernel round_to_half(DType storage);
Kernel image_blur();

using Table = std::map<std::string, Kernel>;
const Table& all();

// Throws what the verifier says of a kernel that is wrong in the way named; for a name that it does not know, lists
// them.
void build_wrong(const std::string& name);

}  // namespace neo::kernel::examples
