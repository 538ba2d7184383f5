#include <algorithm>
#include <limits>

#include "passes/gate_sums.h"
#include "passes/scan_parts.h"

namespace neo {
namespace {

bool is_true(const Value* value) {
  return value->constant && value->constant->size() == 1 && value->dtype() == DType::Bool &&
         load_int64(DType::Bool, value->constant->data()) != 0;
}

// The SplitToSequence that parts a tensor of known rank into slices of one position, where a sequence is made so.
const Node* slicing_split(const Value* sequence) {
  const Node* split = made_by(sequence, "SplitToSequence");
  const bool is_known = split && !split->input(1) && split->inputs[0]->shape().has_rank();
  return is_known ? split : nullptr;
}

int64_t split_axis(const Node& split) {
  const int64_t axis = split.int_attr("axis", 0);
  return axis < 0 ? axis + split.inputs[0]->shape().rank() : axis;
}

// A Loop that takes one slice of each of its sequences in turn.
class LoopReader {
 public:
  LoopReader(Graph& graph, Node& loop, const PassContext& context)
      : graph_(graph), loop_(loop), context_(context), body_(loop.body("body")), parts_(read_loop_parts(loop)) {}

  bool run() {
    const Value* trips = trip_count();
    const std::optional<Dim> length = trips ? count_of(*trips) : std::nullopt;
    if (!length) return false;
    length_ = *length;
    outer_users_ = graph_.users();
    users_ = body_.users();
    if (!find_sequences() || !find_slices()) return false;
    for (const Slice& slice : slices_) {
      std::vector<Dim> dims = slice.whole->shape().dims();
      dims.erase(dims.begin() + slice.axis);
      Value* inner = body_.add_input(slice.whole->name, Type::tensor(slice.whole->dtype(), Shape(dims)));
      body_.inputs.pop_back();
      Value* part = inner;
      if (slice.keeps_axis) {
        Tensor axis(DType::Int64, {1});
        store_ints(axis, std::vector<int64_t>{slice.axis});
        part = body_
                   .insert_before(slice.node, "Unsqueeze", {inner, body_.add_constant("axis", axis)},
                                  {slice.node->outputs[0]->name})
                   ->outputs[0];
        dims.insert(dims.begin() + slice.axis, 1);
        part->type = Type::tensor(slice.whole->dtype(), Shape(std::move(dims)));
      }
      const Value* out = slice.node->outputs[0];
      for (auto& c : parts_.carried) c.next = c.next == out ? part : c.next;
      for (auto& c : parts_.collected) c.inner = c.inner == out ? part : c.inner;
      body_.replace_uses(slice.node->outputs[0], part);
      parts_.scanned.push_back({slice.whole, inner, slice.axis, false});
    }
    for (const auto& [concat, at] : stacks_) parts_.collected[at].result = concat->outputs.front();
    // Values that counted iterations, and those that no iteration reads any more, go.
    std::vector<ScanParts::Carried> kept;
    for (const auto& c : parts_.carried) {
      if (!is_counter(c.inner) && c.inner->type.is_tensor()) kept.push_back(c);
    }
    parts_.carried = std::move(kept);
    body_.outputs.clear();
    for (const auto& c : parts_.carried) body_.outputs.push_back(c.next);
    for (const auto& c : parts_.collected) body_.outputs.push_back(c.inner);
    erase_unread();
    replace_by_scan(graph_, loop_, parts_, context_);
    graph_.erase_nodes([&](const Node& n) {
      return &n == &loop_ || std::any_of(stacks_.begin(), stacks_.end(), [&](const auto& s) { return s.first == &n; });
    });
    return true;
  }

 private:
  struct Slice {
    Node* node;  // Gather, or SequenceAt of parts of one position
    Value* whole;
    int64_t axis;
    bool keeps_axis;
  };

  static std::optional<Dim> count_of(const Value& trips) {
    if (trips.contents && trips.contents->size() == 1) return trips.contents->front();
    if (trips.constant && trips.constant->size() == 1) return Dim(load_ints(*trips.constant).front());
    const Node* length = made_by(&trips, "SequenceLength");
    const Node* split = length ? slicing_split(length->inputs[0]) : nullptr;
    if (!split) return std::nullopt;
    return split->inputs[0]->shape()[static_cast<int>(split_axis(*split))];
  }

