#include <algorithm>
#include <optional>

#include "passes/rewriter.h"

namespace neo {
namespace {

// More groups than these would become too many nodes.
constexpr int64_t kMaxGroups = 16;
// Groups whose channels fill blocks of so many are convolved together.
constexpr int64_t kBlock = 16;

// Whether each group is convolved by itself: a few groups, whose channels fill no blocks, of kernels of several taps.
bool is_split(const Node& node) {
  if (node.op != "Conv" || node.inputs.size() > 3) return false;
  const int64_t groups = node.int_attr("group", 1);
  const std::optional<Tensor>& weight = node.inputs[1]->constant;
  const Value* bias = node.input(2);
  if (groups < 2 || groups > kMaxGroups || !weight || (bias && !bias->constant)) return false;
  const Dims& dims = weight->dims();
  const int64_t inputs = dims[1], filters = dims[0] / groups;
  const bool is_depthwise = inputs == 1 && filters == 1;
  const bool has_taps = std::any_of(dims.begin() + 2, dims.end(), [](int64_t size) { return size > 1; });
  return dims[0] > 0 && !is_depthwise && has_taps && (inputs % kBlock != 0 || filters % kBlock != 0);
}

std::vector<Value*> split(Rewriter& rewriter, const Node& node, Value* value, int64_t axis, int64_t groups,
                          int64_t size) {
  const std::vector<int64_t> sizes(static_cast<size_t>(groups), size);
  const std::vector<std::string> names(static_cast<size_t>(groups), value->name);
  return rewriter.insert_all(&node, "Split", {value, rewriter.add_ints(value->name + ".sizes", sizes)}, names,
                             {{"axis", axis}});
}

Value* convolve_groups(Rewriter& rewriter, const Node& node) {
  const int64_t groups = node.int_attr("group", 1);
  const Dims& weight = node.inputs[1]->constant->dims();
  const int64_t filters = weight[0] / groups;
  Attrs attrs = node.attrs;
  attrs["group"] = int64_t{1};
  std::vector<std::vector<Value*>> operands = {split(rewriter, node, node.inputs[0], 1, groups, weight[1]),
                                               split(rewriter, node, node.inputs[1], 0, groups, filters)};
  if (Value* bias = node.input(2)) operands.push_back(split(rewriter, node, bias, 0, groups, filters));
  std::vector<Value*> results;
  for (size_t group = 0; group < static_cast<size_t>(groups); ++group) {
    std::vector<Value*> own;
    for (const std::vector<Value*>& operand : operands) own.push_back(operand[group]);
    results.push_back(rewriter.insert(&node, "Conv", std::move(own), attrs));
  }
  return rewriter.insert(&node, "Concat", std::move(results), {{"axis", int64_t{1}}});
}

bool split_groups_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (is_split(*node)) rewriter.replace(node->outputs[0], convolve_groups(rewriter, *node));
  }
  return rewriter.finish();
}

}  // namespace

// A convolution of a few groups whose channels fill no vectors is one of each group, by the routines of a single one.
bool split_groups(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return split_groups_in_body(body, context); });
}

}  // namespace neo
