#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"

// The prefix sum in three stages (the paper's 3.1.1): every thread sums a few elements and the threads of a group scan
// their sums in local memory; one group scans the totals of all blocks; every block adds what comes before it.
namespace neo::gpu {

// Elements of one block.
inline constexpr int kScanThreads = 64, kScanEach = 16, kScanBlock = kScanThreads * kScanEach;

// The operands of a scan. Segments start at `starts`; undefined where the whole is one segment.
struct ScanKernel {
  DType dtype = DType::Int32;
  bool exclusive = false;
  std::function<kernel::Expr(const kernel::Expr& i)> load;
  std::function<kernel::Expr(const kernel::Expr& i)> starts;  // a bool
  std::function<void(const kernel::Expr& i, const kernel::Expr& value)> store;
};

// The body of the first stage, for a kernel of `n` elements whose group axis it makes. Writes each block's total, and
// whether a segment starts in it where there are segments.
void scan_blocks(kernel::Builder& b, const kernel::Expr& n, const ScanKernel& scan, const kernel::Array& totals,
                 const kernel::Array* flags);
// The second stage: parameters blocks, totals, (flags,) sum. The sum before each block replaces its total; sum[0]
// is the sum of the last segment.
kernel::Kernel scan_totals(DType dtype, bool segmented);

}  // namespace neo::gpu