  // The number of iterations, where nothing else ends the loop; null where something may.
  const Value* trip_count() const {
    const Value* outcome = unranked(body_.outputs[0]);
    const Value *limit = loop_.inputs[0], *condition = loop_.inputs[1];
    if (limit && (!condition || is_true(condition)) && (!condition || is_true(outcome) || outcome == body_.inputs[1]))
      return limit;
    const bool is_open = !limit || uniform(limit) == static_cast<double>(std::numeric_limits<int64_t>::max());
    const Node *again = made_by(outcome, "Less"), *once = condition ? made_by(condition, "Less") : nullptr;
    if (!is_open || !again || !once || uniform(once->inputs[0]) != 0.0) return nullptr;
    const auto counts = [&](const auto& c) { return is_counter(c.inner) && c.next == again->inputs[0]; };
    if (std::none_of(parts_.carried.begin(), parts_.carried.end(), counts)) return nullptr;
    for (const auto& c : parts_.captured) {
      if (c.inner == again->inputs[1] && c.outer == once->inputs[1]) return c.outer;
    }
    const Value *inner = again->inputs[1], *outer = once->inputs[1];
    return inner->constant && outer->constant && uniform(inner) == uniform(outer) ? outer : nullptr;
  }

  // The iteration, or a carried number that begins with 0 and grows by 1.
  bool is_counter(const Value* value) const {
    if (value == body_.inputs[0]) return true;
    for (const auto& c : parts_.carried) {
      if (c.inner != value) continue;
      const Node* sum = c.next->producer;
      return c.initial->type.is_tensor() && is_integer(c.initial->dtype()) && uniform(c.initial) == 0.0 && sum &&
             sum->op == "Add" &&
             ((sum->inputs[0] == value && uniform(sum->inputs[1]) == 1.0) ||
              (sum->inputs[1] == value && uniform(sum->inputs[0]) == 1.0));
    }
    return false;
  }

  const std::vector<std::pair<Node*, int>>& readers(const Graph::Users& users, const Value* value) const {
    static const std::vector<std::pair<Node*, int>> none;
    const auto it = users.find(value);
    return it == users.end() ? none : it->second;
  }

  // Carried sequences that each iteration appends one tensor to, and that are stacked after the loop.
  bool find_sequences() {
    for (const auto& c : parts_.carried) {
      if (c.initial->type.is_tensor()) continue;
      const Node* insert = made_by(c.next, "SequenceInsert");
      if (!made_by(c.initial, "SequenceEmpty") || !insert || insert->input(2) || insert->inputs[0] != c.inner ||
          readers(users_, c.inner).size() != 1 || !readers(users_, c.next).empty())
        return false;
      Value* element = insert->inputs[1];
      if (!element->type.is_tensor() || !element->shape().has_rank()) return false;
      if (c.result && graph_.is_output(c.result)) return false;
      for (const auto& [node, index] : c.result ? readers(outer_users_, c.result) : readers(users_, c.next)) {
        if (node->op != "ConcatFromSequence" || node->int_attr("new_axis", 0) == 0) return false;
        stacks_.emplace_back(node, parts_.collected.size());
        const int64_t axis = node->int_attr("axis", 0);
        parts_.collected.push_back({element, nullptr, axis < 0 ? axis + element->shape().rank() + 1 : axis, false});
      }
    }
    return true;
  }

  // Slices that the iteration counts, and nothing else that looks at it.
  bool find_slices() {
    std::vector<const Value*> counters{body_.inputs[0]};
    for (const auto& c : parts_.carried) {
      if (!is_counter(c.inner)) continue;
      const bool is_read = c.result && (graph_.is_output(c.result) || !readers(outer_users_, c.result).empty());
      if (is_read) return false;
      counters.push_back(c.inner);
    }
    for (const Value* counter : counters) {
      if (body_.is_output(counter)) return false;
      if (!add_slices(counter)) return false;
    }
    return !slices_.empty();
  }

