#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "ir/graph.h"

namespace neo {
namespace {

constexpr int kMaxVerifiedDepth = 64;

class Verifier {
 public:
  Verifier(const Graph& graph, int depth, bool typed) : graph_(graph), depth_(depth), typed_(typed) {}

  void run() {
    check(depth_ <= kMaxVerifiedDepth, str("bodies nest deeper than ", kMaxVerifiedDepth));
    check(graph_.symbols() != nullptr, "there is no symbol table");
    check_values();
    check_inputs();
    for (const auto& node : graph_.nodes()) check_node(*node);
    for (const Value* v : graph_.outputs) {
      check(v != nullptr, "an output is missing");
      check(owned_.count(v) > 0, "an output belongs to another graph");
      check(defined_.count(v) > 0, str("the output \"", v->name, "\" is not computed"));
    }
    for (const Value* v : owned_) {
      check(!v->producer || defined_.count(v) > 0, str("\"", v->name, "\" names a producer that is not in the graph"));
    }
  }

 private:
  void check(bool holds, const std::string& what) const {
    if (!holds) fail(ErrorKind::Internal, "verify", str(what, " - at graph \"", graph_.name, "\""));
  }
  void check(bool holds, const Node& node, const std::string& what) const {
    if (!holds)
      fail(ErrorKind::Internal, "verify", str(what, " - at ", node.place(), " of graph \"", graph_.name, "\""));
  }

  bool is_typed(const Type& type) const {
    if (type.is_tensor()) return type.dtype != DType::Undefined;
    return type.element != nullptr && is_typed(*type.element);
  }

  void check_values() {
    for (const auto& value : graph_.values()) {
      const Value& v = *value;
      owned_.insert(&v);
      check(!v.name.empty(), "a value has no name");
      check(graph_.find_value(v.name) == &v, str("the name \"", v.name, "\" is not unique"));
      if (v.constant) {
        check(v.constant->defined(), str("the constant \"", v.name, "\" has no tensor"));
        check(v.type == Type::tensor(v.constant->dtype(), Shape::of(v.constant->dims())),
              str("the constant \"", v.name, "\" is not of its type ", v.type.to_string()));
        if (!v.producer) defined_.insert(&v);
      }
      if (v.contents) {
        const bool is_known = v.type.is_tensor() && v.shape().has_rank() && v.shape().element_count().is_constant();
        const auto size = static_cast<int64_t>(v.contents->size());
        check(v.type.is_tensor() && (!is_known || v.shape().element_count() == Dim(size)),
              str("\"", v.name, "\" has ", size, " known elements and the type ", v.type.to_string()));
      }
    }
  }

  void check_inputs() {
    for (const Value* v : graph_.inputs) {
      check(v != nullptr, "an input is missing");
      check(owned_.count(v) > 0, "an input belongs to another graph");
      check(!v->producer && !v->constant, str("the input \"", v->name, "\" has a producer or is a constant"));
      check(defined_.insert(v).second, str("the input \"", v->name, "\" is listed twice"));
      check(!typed_ || is_typed(v->type), str("the input \"", v->name, "\" has no type"));
    }
  }

  void check_node(const Node& node) {
    check(!node.op.empty(), node, "a node has no operator");
    for (const Value* v : node.inputs) {
      if (!v) continue;
      check(owned_.count(v) > 0, node, "an input belongs to another graph");
      check(defined_.count(v) > 0, node, str("the input \"", v->name, "\" is read before it is computed"));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* v = node.outputs[i];
      if (!v) continue;
      check(owned_.count(v) > 0, node, "an output belongs to another graph");
      check(v->producer == &node && v->output_index == static_cast<int>(i), node,
            str("the output \"", v->name, "\" names another producer"));
      check(defined_.insert(v).second, node, str("the output \"", v->name, "\" is computed twice"));
      check(!typed_ || is_typed(v->type), node, str("the output \"", v->name, "\" has no type"));
    }
    check_bodies(node);
  }

  void check_bodies(const Node& node) {
    const bool is_if = node.op == "If";
    for (const auto& [name, body] : node.bodies) {
      check(body != nullptr, node, str("the body \"", name, "\" is missing"));
      check(
          body->inputs.size() + (is_if ? 1 : 0) == node.inputs.size(), node,
          str("the body \"", name, "\" has ", body->inputs.size(), " inputs for ", node.inputs.size(), " of the node"));
      check(body->symbols() == graph_.symbols(), node, str("the body \"", name, "\" has a symbol table of its own"));
      Verifier(*body, depth_ + 1, typed_ && !is_never_taken(node, name)).run();
    }
  }

  // Inference may give up on a branch of If that a constant condition rules out.
  static bool is_never_taken(const Node& node, std::string_view branch) {
    const Value* condition = node.input(0);
    if (node.op != "If" || !condition || !condition->constant || condition->constant->size() != 1) return false;
    if (condition->dtype() != DType::Bool) return false;
    const bool taken = load_int64(DType::Bool, condition->constant->data()) != 0;
    return branch == (taken ? "else_branch" : "then_branch");
  }

  const Graph& graph_;
  int depth_;
  bool typed_;
  std::unordered_set<const Value*> owned_;
  std::unordered_set<const Value*> defined_;
};

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph, 0, true).run();
}

}  // namespace neo
