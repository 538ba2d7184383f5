#include "ops/infer.h"

#include <algorithm>
#include <map>
#include <new>

#include "base/budget.h"
#include "ops/control.h"

namespace neo {
namespace {

constexpr int kMaxBodyDepth = 64;
constexpr int kMaxBodies = 20000;

thread_local int depth = 0;
// Bodies inferred since depth was last zero: nested loops that each infer their body more than once multiply.
thread_local int bodies = 0;

std::string counted(std::string_view what, int lo, int hi) {
  const std::string_view s = (hi < 0 ? lo : hi) == 1 ? "" : "s";
  if (hi < 0) return str("at least ", lo, " ", what, s);
  return lo == hi ? str(lo, " ", what, s) : str(lo, " to ", hi, " ", what, s);
}

int count_used(const std::vector<Value*>& values) {
  size_t n = values.size();
  while (n > 0 && values[n - 1] == nullptr) --n;
  return static_cast<int>(n);
}

// Keeps declared dtypes and sizes that inference did not find out.
void keep_declared(Type& inferred, const Type& declared) {
  if (inferred.kind != declared.kind) return;
  if (inferred.is_tensor()) {
    if (inferred.dtype == DType::Undefined) inferred.dtype = declared.dtype;
    if (!inferred.shape.has_rank()) inferred.shape = declared.shape;
  } else {
    Type element = *inferred.element;
    keep_declared(element, *declared.element);
    if (!(element == *inferred.element)) inferred.element = std::make_shared<Type>(std::move(element));
  }
}

// While this lives, the sizes and the known elements that a node reads are numbers and bare symbols.
class BareInputs {
 public:
  BareInputs(const Node& node, SymbolTable& symbols) {
    for (Value* v : node.inputs) {
      if (v && !v->constant && !held_.count(v)) hide(*v, symbols);
    }
  }
  ~BareInputs() {
    for (auto& [value, held] : held_) {
      value->type = std::move(held.first);
      value->contents = std::move(held.second);
    }
  }
  BareInputs(const BareInputs&) = delete;
  BareInputs& operator=(const BareInputs&) = delete;

 private:
  void hide(Value& value, SymbolTable& symbols) {
    held_[&value] = {value.type, value.contents};
    if (value.type.is_tensor() && value.shape().has_rank()) {
      std::vector<Dim> dims = value.shape().dims();
      for (Dim& d : dims) d = symbols.define(d);
      value.type.shape = Shape(std::move(dims));
    }
    if (!value.contents) return;
    for (Dim& d : *value.contents) d = symbols.define(d);
  }

  std::map<Value*, std::pair<Type, std::optional<std::vector<Dim>>>> held_;
};

// Notes the sizes of the bodies' inputs before an inference, to rename them in the bodies where it finds others.
class BodySizes {
 public:
  explicit BodySizes(const Node& node) {
    for (const auto& [name, body] : node.bodies) {
      for (const Value* input : body->inputs) {
        if (input->type.is_tensor() && input->shape().has_rank()) before_.emplace_back(input, input->shape());
      }
    }
  }

  // Whether nodes of the bodies named sizes that are called otherwise now; they name them anew.
  bool rename_in(const Node& node) const {
    bool renamed = false;
    for (const auto& [name, body] : node.bodies) {
      for (const auto& inner : body->nodes()) {
        for (auto& [key, attr] : inner->attrs) {
          if (auto* dims = std::get_if<std::vector<Dim>>(&attr)) {
            for (Dim& dim : *dims) renamed = rename(dim) || renamed;
          }
        }
        renamed = rename_in(*inner) || renamed;
      }
    }
    return renamed;
  }

 private:
  bool rename(Dim& dim) const {
    const Dim before = dim;
    dim = dim.substitute([&](const Symbol& symbol) { return now_called(symbol.name); });
    return !(dim == before);
  }

  std::optional<Dim> now_called(const std::string& name) const {
    for (const auto& [input, before] : before_) {
      const Shape& now = input->shape();
      for (int i = 0; now.has_rank() && now.rank() == before.rank() && i < now.rank(); ++i) {
        const auto symbol = before[i].as_symbol();
        if (symbol && symbol->name == name && !(now[i] == before[i])) return now[i];
      }
    }
    return std::nullopt;
  }

