#include "routines/patterns/reduced_axes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ops/op.h"

namespace neo {

int axis_from_front(int64_t axis, int rank) {
  NEO_CHECK(axis >= -rank && axis < rank, Model, "reduce", "an axis must lie inside the rank. Got ", axis,
            ", expected ", -rank, " to ", rank - 1);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int>> reduced_axes(const Node& node) {
  const int rank = node.inputs.front()->shape().rank();
  if (rank == 0) return std::nullopt;
  std::vector<int> axes;
  if (node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool" || node.op == "GlobalLpPool") {
    for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
    return axes.empty() ? std::nullopt : std::optional(axes);
  }
  if (node.op == "ArgMax" || node.op == "ArgMin") return {{axis_from_front(node.int_attr("axis", 0), rank)}};
  if (const Value* given = node.input(1)) {
    if (!given->constant) return std::nullopt;
    for (const int64_t axis : load_ints(*given->constant)) axes.push_back(axis_from_front(axis, rank));
  }
  if (axes.empty()) {
    if (node.int_attr("noop_with_empty_axes", 0) != 0) return std::nullopt;
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::optional<AxisRun> reduced_run(const Node& node) {
  const auto axes = reduced_axes(node);
  if (!axes || axes->back() - axes->front() + 1 != static_cast<int>(axes->size())) return std::nullopt;
  return AxisRun{axes->front(), axes->back()};
}

}  // namespace neo
