#include <algorithm>
#include <optional>

#include "passes/rewriter.h"

namespace neo {
namespace {

// A convolution or a transposed one, and the channels of each group.
struct Groups {
  int64_t count = 1, inputs = 0, filters = 0;
};

// The groups that could be convolved one by one: a few, of several channels.
std::optional<Groups> find_groups(const Node& node) {
  const bool is_transposed = node.op == "ConvTranspose";
  if ((node.op != "Conv" && !is_transposed) || node.inputs.size() > 3) return std::nullopt;
  const std::optional<Tensor>& weight = node.inputs[1]->constant;
  const Value* bias = node.input(2);
  Groups groups{node.int_attr("group", 1)};
  if (groups.count < 2 || groups.count > kMaxSplitGroups || !weight || (bias && !bias->constant)) return std::nullopt;
  const Dims& dims = weight->dims();
  groups.inputs = is_transposed ? dims[0] / groups.count : dims[1];
  groups.filters = is_transposed ? dims[1] : dims[0] / groups.count;
  const bool is_depthwise = groups.inputs == 1 && groups.filters == 1;
  return is_depthwise ? std::nullopt : std::optional(groups);
}

// Parts of a constant's first axis, in its memory.
std::vector<Value*> parts_of(Rewriter& rewriter, const std::string& name, const Tensor& whole, int64_t groups) {
  Dims dims = whole.dims();
  dims[0] /= groups;
  const int64_t bytes = whole.bytes() / groups;
  auto* first = static_cast<std::byte*>(whole.data());
  std::vector<Value*> parts;
  for (int64_t group = 0; group < groups; ++group)
    parts.push_back(rewriter.add_constant(name, Tensor(whole.dtype(), dims, first + group * bytes, whole.owner())));
  return parts;
}

std::vector<Value*> split(Rewriter& rewriter, const Node& node, Value* value, int64_t axis, int64_t groups,
                          int64_t size) {
  if (axis == 0 && value->constant && value->constant->owner() && value->dtype() != DType::String)
    return parts_of(rewriter, value->name, *value->constant, groups);
  const std::vector<int64_t> sizes(static_cast<size_t>(groups), size);
  const std::vector<std::string> names(static_cast<size_t>(groups), value->name);
  return rewriter.insert_all(&node, "Split", {value, rewriter.add_ints(value->name + ".sizes", sizes)}, names,
                             {{"axis", axis}});
}

Value* convolve_groups(Rewriter& rewriter, const Node& node, const Groups& groups) {
  Attrs attrs = node.attrs;
  attrs["group"] = int64_t{1};
  const int64_t of_weight = node.op == "Conv" ? groups.filters : groups.inputs;
  std::vector<std::vector<Value*>> operands = {split(rewriter, node, node.inputs[0], 1, groups.count, groups.inputs),
                                               split(rewriter, node, node.inputs[1], 0, groups.count, of_weight)};
  if (Value* bias = node.input(2)) {
    operands.push_back(split(rewriter, node, bias, 0, groups.count, groups.filters));
  }
  std::vector<Value*> results;
  for (size_t group = 0; group < static_cast<size_t>(groups.count); ++group) {
    std::vector<Value*> own;
    for (const std::vector<Value*>& operand : operands) own.push_back(operand[group]);
    results.push_back(rewriter.insert(&node, node.op, std::move(own), attrs));
  }
  return rewriter.insert(&node, "Concat", std::move(results), {{"axis", int64_t{1}}});
}

bool split_groups_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (const auto groups = find_groups(*node)) {
      rewriter.replace(node->outputs[0], convolve_groups(rewriter, *node, *groups));
    }
  }
  return rewriter.finish();
}

}  // namespace

// A convolution of a few groups is one of each group, by the routines of a single one.
bool split_groups(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return split_groups_in_body(body, context); });
}

}  // namespace neo
