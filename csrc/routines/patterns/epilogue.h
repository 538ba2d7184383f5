#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "routines/patterns/eltwise_program.h"
#include "routines/routine.h"

namespace neo {

// The work of a convolution or a matrix product on its sums before it stores them: it adds a value of the result's
// shape, then clamps or applies an activation.
struct Epilogue {
  const Value* residual = nullptr;   // or null
  const Node* activation = nullptr;  // or null; then there is no clamp
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

// Whether one node alone reads a value, once.
bool read_only_by_one(const Value* value, const Graph::Users& users, const Graph& graph);

// The range of a Relu, or of a Clip with known bounds; none of any other node.
struct ClampRange {
  float lo, hi;
};
std::optional<ClampRange> read_clamp(const Node& node);

// The operators that match_epilogues() may end in beside those that a group begins with.
std::span<const std::string_view> epilogue_ops();

// Groups that end in `root` and begin with one of `ops`: the node alone; node and Add; node and activation; node, Add
// and Relu, Clip or activation. An Add may be taken by either of its operands.
std::vector<Workload> match_epilogues(const Node& root, std::span<const std::string_view> ops,
                                      const Graph::Users& users, const Graph& graph);

// The epilogue of a group that match_epilogues() made.
Epilogue read_epilogue(const Workload& workload);

// The step that computes a node from its one run-time operand, both float32 of one shape; none of any other node.
std::optional<EltwiseStep> find_activation_step(const Node& node);
// The step of an epilogue that has an activation.
EltwiseStep activation_step(const Epilogue& epilogue);
// Operations at the peak that the step takes for an element.
double activation_flops(const EltwiseStep& step);

// Whether the activation makes zero of zero, as the padding lanes of a blocked layout need it.
bool keeps_zero(const Epilogue& epilogue);
// The position of a value among a candidate's run-time arguments; -1 where it is null or not one of them.
int argument_of(const Candidate& candidate, const Value* value);
// The same of a result.
int argument_of_result(const Candidate& candidate, const Value* value);

}  // namespace neo
