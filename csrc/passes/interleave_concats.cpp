#include <algorithm>

#include "passes/pattern.h"
#include "passes/transposes.h"

namespace neo {
namespace {

// The first of the two neighbouring axes that a permutation exchanges, where it does nothing else.
std::optional<int> exchanged_axis(const std::vector<int64_t>& perm) {
  std::optional<int> found;
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (perm[i] == axis) continue;
    if (found && axis == *found + 1 && perm[i] == *found) continue;
    if (found || perm[i] != axis + 1) return std::nullopt;
    found = static_cast<int>(axis);
  }
  return found;
}

// Whether `split` is `shape` with `axis` as so many parts.
bool is_split(const Shape& shape, const Shape& split, int axis, size_t parts, const Dim& part) {
  if (!shape.has_rank() || !split.has_rank() || split.rank() != shape.rank() + 1 || axis >= shape.rank()) return false;
  if (!split[axis].is(static_cast<int64_t>(parts)) || split[axis + 1] != part) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis && shape[i] != split[i < axis ? i : i + 1]) return false;
  }
  return true;
}

void interleave(Rewriter& rewriter, const Node& transpose) {
  const auto perm = axes_of_transpose(transpose);
  const auto axis = perm ? exchanged_axis(*perm) : std::nullopt;
  if (!axis) return;
  const Value* groups = transpose.inputs.front();
  const Node* reshape = made_by(groups, "Reshape");
  if (!reshape || !reshape->symbols.empty() || rewriter.only_reader(groups) != &transpose) return;
  const Value* joined = reshape->inputs.front();
  const Node* concat = made_by(joined, "Concat");
  if (!concat || concat->inputs.size() < 2 || rewriter.only_reader(joined) != reshape) return;
  const Shape& part = concat->inputs.front()->shape();
  const int64_t joint = concat->int_attr("axis", 0);
  if (!joined->shape().has_rank() || (joint < 0 ? joint + joined->shape().rank() : joint) != *axis) return;
  const bool are_alike = std::all_of(concat->inputs.begin(), concat->inputs.end(),
                                     [&](const Value* input) { return input->shape() == part; });
  if (!are_alike || !is_split(joined->shape(), groups->shape(), *axis, concat->inputs.size(), part[*axis])) return;

  Value* axes = rewriter.add_ints(joined->name + ".axes", {*axis + 1});
  std::vector<Value*> columns;
  for (Value* input : concat->inputs) {
    columns.push_back(rewriter.insert(&transpose, "Unsqueeze", {input, axes}, {}, input->name + ".column"));
  }
  Attrs attrs = concat->attrs;
  attrs["axis"] = static_cast<int64_t>(*axis + 1);
  rewriter.replace(transpose.outputs.front(), rewriter.insert(&transpose, "Concat", std::move(columns), attrs));
}

}  // namespace

// A channel shuffle of as many groups as a concatenation has parts (ShuffleNet) concatenates along an axis of its own,
// behind the channels: nothing is transposed.
bool interleave_concats(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) {
    Rewriter rewriter(g, context);
    for (const Node* node : rewriter.nodes()) {
      if (node->op == "Transpose" && !rewriter.is_retired(node)) interleave(rewriter, *node);
    }
    return rewriter.finish();
  });
}

}  // namespace neo
