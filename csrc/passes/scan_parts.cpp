#include "passes/scan_parts.h"

#include <algorithm>

#include "ops/control.h"
#include "ops/infer.h"

namespace neo {

ScanParts read_loop_parts(const Node& loop) {
  const LoopSignature s = loop_signature(loop);
  const Graph& body = loop.body("body");
  ScanParts parts;
  for (size_t i = 0; i < s.carried; ++i)
    parts.carried.push_back({loop.inputs[2 + i], body.inputs[2 + i], body.outputs[1 + i], loop.output(i)});
  for (size_t i = 2 + s.carried; i < loop.inputs.size(); ++i)
    parts.captured.push_back({loop.inputs[i], body.inputs[i]});
  for (size_t i = s.carried; i < s.carried + s.stacked; ++i)
    parts.collected.push_back({body.outputs[1 + i], loop.output(i), 0, false});
  return parts;
}

ScanParts read_scan_parts(const Node& scan) {
  const LoopSignature s = scan_signature(scan);
  const Graph& body = scan.body("body");
  const auto in_axes = scan_axes(scan, "scan_input_axes", "scan_input_directions", s.scanned);
  const auto out_axes = scan_axes(scan, "scan_output_axes", "scan_output_directions", s.stacked);
  ScanParts parts;
  for (size_t i = 0; i < s.carried; ++i)
    parts.carried.push_back({scan.inputs[i], body.inputs[i], body.outputs[i], scan.output(i)});
  for (size_t i = 0; i < s.scanned; ++i) {
    const size_t at = s.carried + i;
    parts.scanned.push_back({scan.inputs[at], body.inputs[at], in_axes[i].axis, in_axes[i].reverse});
  }
  for (size_t i = s.carried + s.scanned; i < scan.inputs.size(); ++i)
    parts.captured.push_back({scan.inputs[i], body.inputs[i]});
  for (size_t i = 0; i < s.stacked; ++i) {
    const size_t at = s.carried + i;
    parts.collected.push_back({body.outputs[at], scan.output(at), out_axes[i].axis, out_axes[i].reverse});
  }
  return parts;
}

Node* replace_by_scan(Graph& graph, Node& node, const ScanParts& parts, const PassContext& context) {
  Graph& body = node.body("body");
  std::vector<Value*> inputs, results;
  std::vector<std::string> names;
  std::vector<int64_t> in_axes, in_directions, out_axes, out_directions;
  body.inputs.clear();
  body.outputs.clear();
  const auto take = [&](Value* outer, Value* inner) {
    inputs.push_back(outer);
    body.inputs.push_back(inner);
  };
  const auto give = [&](Value* inner, Value* result) {
    body.outputs.push_back(inner);
    results.push_back(result);
    names.push_back(result ? result->name : "");
  };
  for (const auto& c : parts.carried) {
    take(c.initial, c.inner);
    give(c.next, c.result);
  }
  for (const auto& s : parts.scanned) {
    take(s.whole, s.inner);
    in_axes.push_back(s.axis);
    in_directions.push_back(s.reverse);
  }
  for (const auto& c : parts.captured) take(c.outer, c.inner);
  for (const auto& c : parts.collected) {
    give(c.inner, c.result);
    out_axes.push_back(c.axis);
    out_directions.push_back(c.reverse);
  }
  if (std::none_of(results.begin(), results.end(), [](const Value* v) { return v; })) return nullptr;
  Attrs attrs{{"num_scan_inputs", static_cast<int64_t>(parts.scanned.size())},
              {"num_captured", static_cast<int64_t>(parts.captured.size())}};
  const auto set = [&](const char* key, const std::vector<int64_t>& numbers) {
    if (std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n != 0; })) attrs[key] = numbers;
  };
  set("scan_input_axes", in_axes);
  set("scan_input_directions", in_directions);
  set("scan_output_axes", out_axes);
  set("scan_output_directions", out_directions);
  Node* scan = graph.insert_before(&node, "Scan", std::move(inputs), names, std::move(attrs), node.name);
  body.erase_unused_values();
  scan->bodies = std::move(node.bodies);
  infer_node(*scan, context.ops, *graph.symbols());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) graph.replace_uses(results[i], scan->outputs[i]);
  }
  return scan;
}

}  // namespace neo
