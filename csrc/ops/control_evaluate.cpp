// If, Loop and Scan on the host, their bodies run by evaluate_graph.

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/strings.h"
#include "ops/control.h"
#include "ops/infer.h"

namespace neo {
namespace {

[[noreturn]] void refuse_run(const Node& node, ErrorKind kind, const std::string& rule) {
  fail(kind, node.op, str(rule, " - at ", node.place()));
}

int checked_scan_axis(const Node& node, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    refuse_run(node, ErrorKind::Model, str("an axis must lie in [", -rank, ", ", rank - 1, "]. Got ", axis));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

const Tensor& scalar(const Node& node, const HostValue& value, std::string_view what) {
  if (value.kind != HostValue::Kind::Tensor || value.tensor.size() != 1 || value.tensor.dtype() == DType::String) {
    refuse_run(node, ErrorKind::Shape,
               str(what, " must be one number. Got ",
                   value.kind == HostValue::Kind::Tensor ? to_string(value.tensor.dims()) : "no tensor"));
  }
  return value.tensor;
}

bool truth(const Node& node, const HostValue& value) {
  const Tensor& t = scalar(node, value, "a condition");
  return load_double(t.dtype(), t.data()) != 0;
}

Tensor make_scalar(const Value& input, DType dtype, int64_t x) {
  const bool one_axis = input.type.is_tensor() && input.type.shape.has_rank() && input.type.shape.rank() == 1;
  Tensor t(dtype, one_axis ? Dims{1} : Dims{});
  store_int64(dtype, t.data(), x);
  return t;
}

void copy_elements(const Tensor& from, int64_t source, const Tensor& to, int64_t target, int64_t count) {
  if (count == 0) return;
  if (from.dtype() == DType::String) {
    copy_strings(from.strings() + source, count, to.strings() + target);
    return;
  }
  const int64_t item = item_bytes(from.dtype());
  std::memcpy(static_cast<char*>(to.data()) + target * item, static_cast<const char*>(from.data()) + source * item,
              static_cast<size_t>(count * item));
}

int64_t elements_between(const Dims& dims, size_t begin, size_t end) {
  return element_count(Dims(dims.begin() + static_cast<int64_t>(begin), dims.begin() + static_cast<int64_t>(end)));
}

// The sub-tensor at position `at` of an axis.
Tensor take(const Tensor& t, int axis, int64_t at) {
  const auto a = static_cast<size_t>(axis);
  Dims dims = t.dims();
  const int64_t length = dims[a];
  const int64_t outer = elements_between(dims, 0, a);
  const int64_t inner = elements_between(dims, a + 1, dims.size());
  dims.erase(dims.begin() + axis);
  Tensor result(t.dtype(), std::move(dims));
  for (int64_t o = 0; o < outer; ++o) copy_elements(t, (o * length + at) * inner, result, o * inner, inner);
  return result;
}

// Elements of one iteration each, put together along a new axis.
class Stack {
 public:
  Stack(const Node& node, size_t index, const Value& element, ScanAxis axis)
      : node_(node), index_(index), element_(element), axis_(axis) {}

  void add(const HostValue& value) {
    if (value.kind != HostValue::Kind::Tensor) {
      refuse_run(node_, ErrorKind::Type, str("output ", index_, " collects tensors. Got a sequence or nothing"));
    }
    if (!items_.empty() && (value.tensor.dims() != items_[0].dims() || value.tensor.dtype() != items_[0].dtype())) {
      refuse_run(node_, ErrorKind::Shape,
                 str("output ", index_, " must have one shape in every iteration. Got ", name(value.tensor.dtype()),
                     to_string(value.tensor.dims()), " after ", name(items_[0].dtype()), to_string(items_[0].dims())));
    }
    items_.push_back(value.tensor);
  }

  HostValue finish() const {
    const auto count = static_cast<int64_t>(items_.size());
    DType dtype = element_.type.dtype;
    Dims dims;
    if (!items_.empty()) {
      dtype = items_[0].dtype();
      dims = items_[0].dims();
    } else if (element_.type.is_tensor() && element_.type.shape.has_rank()) {
      for (const Dim& d : element_.type.shape.dims()) dims.push_back(d.is_constant() ? d.value() : 0);
    }
    if (dtype == DType::Undefined) {
      refuse_run(node_, ErrorKind::Type, str("output ", index_, " has no known dtype. Got no iteration"));
    }
    const auto axis = static_cast<size_t>(checked_scan_axis(node_, axis_.axis, static_cast<int>(dims.size()) + 1));
    const int64_t outer = elements_between(dims, 0, axis);
    const int64_t inner = elements_between(dims, axis, dims.size());
    dims.insert(dims.begin() + static_cast<int64_t>(axis), count);
    Tensor result(dtype, std::move(dims));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = axis_.reverse ? count - 1 - i : i;
      for (int64_t o = 0; o < outer; ++o) {
        copy_elements(items_[static_cast<size_t>(i)], o * inner, result, (o * count + at) * inner, inner);
      }
    }
    return result;
  }

 private:
  const Node& node_;
  size_t index_;
  const Value& element_;
  ScanAxis axis_;
  std::vector<Tensor> items_;
};

// The carried values, then the stacks, cut to the outputs that the node has.
std::vector<HostValue> collect(const Node& node, std::vector<HostValue> carried, const std::vector<Stack>& stacks) {
  std::vector<HostValue> outputs = std::move(carried);
  for (const Stack& stack : stacks) {
    outputs.push_back(node.output(outputs.size()) ? stack.finish() : HostValue());
  }
  outputs.resize(node.outputs.size());
  return outputs;
}

std::vector<HostValue> evaluate_if(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  check_if(node);
  const Graph& branch = node.body(truth(node, inputs[0]) ? "then_branch" : "else_branch");
  std::vector<HostValue> outputs = evaluate_graph(branch, ops, inputs.subspan(1));
  outputs.resize(node.outputs.size());
  return outputs;
}

std::vector<HostValue> evaluate_loop(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  const LoopSignature s = loop_signature(node);
  const Graph& body = node.body("body");
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (node.inputs[0]) {
    const Tensor& limit = scalar(node, inputs[0], "the trip count");
    trips = load_int64(limit.dtype(), limit.data());
  }
  // Where there is a bound and no condition, the body's own ends nothing.
  const bool ends = node.inputs[1] != nullptr || trips == std::numeric_limits<int64_t>::max();
  bool condition = node.inputs[1] == nullptr || truth(node, inputs[1]);
  std::vector<HostValue> arguments(inputs.begin(), inputs.end());
  std::vector<Stack> stacks;
  for (size_t i = 0; i < s.stacked; ++i) {
    stacks.emplace_back(node, s.carried + i, *body.outputs[1 + s.carried + i], ScanAxis{});
  }
  for (int64_t i = 0; i < trips && (condition || !ends); ++i) {
    arguments[0] = make_scalar(*body.inputs[0], DType::Int64, i);
    arguments[1] = make_scalar(*body.inputs[1], DType::Bool, condition);
    std::vector<HostValue> results = evaluate_graph(body, ops, arguments);
    condition = truth(node, results[0]);
    for (size_t c = 0; c < s.carried; ++c) arguments[2 + c] = std::move(results[1 + c]);
    for (size_t k = 0; k < s.stacked; ++k) stacks[k].add(results[1 + s.carried + k]);
  }
  std::vector<HostValue> carried(arguments.begin() + 2, arguments.begin() + 2 + static_cast<int64_t>(s.carried));
  return collect(node, std::move(carried), stacks);
}

std::vector<HostValue> evaluate_scan(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  const LoopSignature s = scan_signature(node);
  const Graph& body = node.body("body");
  std::vector<ScanAxis> in_axes = scan_axes(node, "scan_input_axes", "scan_input_directions", s.scanned);
  const std::vector<ScanAxis> out_axes = scan_axes(node, "scan_output_axes", "scan_output_directions", s.stacked);
  std::vector<HostValue> arguments(inputs.begin(), inputs.end());
  int64_t length = -1;
  for (size_t i = 0; i < s.scanned; ++i) {
    const HostValue& value = inputs[s.carried + i];
    if (value.kind != HostValue::Kind::Tensor)
      refuse_run(node, ErrorKind::Type, "a scan input must be a tensor. Got none");
    in_axes[i].axis = checked_scan_axis(node, in_axes[i].axis, value.tensor.rank());
    const int64_t n = value.tensor.dims()[static_cast<size_t>(in_axes[i].axis)];
    if (length >= 0 && n != length) {
      refuse_run(node, ErrorKind::Shape, str("scan inputs must have one length. Got ", length, " and ", n));
    }
    length = n;
  }
  std::vector<Stack> stacks;
  for (size_t i = 0; i < s.stacked; ++i) {
    stacks.emplace_back(node, s.carried + i, *body.outputs[s.carried + i], out_axes[i]);
  }
  for (int64_t t = 0; t < length; ++t) {
    for (size_t i = 0; i < s.scanned; ++i) {
      const int64_t at = in_axes[i].reverse ? length - 1 - t : t;
      arguments[s.carried + i] = take(inputs[s.carried + i].tensor, static_cast<int>(in_axes[i].axis), at);
    }
    std::vector<HostValue> results = evaluate_graph(body, ops, arguments);
    for (size_t c = 0; c < s.carried; ++c) arguments[c] = std::move(results[c]);
    for (size_t k = 0; k < s.stacked; ++k) stacks[k].add(results[s.carried + k]);
  }
  std::vector<HostValue> carried(arguments.begin(), arguments.begin() + static_cast<int64_t>(s.carried));
  return collect(node, std::move(carried), stacks);
}

}  // namespace

std::vector<HostValue> evaluate_control(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  const BodyDepth guard(node);
  if (node.op == "If") return evaluate_if(node, ops, inputs);
  if (node.op == "Loop") return evaluate_loop(node, ops, inputs);
  if (node.op == "Scan") return evaluate_scan(node, ops, inputs);
  refuse_run(node, ErrorKind::Unsupported, "the operator has no reference");
}

}  // namespace neo