  bool add_slices(const Value* index) {
    for (const auto& [node, at] : readers(users_, index)) {
      Value* out = node->outputs.front();
      if ((node->op == "Gather" || node->op == "SequenceAt") && at == 1) {
        if (!add_slice(*node)) return false;
      } else if (node->op == "Unsqueeze" || node->op == "Reshape" || node->op == "Squeeze" || node->op == "Identity") {
        if (body_.is_output(out) || !add_slices(out)) return false;
      } else if (!is_counting(*node)) {
        return false;
      }
    }
    return true;
  }

  // A node that only counts: its result is the next count, and the loop's condition.
  bool is_counting(const Node& node) const {
    const Value* out = node.outputs.front();
    const auto is_next = [&](const auto& c) { return c.next == out && is_counter(c.inner); };
    if (std::none_of(parts_.carried.begin(), parts_.carried.end(), is_next)) return false;
    const auto& after = readers(users_, out);
    return std::all_of(after.begin(), after.end(),
                       [&](const auto& read) { return read.first->outputs.front() == unranked(body_.outputs[0]); });
  }

  bool add_slice(Node& node) {
    const auto captured = std::find_if(parts_.captured.begin(), parts_.captured.end(),
                                       [&](const auto& c) { return c.inner == node.inputs[0]; });
    if (captured == parts_.captured.end()) return false;
    Slice slice{&node, captured->outer, 0, false};
    if (node.op == "SequenceAt") {
      const Node* split = slicing_split(captured->outer);
      if (!split) return false;
      slice = {&node, split->inputs[0], split_axis(*split), split->int_attr("keepdims", 1) != 0};
    } else {
      const Value* index = node.inputs[1];
      if (!slice.whole->type.is_tensor() || !slice.whole->shape().has_rank() || !index->shape().has_rank() ||
          index->shape().rank() > 1)
        return false;
      slice.axis = node.int_attr("axis", 0);
      if (slice.axis < 0) slice.axis += slice.whole->shape().rank();
      slice.keeps_axis = index->shape().rank() == 1;
    }
    if (slice.axis < 0 || slice.axis >= slice.whole->shape().rank() ||
        slice.whole->shape()[static_cast<int>(slice.axis)] != length_)
      return false;
    slices_.push_back(slice);
    return true;
  }

  void erase_unread() {
    for (bool changed = true; changed;) {
      changed = false;
      const auto users = body_.users();
      const auto is_unread = [&](const Node& n) {
        return std::all_of(n.outputs.begin(), n.outputs.end(),
                           [&](const Value* v) { return !v || (readers(users, v).empty() && !body_.is_output(v)); });
      };
      const size_t before = body_.nodes().size();
      body_.erase_nodes(is_unread);
      changed = body_.nodes().size() != before;
    }
    const auto users = body_.users();
    std::erase_if(parts_.captured,
                  [&](const auto& c) { return readers(users, c.inner).empty() && !body_.is_output(c.inner); });
  }

  Graph& graph_;
  Node& loop_;
  const PassContext& context_;
  Graph& body_;
  ScanParts parts_;
  Dim length_;
  Graph::Users users_, outer_users_;
  std::vector<Slice> slices_;
  std::vector<std::pair<Node*, size_t>> stacks_;
};

bool turn_in_body(Graph& graph, const PassContext& context) {
  std::vector<Node*> loops;
  for (const auto& node : graph.nodes()) {
    if (node->op == "Loop") loops.push_back(node.get());
  }
  bool changed = false;
  for (Node* loop : loops) changed = LoopReader(graph, *loop, context).run() || changed;
  return changed;
}

}  // namespace

// A Loop whose iterations take slice after slice of some sequences, and that nothing but their length ends, becomes a
// Scan of them, whether those are tensors or were parted into a sequence; sequences that it appends to and that are
// stacked afterwards become collected outputs.
bool turn_loops_into_scans(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [&](Graph& g) { return turn_in_body(g, context); });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
