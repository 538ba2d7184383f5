#include "routines/cpu/resize/axes.h"

#include <algorithm>

#include "base/check.h"
#include "ops/sizes.h"
#include "routines/cpu/index/index.h"
#include "routines/patterns/resize_taps.h"

namespace neo {

ResizedAxes::ResizedAxes(const Node& node) {
  copy_outline(node, *node_);
  for (const int axis : all_or_listed_axes(node, node.inputs.front()->shape().rank()))
    axes_.push_back({axis, resize_factor(node, axis)});
}

ResizedAxes::ResizedAxes(const Node& node, const std::vector<AxisResize>& axes) {
  copy_outline(node, *node_);
  for (const AxisResize& a : axes) axes_.push_back({a.axis, a.scale, a.begin, a.end});
}

std::optional<double> ResizedAxes::factor(int axis) const {
  const auto it = std::find_if(axes_.begin(), axes_.end(), [=](const Axis& a) { return a.axis == axis; });
  return it == axes_.end() ? std::nullopt : it->factor;
}

std::vector<AxisResize> ResizedAxes::changed(const Dims& input, const Dims& output) const {
  std::vector<AxisResize> all;
  for (const Axis& axis : axes_) {
    AxisResize a;
    a.axis = axis.axis;
    a.input = input[static_cast<size_t>(a.axis)];
    a.output = output[static_cast<size_t>(a.axis)];
    NEO_CHECK(a.output == 0 || (a.input > 0 && a.input <= INT32_MAX), Shape, node_->op,
              "an empty axis cannot grow. Got a size of ", a.input, ", expected 1 to ", INT32_MAX, " - at ",
              node_->place());
    a.scale = axis.factor ? *axis.factor : static_cast<double>(a.output) / static_cast<double>(a.input);
    a.width = a.scale * static_cast<double>(a.input);
    a.begin = axis.begin;
    a.end = axis.end;
    if (!a.is_kept()) all.push_back(a);
  }
  return all;
}

}  // namespace neo
