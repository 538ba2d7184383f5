#include <algorithm>
#include <limits>

#include "passes/pattern.h"

namespace neo {
namespace {

// A Pad by constants: what it adds at both ends of each axis, and the value.
struct ConstantPad {
  std::vector<int64_t> begins;
  std::vector<int64_t> ends;
  double value = 0;
};

std::optional<ConstantPad> as_pad(const Node& node) {
  const Value* x = node.inputs.front();
  const Value* pads = node.input(1);
  if (node.string_attr("mode", "constant") != "constant" || !x->shape().has_rank() || !is_float(x->dtype()) ||
      !pads->constant)
    return std::nullopt;
  ConstantPad pad;
  if (const Value* value = node.input(2)) {
    if (!value->constant || value->constant->size() > 1) return std::nullopt;
    if (value->constant->size() == 1) pad.value = load_double(value->dtype(), value->constant->data());
  }
  const int rank = x->shape().rank();
  std::vector<int64_t> axes;
  if (const Value* given = node.input(3)) {
    if (!given->constant) return std::nullopt;
    for (int64_t axis : load_ints(*given->constant)) axes.push_back(axis < 0 ? axis + rank : axis);
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  const std::vector<int64_t> sizes = load_ints(*pads->constant);
  if (sizes.size() != 2 * axes.size() || std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }))
    return std::nullopt;
  pad.begins.resize(static_cast<size_t>(rank));
  pad.ends.resize(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    pad.begins[static_cast<size_t>(axes[i])] = sizes[i];
    pad.ends[static_cast<size_t>(axes[i])] = sizes[i + axes.size()];
  }
  return pad;
}

bool is_never_negative(const Value* value) {
  const Node* node = value->producer;
  if (!node) return false;
  if (const auto bounds = bounds_of(*node)) return bounds->lo >= 0;
  if (node->op == "Sigmoid" || node->op == "HardSigmoid") return true;
  if (node->op == "MaxPool" || node->op == "AveragePool") return is_never_negative(node->inputs.front());
  return node->float_attr("clamp_min", -1) >= 0;
}

// Whether every window of a pool covers an element of the unpadded input, given all padding at both ends of each axis.
bool windows_meet_input(const std::vector<int64_t>& kernel, const std::vector<int64_t>& pads) {
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (pads[i] >= kernel[i] || pads[i + kernel.size()] >= kernel[i]) return false;
  }
  return true;
}

// The pads of the reader with those of the Pad before it; nothing where they do not add up.
std::optional<std::vector<int64_t>> joint_pads(const Node& reader, const ConstantPad& pad) {
  const size_t axes = pad.begins.size() - 2;
  const std::string auto_pad = reader.string_attr("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) return std::nullopt;
  std::vector<int64_t> pads(2 * axes, 0);
  if (auto_pad != "VALID") pads = reader.ints_attr("pads", pads);
  const bool has_own = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  const std::vector<int64_t> kernel = reader.ints_attr("kernel_shape");
  for (size_t i = 0; i < axes; ++i) {
    pads[i] += pad.begins[i + 2];
    pads[i + axes] += pad.ends[i + 2];
  }
  if (reader.op == "Conv") return pad.value == 0 ? std::optional(pads) : std::nullopt;
  if (reader.int_attr("ceil_mode", 0) != 0 || reader.output(1)) return std::nullopt;
  if (reader.op == "AveragePool") {
    const bool counts = !has_own || reader.int_attr("count_include_pad", 0) != 0;
    return pad.value == 0 && counts && windows_meet_input(kernel, pads) ? std::optional(pads) : std::nullopt;
  }
  const std::vector<int64_t> dilations = reader.ints_attr("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }) ||
      !windows_meet_input(kernel, pads))
    return std::nullopt;
  // A maximum does not see what no element is below.
  const bool is_lowest = pad.value <= std::numeric_limits<float>::lowest();
  return is_lowest || (pad.value == 0 && is_never_negative(reader.inputs.front()->producer->inputs.front()))
             ? std::optional(pads)
             : std::nullopt;
}

bool fold_pads_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* reader : rewriter.nodes()) {
    if (reader->op != "Conv" && reader->op != "AveragePool" && reader->op != "MaxPool") continue;
    const Node* node = made_by(reader->inputs.front(), "Pad");
    const auto pad = node ? as_pad(*node) : std::nullopt;
    if (!pad || pad->begins.size() < 3 || pad->begins[0] + pad->begins[1] + pad->ends[0] + pad->ends[1] != 0) continue;
    const auto pads = joint_pads(*reader, *pad);
    if (!pads) continue;
    reader->attrs.erase("auto_pad");
    reader->attrs.insert_or_assign("pads", *pads);
    if (reader->op == "AveragePool") reader->attrs.insert_or_assign("count_include_pad", int64_t{1});
    rewriter.set_input(reader, 0, node->inputs.front());
  }
  return rewriter.finish();
}

}  // namespace

// Constant padding of the spatial axes becomes that of the convolution or pool behind it: zeros before Conv, zeros
// before an AveragePool that counts them, and before MaxPool what is no larger than any element.
bool fold_pads(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold_pads_in_body(g, context); });
}

}  // namespace neo
