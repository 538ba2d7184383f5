#include "routines/patterns/resize_taps.h"

#include <algorithm>

#include "base/check.h"
#include "ops/op.h"
#include "ops/resize.h"

namespace neo {
namespace {

// The attribute "axes", counted from the front; all where it is absent.
std::vector<int> axes_of(const Node& node, int rank) {
  std::vector<int> axes;
  if (node.has_attr("axes")) {
    for (int64_t axis : node.ints_attr("axes")) axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
    return axes;
  }
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

}  // namespace

TapTable identity_table(int64_t size) {
  TapTable table;
  for (int64_t i = 0; i < size; ++i) table.position.push_back(static_cast<int32_t>(i));
  table.weight.assign(static_cast<size_t>(size), 1.0f);
  return table;
}

bool resizes_to_sizes(const Node& node) {
  const Value* sizes = node.input(3);
  return sizes && !(sizes->constant && sizes->constant->size() == 0);
}

std::optional<double> resize_factor(const Node& node, int axis) {
  if (resizes_to_sizes(node)) return std::nullopt;
  const auto axes = axes_of(node, node.inputs.front()->shape().rank());
  const auto it = std::find(axes.begin(), axes.end(), axis);
  if (it == axes.end()) return std::nullopt;
  return load_doubles(*node.input(2)->constant)[static_cast<size_t>(it - axes.begin())];
}

TapTable tap_table(const Node& node, std::optional<double> factor, int64_t input, int64_t output) {
  NEO_CHECK(output == 0 || (input > 0 && input <= INT32_MAX), Shape, node.op,
            "an empty axis cannot grow. Got a size of ", input, ", expected 1 to ", INT32_MAX, " - at ", node.place());
  AxisResize a;
  a.input = input;
  a.output = output;
  a.scale = factor ? *factor : static_cast<double>(output) / static_cast<double>(input);
  a.width = a.scale * static_cast<double>(input);
  if (a.is_kept()) return identity_table(output);
  const ResizeTaps taps = resize_taps(node, a);
  return {taps.taps, {taps.positions.begin(), taps.positions.end()}, {taps.weights.begin(), taps.weights.end()}};
}

}  // namespace neo
