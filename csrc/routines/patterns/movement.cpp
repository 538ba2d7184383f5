#include "routines/patterns/movement.h"

#include <algorithm>

#include "ops/op.h"

namespace neo {

std::vector<int64_t> transpose_axes(const Node& node) {
  const int rank = node.inputs.front()->shape().rank();
  std::vector<int64_t> reversed;
  for (int i = rank - 1; i >= 0; --i) reversed.push_back(i);
  return node.ints_attr("perm", reversed);
}

int normalized_axis(const Node& node, int rank) {
  const int64_t axis = node.int_attr("axis", 0);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<SliceRange>> slice_ranges(const Node& node) {
  const Shape& shape = node.inputs.front()->shape();
  if (!shape.has_rank()) return std::nullopt;
  std::vector<SliceRange> ranges;
  if (node.op == "Split") {
    const int axis = normalized_axis(node, shape.rank());
    int64_t start = 0;
    for (const Value* v : node.outputs) {
      if (!v || !v->shape().has_rank() || !v->shape()[axis].is_constant()) return std::nullopt;
      const int64_t size = v->shape()[axis].value();
      ranges.push_back({axis, start, size, 1, shape[axis].is(size)});
      start += size;
    }
    return ranges;
  }
  const auto ints = [&](size_t i) -> std::optional<std::vector<int64_t>> {
    const Value* v = node.input(i);
    if (!v || !v->constant) return std::nullopt;
    return load_ints(*v->constant);
  };
  const auto starts = ints(1);
  if (!starts) return std::nullopt;
  std::vector<int64_t> axes(starts->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  std::vector<int64_t> steps(starts->size(), 1);
  if (node.input(3)) {
    const auto given = ints(3);
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (node.input(4)) {
    const auto given = ints(4);
    if (!given) return std::nullopt;
    steps = *given;
  }
  const Shape& result = node.outputs.front()->shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i] < 0 ? axes[i] + shape.rank() : axes[i]);
    const Dim& extent = shape[axis];
    const Dim& size = result[axis];
    int64_t start = (*starts)[i];
    if (start < 0 || steps[i] < 0) {
      if (!extent.is_constant()) return std::nullopt;
      start = start < 0 ? start + extent.value() : start;
      const int64_t last = steps[i] < 0 ? std::max<int64_t>(extent.value() - 1, 0) : extent.value();
      start = std::clamp<int64_t>(start, 0, last);
    } else if (extent.is_constant()) {
      start = std::min(start, extent.value());
    } else if (start > 0 && !prove_less(Dim(start - 1), extent).value_or(false)) {
      return std::nullopt;
    }
    ranges.push_back(
        {axis, start, size.is_constant() ? size.value() : -1, steps[i], steps[i] == 1 && start == 0 && extent == size});
  }
  return ranges;
}

double gathered_runs(const Node& node) {
  const Dims x = node.inputs[0]->shape().hint_dims(), indices = node.inputs[1]->shape().hint_dims();
  if (node.op == "GatherND") {
    return indices.empty() ? 1 : static_cast<double>(element_count(indices) / std::max<int64_t>(1, indices.back()));
  }
  double runs = static_cast<double>(element_count(indices));
  for (int i = 0; i < normalized_axis(node, static_cast<int>(x.size())); ++i)
    runs *= static_cast<double>(x[static_cast<size_t>(i)]);
  return runs;
}

}  // namespace neo
