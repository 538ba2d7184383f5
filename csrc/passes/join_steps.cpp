#include <algorithm>
#include <map>
#include <unordered_set>

#include "passes/gate_sums.h"
#include "passes/slices.h"

namespace neo {
namespace {

constexpr size_t kX = 0, kLengths = 4, kHidden = 5, kState = 6, kPeepholes = 7;

bool is_layer(const Node& node) {
  return node.op == "LSTM" || node.op == "GRU" || node.op == "RNN";
}

// All positions of one axis, in order or from the last to the first.
struct Run {
  Value* whole = nullptr;
  int axis = 0;
  bool reverse = false;
};

std::optional<Run> as_run(const std::vector<Value*>& parts) {
  Run run;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto at = as_position(parts[i]);
    if (!at) return std::nullopt;
    if (i == 0) run = {at->whole, at->axis, parts.size() > 1 && at->index > 0};
    const auto count = static_cast<int64_t>(parts.size()), here = static_cast<int64_t>(i);
    if (at->whole != run.whole || at->axis != run.axis || at->index != (run.reverse ? count - 1 - here : here) ||
        !run.whole->shape()[run.axis].is(count))
      return std::nullopt;
  }
  return run;
}

// The whole with its run at `axis`, where the other axes are those of `shape`, a part.
Value* moved(Rewriter& rewriter, const Node* position, const Run& run, const Shape& shape, int axis) {
  Value* whole = run.whole;
  if (whole->shape().rank() == shape.rank() + 1 && run.axis == 0 && whole->shape()[1].is(1))
    whole = rewriter.insert(position, "Squeeze", {whole, rewriter.add_ints("step_axis", {1})}, {}, whole->name);
  if (whole->shape().rank() != shape.rank()) return nullptr;
  std::vector<int64_t> perm;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != run.axis) perm.push_back(i);
  }
  perm.insert(perm.begin() + axis, run.axis);
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis && whole->shape()[static_cast<int>(perm[static_cast<size_t>(i)])] != shape[i]) return nullptr;
  }
  return run.axis == axis ? whole : rewriter.insert(position, "Transpose", {whole}, {{"perm", perm}}, whole->name);
}

class StepJoiner {
 public:
  StepJoiner(Graph& graph, const PassContext& context) : rewriter_(graph, context) {}

  bool run() {
    for (Node* node : rewriter_.nodes()) {
      if (!is_step(*node)) continue;
      Node* before = node_before(*node);
      if (before && next_.emplace(before, node).second) continue;
      starts_.push_back(node);
    }
    for (Node* start : starts_) join_from(start);
    for (Node* node : rewriter_.nodes()) {
      if (node->op == "Concat" && !rewriter_.is_retired(node) && node->inputs.size() > 1) join_parts(*node);
    }
    const bool changed = rewriter_.finish();
    if (changed) rewriter_.graph().sort();
    return changed;
  }

 private:
  static bool is_step(const Node& node) {
    if (!is_layer(node)) return false;
    const Value* x = node.inputs[kX];
    const auto is_constant = [&](size_t i) { return !node.input(i) || node.input(i)->constant; };
    return x->type.is_tensor() && x->shape().has_rank() && x->shape().rank() == 3 && x->shape()[0].is(1) &&
           node.int_attr("layout", 0) == 0 && node.string_attr("direction", "forward") == "forward" && is_constant(1) &&
           is_constant(2) && is_constant(3) && is_constant(kPeepholes) && !node.input(kLengths);
  }

