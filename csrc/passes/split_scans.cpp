#include <algorithm>
#include <array>
#include <set>

#include "passes/scan_parts.h"
#include "passes/slices.h"

namespace neo {
namespace {

bool is_ranked(const Value* v) {
  return v && v->type.is_tensor() && v->shape().has_rank();
}

bool are_constant(const Node& node, size_t first) {
  return std::all_of(node.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(first, node.inputs.size())),
                     node.inputs.end(), [](const Value* v) { return !v || v->constant; });
}

// Whether lift_from_scans computes such a node for all iterations at once.
bool may_leave(const Node& node) {
  if (!node.bodies.empty() || !node.symbols.empty() || !node.guards.empty() || node.outputs.size() != 1) return false;
  const Value* out = node.outputs[0];
  if (!is_ranked(out) ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value* v) { return !v || is_ranked(v); }))
    return false;
  if (is_elementwise(node.op)) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* v) {
      return !v || (v->constant ? v->shape().rank() <= out->shape().rank() : v->shape().rank() == out->shape().rank());
    });
  }
  if (node.op == "MatMul") return are_constant(node, 1) && node.inputs[1]->shape().rank() == 2;
  if (node.op == "Gemm") {
    return are_constant(node, 1) && node.int_attr("transA", 0) == 0 && node.float_attr("alpha", 1) == 1 &&
           (!node.input(2) || node.float_attr("beta", 1) == 1);
  }
  constexpr std::array<std::string_view, 6> kOthers = {"LayerNormalization", "RMSNormalization", "Softmax",
                                                       "LogSoftmax",         "Squeeze",          "Unsqueeze"};
  const bool is_other = std::find(kOthers.begin(), kOthers.end(), node.op) != kOthers.end();
  return is_other && are_constant(node, 1) && (node.inputs.size() > 1 || node.op[0] != 'S' || node.op == "Softmax");
}

class Splitter {
 public:
  Splitter(Graph& graph, Node& scan)
      : graph_(graph), scan_(scan), body_(scan.body("body")), parts_(read_scan_parts(scan)) {}

  bool run(const PassContext& context) {
    const auto is_reverse = [](const auto& part) { return part.reverse; };
    if (parts_.carried.empty() || std::any_of(parts_.scanned.begin(), parts_.scanned.end(), is_reverse) ||
        std::any_of(parts_.collected.begin(), parts_.collected.end(), is_reverse) || !find_left() || !find_crossing())
      return false;
    split(context);
    return true;
  }

 private:
  // The nodes that no iteration waits for. False where there is nothing to gain, or one of them would stay a loop.
  bool find_left() {
    std::set<const Node*> kept;
    std::vector<const Value*> open;
    for (const auto& c : parts_.carried) open.push_back(c.next);
    while (!open.empty()) {
      const Node* node = open.back() ? open.back()->producer : nullptr;
      open.pop_back();
      if (node && kept.insert(node).second) open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    }
    bool any = false;
    for (const auto& node : body_.nodes()) {
      if (kept.count(node.get()) > 0) continue;
      if (!may_leave(*node)) return false;
      left_.insert(node.get());
      any = any || node->op != "Identity";
    }
    return any;
  }

  // Finds the values of the others, and carried ones, that they read. False where these are much more than they give.
  bool find_crossing() {
    std::set<const Value*> given;
    for (const auto& s : parts_.scanned) given.insert(s.inner);
    for (const auto& c : parts_.captured) given.insert(c.inner);
    constexpr int64_t kTimes = 64;
    int64_t crossing = 0, results = 0;
    for (const auto& node : body_.nodes()) {
      if (left_.count(node.get()) == 0) continue;
      for (Value* v : node->inputs) {
        if (!v || v->constant || given.count(v) > 0 || left_.count(v->producer) > 0 ||
            std::find(crossing_.begin(), crossing_.end(), v) != crossing_.end())
          continue;
        crossing_.push_back(v);
        crossing += v->shape().element_count().hint();
      }
    }
    for (const auto& c : parts_.collected) {
      if (c.result && left_.count(c.inner->producer) > 0) results += c.inner->shape().element_count().hint();
    }
    return !crossing_.empty() && crossing <= kTimes * results;
  }

