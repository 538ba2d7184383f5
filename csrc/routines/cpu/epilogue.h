#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "routines/routine.h"

namespace neo {

// What a convolution or a matrix product does to its sums before it stores them: it adds a value of the result's shape,
// then clamps.
struct Epilogue {
  const Value* residual = nullptr;  // or null
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

// Groups that end in `root` and begin with one of `ops`: the node alone; node and Add; node, Add and Relu or Clip.
// An Add may be taken by either of its operands.
std::vector<Workload> match_epilogues(const Node& root, std::span<const std::string_view> ops,
                                      const Graph::Users& users, const Graph& graph);

// The epilogue of a group that match_epilogues() made.
Epilogue read_epilogue(const Workload& workload);

// The position of a value among a candidate's run-time arguments; -1 where it is null or not one of them.
int argument_of(const Candidate& candidate, const Value* value);

}  // namespace neo
