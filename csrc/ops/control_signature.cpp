// The parts of If, Loop and Scan, and what must fit between a node and its bodies.

#include <algorithm>

#include "ops/control.h"

namespace neo {
namespace {

[[noreturn]] void refuse_body(const Node& node, const std::string& rule) {
  fail(ErrorKind::Model, node.op, str(rule, " - at ", node.place()));
}

const Graph& get_body(const Node& node, std::string_view name) {
  const auto it = std::find_if(node.bodies.begin(), node.bodies.end(), [&](const auto& b) { return b.first == name; });
  if (it == node.bodies.end()) refuse_body(node, str("attribute \"", name, "\" is required. Got none"));
  return *it->second;
}

size_t count_attr(const Node& node, std::string_view key, size_t limit) {
  const int64_t n = node.int_attr(key, 0);
  if (n < 0 || static_cast<uint64_t>(n) > limit) {
    refuse_body(node, str("attribute \"", key, "\" must lie in [0, ", limit, "]. Got ", n));
  }
  return static_cast<size_t>(n);
}

void check_counts(const Node& node, std::string_view name, const Graph& body, size_t inputs, size_t least_outputs,
                  size_t extra_outputs) {
  if (body.inputs.size() != inputs) {
    refuse_body(node, str("the body \"", name, "\" must have ", inputs, " inputs. Got ", body.inputs.size()));
  }
  if (body.outputs.size() < least_outputs) {
    refuse_body(
        node, str("the body \"", name, "\" must have at least ", least_outputs, " outputs. Got ", body.outputs.size()));
  }
  if (node.outputs.size() > body.outputs.size() - extra_outputs) {
    refuse_body(node, str("the body \"", name, "\" must give every output of the node. Got ", body.outputs.size(),
                          " for ", node.outputs.size()));
  }
}

}  // namespace

LoopSignature loop_signature(const Node& node) {
  const Graph& body = get_body(node, "body");
  if (node.inputs.size() < 2) refuse_body(node, str("operator needs at least 2 inputs. Got ", node.inputs.size()));
  LoopSignature s;
  s.captured = count_attr(node, "num_captured", node.inputs.size() - 2);
  s.carried = node.inputs.size() - 2 - s.captured;
  check_counts(node, "body", body, node.inputs.size(), 1 + s.carried, 1);
  s.stacked = body.outputs.size() - 1 - s.carried;
  return s;
}

LoopSignature scan_signature(const Node& node) {
  const Graph& body = get_body(node, "body");
  LoopSignature s;
  s.captured = count_attr(node, "num_captured", node.inputs.size());
  s.scanned = count_attr(node, "num_scan_inputs", node.inputs.size() - s.captured);
  if (s.scanned == 0) refuse_body(node, "attribute \"num_scan_inputs\" must be positive. Got 0");
  s.carried = node.inputs.size() - s.captured - s.scanned;
  check_counts(node, "body", body, node.inputs.size(), s.carried, 0);
  s.stacked = body.outputs.size() - s.carried;
  return s;
}

void check_if(const Node& node) {
  const Graph& then_branch = get_body(node, "then_branch");
  const Graph& else_branch = get_body(node, "else_branch");
  if (node.inputs.empty()) refuse_body(node, "operator needs a condition. Got no inputs");
  for (const auto& [name, body] : {std::pair("then_branch", &then_branch), std::pair("else_branch", &else_branch)}) {
    check_counts(node, name, *body, node.inputs.size() - 1, 0, 0);
  }
  if (then_branch.outputs.size() != else_branch.outputs.size()) {
    refuse_body(node, str("both branches must have the same number of outputs. Got ", then_branch.outputs.size(),
                          " and ", else_branch.outputs.size()));
  }
}

std::vector<ScanAxis> scan_axes(const Node& node, std::string_view axes, std::string_view directions, size_t count) {
  const std::vector<int64_t> a = node.ints_attr(axes);
  const std::vector<int64_t> d = node.ints_attr(directions);
  for (const auto& [key, list] : {std::pair(axes, &a), std::pair(directions, &d)}) {
    if (!list->empty() && list->size() != count) {
      refuse_body(
          node, str("attribute \"", key, "\" must have one entry for each of ", count, " values. Got ", list->size()));
    }
  }
  std::vector<ScanAxis> result(count);
  for (size_t i = 0; i < count; ++i) {
    if (!a.empty()) result[i].axis = a[i];
    if (!d.empty()) result[i].reverse = d[i] != 0;
  }
  return result;
}

}  // namespace neo