  void split(const PassContext& context) {
    std::unique_ptr<Graph> second_body = body_.clone();
    std::set<const Node*> repeated;  // in the second body
    for (size_t i = 0; i < body_.nodes().size(); ++i) {
      if (left_.count(body_.nodes()[i].get()) == 0) repeated.insert(second_body->nodes()[i].get());
    }
    const auto twin = [&](const Value* v) { return second_body->find_value(v->name); };
    ScanParts first = parts_, second;
    first.collected.clear();
    for (const auto& c : parts_.collected) {
      if (left_.count(c.inner->producer) == 0)
        first.collected.push_back(c);
      else if (c.result)
        second.collected.push_back({twin(c.inner), c.result, c.axis});
    }
    for (const auto& s : parts_.scanned) second.scanned.push_back({s.whole, twin(s.inner), s.axis});
    for (const auto& c : parts_.captured) second.captured.push_back({c.outer, twin(c.inner)});
    const size_t collected = first.carried.size() + first.collected.size();
    for (Value* v : crossing_) {
      // Stands for a result until the Scan has it.
      first.collected.push_back({v, graph_.add_input(v->name, v->type), 0});
      graph_.inputs.pop_back();
    }
    body_.outputs.clear();
    body_.erase_nodes([&](const Node& n) { return left_.count(&n) > 0; });
    drop_unread(body_, first, first.scanned.front());
    const Node* recurrence = replace_by_scan(graph_, scan_, first, context);
    for (size_t i = 0; i < crossing_.size(); ++i) {
      Value* inner = second_body->add_input(crossing_[i]->name, crossing_[i]->type);
      second_body->replace_uses(twin(crossing_[i]), inner);
      second.scanned.push_back({recurrence->outputs[collected + i], inner, 0});
    }
    second_body->outputs.clear();
    second_body->erase_nodes([&](const Node& n) { return repeated.count(&n) > 0; });
    drop_unread(*second_body, second, second.scanned.back());
    scan_.bodies.clear();
    scan_.bodies.emplace_back("body", std::move(second_body));
    replace_by_scan(graph_, scan_, second, context);
    graph_.erase_nodes([&](const Node& n) { return &n == &scan_; });
  }

  // Leaves out the operands that a body no longer reads; `length` stays where it reads no slices.
  static void drop_unread(const Graph& body, ScanParts& parts, ScanParts::Scanned length) {
    const auto users = body.users();
    std::set<const Value*> results;
    for (const auto& c : parts.carried) results.insert(c.next);
    for (const auto& c : parts.collected) results.insert(c.inner);
    const auto is_unread = [&](const auto& part) {
      return users.count(part.inner) == 0 && results.count(part.inner) == 0;
    };
    std::erase_if(parts.scanned, is_unread);
    std::erase_if(parts.captured, is_unread);
    if (parts.scanned.empty()) parts.scanned.push_back(length);
  }

  Graph& graph_;
  Node& scan_;
  Graph& body_;
  const ScanParts parts_;
  std::set<const Node*> left_;
  std::vector<Value*> crossing_;
};

}  // namespace

// A Scan whose results are computed of its carried values by nodes that no iteration waits for, as a decoder's last
// layer is, becomes two: one that carries, and one that lift_from_scans computes for all iterations at once.
bool split_scans(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) {
    std::vector<Node*> scans;
    for (const auto& node : g.nodes()) {
      if (node->op == "Scan") scans.push_back(node.get());
    }
    bool changed = false;
    for (Node* scan : scans) changed = Splitter(g, *scan).run(context) || changed;
    if (changed) g.erase_unused_values();
    return changed;
  });
}

}  // namespace neo