  std::vector<std::pair<const Value*, Shape>> before_;
};

}  // namespace

BodyDepth::BodyDepth(const Node& node) {
  NEO_CHECK(depth < kMaxBodyDepth, Unsupported, node.op, "bodies must nest at most ", kMaxBodyDepth,
            " deep. Got deeper ones - at ", node.place());
  ++depth;
}

BodyDepth::~BodyDepth() {
  --depth;
}

void check_arity(const Node& node, const Op& op) {
  const auto check = [&](std::string_view what, int count, int lo, int hi) {
    NEO_CHECK(count >= lo && (hi < 0 || count <= hi), Model, node.op, "operator needs ", counted(what, lo, hi),
              ". Got ", count, " - at ", node.place());
  };
  const int inputs = static_cast<int>(node.inputs.size());
  check("input", op.max_inputs >= 0 && inputs > op.max_inputs ? count_used(node.inputs) : inputs, op.min_inputs,
        op.max_inputs);
  for (int i = 0; i < (op.required_inputs < 0 ? op.min_inputs : op.required_inputs); ++i) {
    NEO_CHECK(node.inputs[static_cast<size_t>(i)], Model, node.op, "input ", i, " must not be left out. Got none - at ",
              node.place());
  }
  const int outputs = static_cast<int>(node.outputs.size());
  check("output", op.max_outputs >= 0 && outputs > op.max_outputs ? count_used(node.outputs) : outputs, op.min_outputs,
        op.max_outputs);
}

std::vector<int> infer_with_ranks(Node& node, const OpRegistry& ops, SymbolTable& symbols) {
  std::vector<int> ranks;
  checkpoint();
  at_node(node, [&] {
    const Op& op = ops.get(node.op);
    check_arity(node, op);
    NEO_ASSERT(op.infer != nullptr, "the operator ", op.name, " has no inference");
    std::vector<Type> declared;
    for (Value* v : node.outputs) {
      declared.push_back(v ? v->type : Type());
      if (v) v->contents.reset();
    }
    const auto infer = [&] {
      node.guards.clear();
      InferContext context(node, ops, symbols);
      op.infer(context);
      context.drop_stale_symbols();
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i]) keep_declared(node.outputs[i]->type, declared[i]);
      }
      ranks.clear();
      for (int i = 0; i < context.input_count(); ++i) ranks.push_back(context.required_rank(i));
    };
    const BodySizes sizes(node);
    try {
      infer();
      if (sizes.rename_in(node)) infer();
    } catch (const Error& error) {
      if (!is_large_expression(error)) throw;
      for (Value* v : node.outputs) {
        if (v) v->contents.reset();
      }
      const BareInputs bare(node, symbols);
      infer();
    }
  });
  return ranks;
}

void infer_node(Node& node, const OpRegistry& ops, SymbolTable& symbols) {
  (void)infer_with_ranks(node, ops, symbols);
}

std::vector<int> required_ranks(Node& node, const OpRegistry& ops, SymbolTable& symbols) {
  const bool open = std::any_of(node.inputs.begin(), node.inputs.end(),
                                [](const Value* v) { return v && v->type.is_tensor() && !v->shape().has_rank(); });
  return open ? infer_with_ranks(node, ops, symbols) : std::vector<int>(node.inputs.size(), -1);
}

void check_ranks(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  const auto is_open = [](const Value* v) { return v && v->type.is_tensor() && !v->shape().has_rank(); };
  if (std::none_of(node.inputs.begin(), node.inputs.end(), is_open)) return;
  Graph graph;
  std::vector<Value*> copies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* v = node.inputs[i];
    if (!v) {
      copies.push_back(nullptr);
    } else if (v->constant) {
      copies.push_back(graph.add_constant(v->name, *v->constant));
    } else if (inputs[i].kind == HostValue::Kind::Tensor) {
      const Tensor& tensor = inputs[i].tensor;
      copies.push_back(graph.add_input(v->name, Type::tensor(tensor.dtype(), Shape::of(tensor.dims()))));
    } else {
      copies.push_back(graph.add_input(v->name, v->type));
    }
  }
  std::vector<std::string> names;
  for (const Value* v : node.outputs) names.push_back(v ? v->name : "");
  infer_node(*graph.add_node(node.op, copies, names, node.attrs, node.name), ops, *graph.symbols());
}

void infer_graph(Graph& graph, const OpRegistry& ops) {
  for (const auto& node : graph.nodes()) infer_node(*node, ops, *graph.symbols());
}

namespace {

// The type and the known contents of a value, for its readers.
using Facts = std::pair<Type, std::optional<std::vector<Dim>>>;

std::vector<Facts> facts_of(const Node& node) {
  std::vector<Facts> facts;
  for (const Value* v : node.outputs) facts.push_back(v ? Facts{v->type, v->contents} : Facts{});
  return facts;
}

}  // namespace

void infer_again(Graph& graph, const OpRegistry& ops, std::unordered_set<const Value*> changed,
                 const std::unordered_set<const Node*>& stale) {
  for (const auto& node : graph.nodes()) {
    const bool reads = std::any_of(node->inputs.begin(), node->inputs.end(),
                                   [&](const Value* v) { return v && changed.count(v) > 0; });
    if (!reads && stale.count(node.get()) == 0) continue;
    const std::vector<Facts> before = facts_of(*node);
    infer_node(*node, ops, *graph.symbols());
    const std::vector<Facts> after = facts_of(*node);
    for (size_t i = 0; i < after.size(); ++i) {
      if (node->outputs[i] && after[i] != before[i]) changed.insert(node->outputs[i]);
    }
  }
}

std::vector<Type> InferContext::infer_body(std::string_view name, const std::vector<Type>& inputs,
                                           const std::vector<std::optional<std::vector<Dim>>>& contents) {
  if (depth == 0) bodies = 0;
  if (++bodies > kMaxBodies)
    fail(ErrorKind::Unsupported, str("at most ", kMaxBodies, " bodies are inferred. Got more"));
  const BodyDepth guard(node_);
  Graph& body = node_.body(name);
  if (body.inputs.size() != inputs.size()) {
    fail(ErrorKind::Model,
         str("the body \"", name, "\" must have ", inputs.size(), " inputs. Got ", body.inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value& input = *body.inputs[i];
    Type type = inputs[i];
    if (type.is_tensor() && input.type.is_tensor() && type.dtype == DType::Undefined) type.dtype = input.type.dtype;
    // A branch keeps the ranks that it was found to need: they hold whenever it runs.
    if (node_.op == "If") keep_declared(type, input.type);
    input.type = std::move(type);
    input.contents = i < contents.size() ? contents[i] : std::nullopt;
  }
  infer_graph(body, ops_);
  std::vector<Type> types;
  for (const Value* output : body.outputs) types.push_back(output->type);
  return types;
}

}  // namespace neo
