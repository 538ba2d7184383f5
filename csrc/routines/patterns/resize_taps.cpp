#include "routines/patterns/resize_taps.h"

#include <algorithm>

#include "base/check.h"
#include "ops/op.h"
#include "ops/resize.h"
#include "routines/patterns/float_tensor.h"

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

bool keeps_axis(const Node& node, int axis) {
  const auto factor = resize_factor(node, axis);
  return node.inputs.front()->shape()[axis] == node.outputs.front()->shape()[axis] && (!factor || *factor == 1);
}

std::optional<std::string> reject_resize(const Node& node, int kept) {
  const Value* input = node.inputs.front();
  if (!is_float_tensor(input)) return "the input is not a float32 tensor of known rank";
  if (!node.symbols.empty()) return "the size of the result is only known when it runs";
  const int rank = input->shape().rank();
  if (rank <= kept) return "the rank is another";
  if (!resizes_to_sizes(node) && (!node.input(2) || !node.input(2)->constant)) return "the factors are not known";
  if (node.string_attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return "a region is cropped";
  if (node.string_attr("keep_aspect_ratio_policy", "stretch") != "stretch") return "the aspect ratio is kept";
  if (node.int_attr("antialias", 0) != 0 && node.string_attr("mode", "nearest") == "nearest") {
    return "nearest neighbours are smoothed";
  }
  for (int i = 0; i < std::max(kept, rank - 2); ++i) {
    if (!keeps_axis(node, i)) return "another axis than the last two is resized";
  }
  return std::nullopt;
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
