#include <algorithm>
#include <array>

#include "passes/pattern.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// A reduction over some axes in two: one over the last of them, and then one over the rest.
struct SplitReduction {
  std::string_view op, last, rest;
  bool only_floats;  // integers would be rounded twice
};
constexpr std::array kSplitReductions = {
    SplitReduction{"ReduceSum", "ReduceSum", "ReduceSum", false},
    SplitReduction{"ReduceMean", "ReduceMean", "ReduceMean", true},
    SplitReduction{"ReduceMax", "ReduceMax", "ReduceMax", false},
    SplitReduction{"ReduceMin", "ReduceMin", "ReduceMin", false},
    SplitReduction{"ReduceProd", "ReduceProd", "ReduceProd", false},
    SplitReduction{"ReduceL1", "ReduceL1", "ReduceSum", false},
    SplitReduction{"ReduceL2", "ReduceL2", "ReduceL2", true},
    SplitReduction{"ReduceSumSquare", "ReduceSumSquare", "ReduceSum", false},
    SplitReduction{"ReduceLogSum", "ReduceSum", "ReduceLogSum", true},
    SplitReduction{"ReduceLogSumExp", "ReduceLogSumExp", "ReduceLogSumExp", true},
};

// The same reduction of what has the reduced axes last.
Value* reduce_last(Rewriter& rewriter, const Node& node, const std::vector<int64_t>& axes) {
  const int rank = node.inputs.front()->shape().rank();
  std::vector<int64_t> perm, last;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) perm.push_back(axis);
  }
  for (const int64_t axis : axes) {
    last.push_back(static_cast<int64_t>(perm.size()));
    perm.push_back(axis);
  }
  Attrs attrs = node.attrs;
  attrs["keepdims"] = int64_t{0};
  Value* turned = rewriter.insert(&node, "Transpose", {node.inputs.front()}, {{"perm", perm}});
  Value* reduced = rewriter.insert(&node, node.op, {turned, rewriter.add_ints("axes", last)}, std::move(attrs));
  if (node.int_attr("keepdims", 1) == 0) return reduced;
  return rewriter.insert(&node, "Unsqueeze", {reduced, rewriter.add_ints("axes", axes)});
}

bool split_axes(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const auto* form = std::find_if(kSplitReductions.begin(), kSplitReductions.end(),
                                    [&](const SplitReduction& s) { return s.op == node->op; });
    if (form == kSplitReductions.end()) continue;
    const auto axes = reduced_axes(*node, node->int_attr("keepdims", 1) != 0);
    if (!axes) continue;
    auto first = axes->end() - 1;
    while (first != axes->begin() && *(first - 1) + 1 == *first) --first;
    if (first == axes->begin()) continue;
    if (form->only_floats && !is_float(node->inputs.front()->dtype())) {
      rewriter.replace(node->outputs.front(), reduce_last(rewriter, *node, *axes));
      continue;
    }
    // Axes before the last ones keep their places, with or without these.
    Value* last_axes = rewriter.add_ints("axes", {first, axes->end()});
    Value* last = rewriter.insert(node, form->last, {node->inputs.front(), last_axes}, node->attrs);
    Value* rest_axes = rewriter.add_ints("axes", {axes->begin(), first});
    Value* rest = rewriter.insert(node, form->rest, {last, rest_axes}, node->attrs);
    rewriter.replace(node->outputs.front(), rest);
  }
  return rewriter.finish();
}

}  // namespace

// A reduction over axes that are no neighbours becomes one over each run of them, which routines take; one of integers
// that would be rounded twice has its axes brought together.
bool split_reductions(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return split_axes(g, context); });
}

}  // namespace neo
