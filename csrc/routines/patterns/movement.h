#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace neo {

// True where the node itself makes a size that is not known before it runs.
inline bool makes_sizes(const Node& node) {
  return !node.symbols.empty();
}

// Whether an Expand or Tile finds out the sizes of its result when it runs.
inline bool repeats_at_run_time(const Node& node) {
  return makes_sizes(node) && (node.op == "Expand" || node.op == "Tile");
}

// The permutation of a Transpose.
std::vector<int64_t> transpose_axes(const Node& node);

// The attribute "axis", counted from the front.
int normalized_axis(const Node& node, int rank);

// One part of an axis that a Slice or an output of a Split takes.
struct SliceRange {
  int axis = 0;
  int64_t start = 0;  // first element, for negative steps too
  int64_t size = -1;  // elements taken; -1: only known when sizes are
  int64_t step = 1;
  bool whole = false;  // all of the axis
};

// The ranges of a Slice, one per sliced axis, or of a Split, one per output. None where the starts are unknown.
std::optional<std::vector<SliceRange>> slice_ranges(const Node& node);

// Stretches of memory that a Gather or GatherND copies, at the hints.
double gathered_runs(const Node& node);

}  // namespace neo
