#include "routines/patterns/norm.h"

#include <algorithm>

#include "routines/patterns/float_tensor.h"
#include "routines/patterns/reduced_axes.h"

namespace neo {

std::optional<std::string> reject_value(const Value* v, DType dtype) {
  if (is_float_tensor(v, dtype)) return std::nullopt;
  return "an input is not a " + std::string(name(dtype)) + " tensor of known rank";
}

std::optional<std::string> reject_norm(const Workload& workload, DType dtype) {
  const Node& node = workload.root();
  for (const Value* v : workload.inputs) {
    if (auto why = reject_value(v, dtype)) return why;
  }
  const Shape& shape = node.inputs.front()->shape();
  if (std::find(node.inputs.begin(), node.inputs.end(), nullptr) != node.inputs.end()) return "an input is left out";
  if (dtype == DType::Float32 && node.int_attr("stash_type", 1) > 1) return "the statistics are not float32";
  for (size_t i = 1; i < workload.outputs.size(); ++i) {
    if (workload.outputs[i]->dtype() != dtype) return "the statistics have another dtype";
  }
  if (node.op == "InstanceNormalization" || node.op == "GroupNormalization")
    return shape.rank() >= 3 ? std::nullopt : std::optional<std::string>("there is no axis to normalise over");
  const int first = axis_from_front(node.int_attr("axis", -1), shape.rank());
  Dim row = 1;
  for (int i = first; i < shape.rank(); ++i) row = row * shape[i];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!(node.inputs[i]->shape().element_count() == row)) return "scale or bias is broadcast";
  }
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (!node.outputs[i] && i + 1 < node.outputs.size()) return "an output in the middle is left out";
  }
  return std::nullopt;
}

}  // namespace neo
