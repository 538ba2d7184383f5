#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "ops/op.h"

namespace neo {

// Four pixels of a plane and their weights; all weights are zero outside the image.
struct Bilinear {
  int64_t positions[4] = {};
  double weights[4] = {};
};

// Whether the node's mode is max, rather than avg; a Model error where it is neither.
bool takes_roi_maximum(const Node& node);

// Calls body(region, image, cell, samples) for every cell of the result's planes. A Shape error where the inputs do not
// fit, or a region is too large.
void for_each_roi_cell(
    const ReferenceContext& ctx,
    const std::function<void(int64_t region, int64_t image, int64_t cell, std::span<const Bilinear> samples)>& body);

// A region of MaxRoiPool: its image, and the rows and columns of each row and column of bins, cut to the image.
struct RoiBins {
  int64_t image = 0;
  std::vector<IndexRange> rows, columns;
};

// The regions of a call; a Shape error where the inputs do not fit, or a region is not finite.
std::vector<RoiBins> max_roi_bins(const ReferenceContext& ctx);

}  // namespace neo
