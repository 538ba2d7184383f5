#pragma once

#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace neo {

// The permutation of a Transpose of a value of known rank.
std::optional<std::vector<int64_t>> axes_of_transpose(const Node& node);

// A Transpose that moves nothing, or that reads another, becomes one or none.
bool join_transposes(Rewriter& rewriter, Node& node);

// Where all that is read of a transposed value is single positions of an axis, they are taken before the transpose,
// which then moves only these.
bool take_positions_first(Rewriter& rewriter, Node& node);

// A node of transposed operands computes on what was transposed, and its results are transposed instead.
bool sink_transposes(Rewriter& rewriter, Node& node);

}  // namespace neo
