#pragma once

#include <vector>

#include "routines/gpu/program.h"
#include "routines/gpu/vision/boxes.h"

namespace neo::gpu {

struct SuppressionSchedule {
  int chunk = 2048;  // candidates between two checks against all that was kept; a multiple of 64
};

// Greedy suppression of overlapping boxes in segments (an image, or a class of one): candidates in their order, each
// kept unless one that was kept overlaps it, until `limit` are kept. Work: candidates times kept. By chunks: one launch
// checks all candidates of a chunk against what was kept before, a second one, with one group for each segment, goes
// through the chunk 64 at a time: against what the chunk kept, then among each other.
class Suppression {
 public:
  Suppression(float threshold, bool by_class, const SuppressionSchedule& schedule,
              std::vector<kernel::Kernel>& kernels);

  struct Candidates {
    int64_t segments = 0;
    int64_t per_image = 1;   // segments of one image
    int64_t boxes = 0;       // of an image, and of a segment
    int64_t considered = 0;  // the first so many of the order
    int64_t limit = 0;       // to be kept at most, in one segment
    int keys = 0;            // temporaries, `boxes` for each segment: those with kLastKey are no candidates
    int order = 0;
    int corners = 0;  // temporary: [images, boxes, 4], x0 y0 x1 y1
    int classes = 0;  // temporary: [images, boxes] float32; only of one class do boxes hide one another
  };
  struct Kept {
    int counts = 0;   // temporary: [segments] int32
    int indices = 0;  // temporary: [segments, limit] int32, boxes in the order in which they were kept
  };
  // All sizes > 0.
  Kept append(Launches& out, const Candidates& candidates) const;

 private:
  kernel::Kernel check_kernel() const;
  kernel::Kernel resolve_kernel() const;

  Overlap overlap_;
  bool by_class_;
  SuppressionSchedule schedule_;
  int first_;  // of the kernels
};

}  // namespace neo::gpu
