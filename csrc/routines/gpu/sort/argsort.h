#pragma once

#include <vector>

#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"

namespace neo::gpu {

// Elements that one group sorts, and that one thread merges.
struct SortSchedule {
  int block = 512;  // a power of two
  int each = 16;
};

// Argsort of segments of equal length (the paper's 3.1.1): segments lie one after the other, groups sort blocks of them
// in local memory (a block holds several whole segments where they are short), then passes merge neighbouring runs;
// each thread finds by halving where its part of the merged run starts, and merges that part. Work n log n. Stable:
// equal keys keep their order.
class Argsort {
 public:
  // Appends its kernels, for keys of int32 or int64.
  Argsort(DType key, const SortSchedule& schedule, std::vector<kernel::Kernel>& kernels);

  // Appends the launches that sort `segments` x `length` > 0 keys, which are lost. Only the first `keep` of every
  // segment are wanted. Returns the temporary with the positions within the segment in order (int32), `length` apart.
  int append(Launches& out, int keys, int64_t segments, int64_t length, int64_t keep) const;
  // The temporary with the keys in that order.
  int sorted_keys(int order) const { return order - 1; }

 private:
  DType key_;
  SortSchedule schedule_;
  int first_;  // of the kernels: sort_blocks, sort_merge
};

}  // namespace neo::gpu