  static bool have_same_weights(const Node& a, const Node& b) {
    if (a.op != b.op || a.attrs.size() != b.attrs.size()) return false;
    for (const auto& [key, attr] : a.attrs) {
      const auto it = b.attrs.find(key);
      if (it == b.attrs.end() || !identical(attr, it->second)) return false;
    }
    for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, kPeepholes}) {
      const Value *x = a.input(i), *y = b.input(i);
      if (x != y && (!x || !y || !identical(*x->constant, *y->constant))) return false;
    }
    return true;
  }

  // The step whose states a step begins with.
  static Node* node_before(const Node& node) {
    if (!node.input(kHidden)) return nullptr;
    const Value* h = unranked(node.input(kHidden));
    Node* before = h->producer;
    if (!before || before == &node || !is_step(*before) || h->output_index > 1 || !have_same_weights(node, *before))
      return nullptr;
    if (node.op != "LSTM") return before;
    const Value* c = node.input(kState) ? unranked(node.input(kState)) : nullptr;
    return c && c->producer == before && c->output_index == 2 ? before : nullptr;
  }

  // Whether only the next step reads a state.
  bool is_read_by(const Value* state, const Node* next) const {
    if (!state) return true;
    if (rewriter_.graph().is_output(state)) return false;
    for (const Node* reader : rewriter_.readers(state)) {
      if (reader == next) continue;
      const Value* out = reader->outputs.empty() ? nullptr : reader->outputs.front();
      if (!out || unranked(const_cast<Value*>(out)) != unranked(const_cast<Value*>(state)) || !is_read_by(out, next))
        return false;
    }
    return true;
  }

  // Whether a value waits for one of the steps. `seen`: nodes that wait for none.
  static bool waits_for(const Value* value, const std::vector<Node*>& steps, std::unordered_set<const Node*>& seen) {
    std::vector<const Node*> open{value->producer};
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (!node || !seen.insert(node).second) continue;
      if (std::find(steps.begin(), steps.end(), node) != steps.end()) return true;
      for (const Value* in : node->inputs) {
        if (in) open.push_back(in->producer);
      }
    }
    return false;
  }

  // Joins the steps from one on, as far as their inputs do not wait for a step among them.
  void join_from(Node* start) {
    while (start) {
      std::vector<Node*> steps{start};
      // No step is among what an earlier step's input waits for, so that one set serves all.
      std::unordered_set<const Node*> seen;
      Node* next = nullptr;
      for (;;) {
        const auto it = next_.find(steps.back());
        next = it == next_.end() ? nullptr : it->second;
        if (!next || (next->op == "LSTM" && !is_read_by(steps.back()->output(2), next))) break;
        if (waits_for(next->inputs[kX], steps, seen)) break;
        steps.push_back(next);
      }
      if (steps.size() > 1) join(steps);
      start = next;
    }
  }

  void join(const std::vector<Node*>& steps) {
    const Node* last = steps.back();
    std::vector<Value*> parts;
    for (const Node* step : steps) parts.push_back(step->inputs[kX]);
    const auto run = as_run(parts);
    Value* x = run ? moved(rewriter_, last, *run, parts.front()->shape(), 0) : nullptr;
    const bool reverse = x && run->reverse;
    if (!x) x = rewriter_.insert(last, "Concat", parts, {{"axis", int64_t{0}}}, parts.front()->name);
    std::vector<Value*> inputs = steps.front()->inputs;
    inputs[kX] = x;
    Attrs attrs = last->attrs;
    if (reverse) attrs["direction"] = std::string("reverse");
    std::vector<std::string> names{last->output(1) ? last->output(1)->name + ".all" : last->op};
    for (size_t i = 1; i < last->outputs.size(); ++i) names.push_back(last->outputs[i] ? last->outputs[i]->name : "");
    const auto made = rewriter_.insert_all(last, last->op, std::move(inputs), names, std::move(attrs));
    for (size_t i = 0; i < steps.size(); ++i) {
      const Node* step = steps[i];
      const auto count = static_cast<int64_t>(steps.size()), here = static_cast<int64_t>(i);
      const auto part = [&](const Value* of, std::vector<int64_t> index) {
        Tensor at(DType::Int64, index.empty() ? Dims{} : Dims{1});
        store_ints(at, std::vector<int64_t>{reverse ? count - 1 - here : here});
        return rewriter_.insert(last, "Gather", {made[0], rewriter_.add_constant("step", at)}, {{"axis", int64_t{0}}},
                                of->name);
      };
      if (Value* y = step->output(0)) rewriter_.replace(y, part(y, {0}));
      if (Value* h = step->output(1)) rewriter_.replace(h, step == last ? made[1] : part(h, {}));
    }
    if (last->output(2)) rewriter_.replace(last->outputs[2], made[2]);
  }

  // A Concat of all positions of an axis, one after the other.
  void join_parts(const Node& concat) {
    Value* out = concat.outputs.front();
    const auto run = as_run(concat.inputs);
    if (!run || run->reverse || !out->shape().has_rank()) return;
    int64_t axis = concat.int_attr("axis", 0);
    if (axis < 0) axis += out->shape().rank();
    const Shape& part = concat.inputs.front()->shape();
    if (!part.has_rank() || !part[static_cast<int>(axis)].is(1)) return;
    if (Value* whole = moved(rewriter_, &concat, *run, part, static_cast<int>(axis))) rewriter_.replace(out, whole);
  }

  Rewriter rewriter_;
  std::map<const Node*, Node*> next_;
  std::vector<Node*> starts_;
};

}  // namespace

// Steps of a recurrent layer that a graph writes out one by one, each with the states of the one before, become the
// layer over all of them; parts of its results that are put together again are the whole.
bool join_steps(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return StepJoiner(g, context).run(); });
}

}  // namespace neo
