// If, Loop and Scan: inference. Bodies run in control_evaluate.cpp; plans lower them to blocks.

#include "ops/control.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ops/families.h"

namespace neo {
namespace {

using Contents = std::optional<std::vector<Dim>>;

// Joining types this often without an end means that ranks or sizes keep growing; what still changes becomes unranked.
constexpr int kMaxRounds = 16;

// The types and contents of a body and of the bodies inside it, to start another round of inference from.
class Snapshot {
 public:
  explicit Snapshot(const Graph& graph) { add(graph); }
  void restore() const {
    for (const auto& [value, type] : types_) {
      value->type = type;
      value->contents.reset();
    }
  }

 private:
  void add(const Graph& graph) {
    for (const auto& value : graph.values()) types_.emplace_back(value.get(), value->type);
    for (const auto& node : graph.nodes()) {
      for (const auto& [name, body] : node->bodies) add(*body);
    }
  }
  std::vector<std::pair<Value*, Type>> types_;
};

Dim unknown_size(InferContext& ctx, std::string_view stem, const Range& a, const Range& b) {
  Range range{std::max<int64_t>(std::min(a.lo, b.lo), 0), std::min(std::max(a.hi, b.hi), kMaxExtent)};
  if (range.lo > range.hi) range = Symbol().range;
  return ctx.fresh(stem, range);
}

// Symbols that the outer graph knows: those in the types and contents of the node's inputs.
std::set<std::string> outer_symbols(const Node& node) {
  std::map<std::string, Symbol> symbols;
  const auto collect = [&](const Type& type) {
    const Type* t = &type;
    while (!t->is_tensor()) t = t->element.get();
    if (!t->shape.has_rank()) return;
    for (const Dim& d : t->shape.dims()) d.collect_symbols(symbols);
  };
  for (const Value* v : node.inputs) {
    if (!v) continue;
    collect(v->type);
    if (v->contents) {
      for (const Dim& d : *v->contents) d.collect_symbols(symbols);
    }
  }
  std::set<std::string> names;
  for (const auto& [name, symbol] : symbols) names.insert(name);
  return names;
}

// Takes types of a body to the outer graph: sizes that depend on the body's own symbols become symbols of the node.
class Outward {
 public:
  Outward(InferContext& ctx, std::string_view stem) : ctx_(ctx), stem_(stem), outer_(outer_symbols(ctx.node())) {}

  // Symbols that stand for sizes outside already.
  void add_outer(const std::set<std::string>& names) { outer_.insert(names.begin(), names.end()); }

  bool is_outer(const Dim& d) const {
    std::map<std::string, Symbol> symbols;
    d.collect_symbols(symbols);
    return std::all_of(symbols.begin(), symbols.end(), [&](const auto& s) {
      return outer_.count(s.first) > 0 || (s.second.formula && is_outer(*s.second.formula));
    });
  }

  Type operator()(const Type& type) {
    if (type.kind == Type::Kind::Sequence) return Type::sequence((*this)(*type.element));
    if (type.kind == Type::Kind::Optional) return Type::optional((*this)(*type.element));
    if (type.kind == Type::Kind::Map) return type;
    if (!type.shape.has_rank()) return type;
    std::vector<Dim> dims;
    for (const Dim& d : type.shape.dims()) {
      if (is_outer(d)) {
        dims.push_back(d);
        continue;
      }
      const std::string key = d.to_string();
      auto it = renamed_.find(key);
      if (it == renamed_.end()) it = renamed_.emplace(key, unknown_size(ctx_, stem_, d.range(), d.range())).first;
      dims.push_back(it->second);
    }
    return Type::tensor(type.dtype, Shape(std::move(dims)));
  }

 private:
  InferContext& ctx_;
  std::string_view stem_;
  std::set<std::string> outer_;
  std::map<std::string, Dim> renamed_;
};

// The most special type that holds both: sizes that differ become symbols, ranks that differ become unranked.
class Join {
 public:
  enum class Sizes : uint8_t { Bounded, MayGrow };  // a size that differs lies between the two, or may go on changing
  Join(InferContext& ctx, std::string_view stem, Sizes sizes) : ctx_(ctx), stem_(stem), sizes_(sizes) {}

  const std::set<std::string>& symbols() const { return made_; }

  Type operator()(const Type& a, const Type& b, const std::string& what) {
    if (a.kind != b.kind || a.key() != b.key()) refuse(a, b, what);
    if (!a.is_tensor()) {
      Type element = (*this)(*a.element, *b.element, what);
      if (a.kind == Type::Kind::Map) return Type::map(a.key(), element.dtype);
      return a.kind == Type::Kind::Sequence ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
    }
    if (a.dtype != b.dtype && a.dtype != DType::Undefined && b.dtype != DType::Undefined) refuse(a, b, what);
    const DType dtype = a.dtype != DType::Undefined ? a.dtype : b.dtype;
    if (!a.shape.has_rank() || !b.shape.has_rank() || a.shape.rank() != b.shape.rank()) {
      return Type::tensor(dtype, Shape());
    }
    std::vector<Dim> dims;
    for (int i = 0; i < a.shape.rank(); ++i) {
      const Dim& x = a.shape[i];
      const Dim& y = b.shape[i];
      dims.push_back(x == y || is_joined(x) ? x : make(x, y));
    }
    return Type::tensor(dtype, Shape(std::move(dims)));
  }

 private:
  [[noreturn]] void refuse(const Type& a, const Type& b, const std::string& what) const {
    ctx_.fail(ErrorKind::Type, str(what, " must have one type. Got ", a.to_string(), " and ", b.to_string()));
  }
  bool is_joined(const Dim& d) const {
    const auto symbol = d.as_symbol();
    return symbol && made_.count(symbol->name) > 0;
  }
  Dim make(const Dim& x, const Dim& y) {
    const Dim d = sizes_ == Sizes::Bounded ? unknown_size(ctx_, stem_, x.range(), y.range()) : ctx_.fresh(stem_);
    if (const auto symbol = d.as_symbol()) made_.insert(symbol->name);
    return d;
  }

  InferContext& ctx_;
  std::string_view stem_;
  Sizes sizes_;
  std::set<std::string> made_;
};

std::optional<bool> constant_bool(const Value* value) {
  if (!value || !value->constant || value->constant->size() != 1 || value->constant->dtype() == DType::String) {
    return std::nullopt;
  }
  return load_double(value->constant->dtype(), value->constant->data()) != 0;
}

Contents contents_of(const Value& value) {
  if (!value.constant) return value.contents;
  const Tensor& t = *value.constant;
  if (t.rank() > 1 || !is_integer(t.dtype())) return std::nullopt;
  const std::vector<int64_t> ints = load_ints(t);
  return std::vector<Dim>(ints.begin(), ints.end());
}

std::vector<Type> types_of(const InferContext& ctx, size_t begin) {
  std::vector<Type> types;
  for (size_t i = begin; i < ctx.node().inputs.size(); ++i) types.push_back(ctx.type(static_cast<int>(i)));
  return types;
}

// A scalar that a body takes: exporters declare some of them with one axis, and the body may count on it.
Type scalar_input(const Graph& body, size_t input, DType dtype) {
  const Type& declared = body.inputs[input]->type;
  const bool one_axis = declared.is_tensor() && declared.shape.has_rank() && declared.shape.rank() == 1;
  return Type::tensor(dtype, one_axis ? Shape({1}) : Shape(std::vector<Dim>{}));
}

void infer_if(InferContext& ctx) {
  const Node& node = ctx.node();
  check_if(node);
  ctx.check(ctx.dtype(0) == DType::Bool || ctx.dtype(0) == DType::Undefined,
            str("the condition must be bool. Got ", ctx.type(0).to_string()));
  const std::vector<Type> captured = types_of(ctx, 1);
  std::vector<Contents> contents;
  for (size_t i = 1; i < node.inputs.size(); ++i) contents.push_back(contents_of(*node.inputs[i]));
  const std::optional<bool> taken = constant_bool(node.inputs[0]);
  constexpr std::string_view kBranches[] = {"else_branch", "then_branch"};
  Outward outward(ctx, "if_size");
  std::vector<Type> types;
  if (taken) {
    types = ctx.infer_body(kBranches[*taken], captured, contents);
    try {
      (void)ctx.infer_body(kBranches[!*taken], captured, contents);
    } catch (const Error&) {
      // The branch that is never taken may be at odds with the sizes of this call.
    }
  } else {
    types = ctx.infer_body("then_branch", captured, contents);
    const std::vector<Type> others = ctx.infer_body("else_branch", captured, contents);
    Join join(ctx, "if_size", Join::Sizes::Bounded);
    for (size_t i = 0; i < types.size(); ++i) {
      types[i] = join(types[i], others[i], str("output ", i, " of both branches"));
    }
    outward.add_outer(join.symbols());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Contents then_contents = contents_of(*node.body("then_branch").outputs[i]);
    const Contents else_contents = contents_of(*node.body("else_branch").outputs[i]);
    const Contents& known = taken == false ? else_contents : then_contents;
    const bool same = taken || (then_contents && else_contents && *then_contents == *else_contents);
    ctx.set_output(static_cast<int>(i), outward(types[i]));
    if (known && same && std::all_of(known->begin(), known->end(), [&](const Dim& d) { return outward.is_outer(d); })) {
      ctx.set_contents(static_cast<int>(i), *known);
    }
  }
}

struct BodyInputs {
  std::vector<Type> types;
  std::vector<Contents> contents;
  size_t first_carried = 0;
  size_t carried = 0;
};

// Infers the body until the carried values have types that hold in every iteration; leaves those in `inputs` and
// returns the types of the body's outputs, of which the carried ones start at `first_output`.
std::vector<Type> infer_iterations(InferContext& ctx, BodyInputs& inputs, size_t first_output, std::string_view stem) {
  const Snapshot before(ctx.node().body("body"));
  Join join(ctx, stem, Join::Sizes::MayGrow);
  for (int round = 0;; ++round) {
    if (round > 0) before.restore();
    std::vector<Type> outputs = ctx.infer_body("body", inputs.types, inputs.contents);
    bool changed = false;
    for (size_t i = 0; i < inputs.carried; ++i) {
      Type& type = inputs.types[inputs.first_carried + i];
      Type joined = join(type, outputs[first_output + i], str("carried value ", i));
      if (joined == type) continue;
      changed = true;
      if (round >= kMaxRounds && joined.is_tensor()) joined.shape = Shape();
      type = std::move(joined);
    }
    if (!changed) return outputs;
  }
}

void set_stacked(InferContext& ctx, size_t output, const Type& element, const Dim& length, int64_t axis) {
  if (!ctx.has_output(static_cast<int>(output))) return;
  if (!element.is_tensor()) {
    ctx.fail(ErrorKind::Type, str("output ", output, " collects tensors. Got ", element.to_string()));
  }
  Shape shape;
  if (element.shape.has_rank()) {
    std::vector<Dim> dims = element.shape.dims();
    dims.insert(dims.begin() + ctx.axis(axis, element.shape.rank() + 1), length);
    shape = Shape(std::move(dims));
  }
  ctx.set_output(static_cast<int>(output), element.dtype, std::move(shape));
}

// A count of so many iterations is none.
bool has_bound(const Node& node) {
  const Value* count = node.inputs[0];
  if (!count) return false;
  const Contents known = contents_of(*count);
  return !known || known->size() != 1 || !(*known)[0].is(std::numeric_limits<int64_t>::max());
}

// The body's condition never ends the loop: it is the constant true, or the condition that the body was given. Where
// there is a bound and no condition, the body's own ends nothing.
bool condition_stays_true(const Node& node) {
  if (!node.inputs[1] && has_bound(node)) return true;
  if (node.inputs[1] && constant_bool(node.inputs[1]) != true) return false;
  const Graph& body = node.body("body");
  const Value* value = body.outputs[0];
  while (value->producer && value->producer->op == "Identity" && value->producer->input(0)) {
    value = value->producer->input(0);
  }
  return value == body.inputs[1] || constant_bool(value) == true;
}

void infer_loop(InferContext& ctx) {
  const Node& node = ctx.node();
  const LoopSignature s = loop_signature(node);
  const Graph& body = node.body("body");
  BodyInputs inputs;
  inputs.types = {scalar_input(body, 0, DType::Int64), scalar_input(body, 1, DType::Bool)};
  for (Type& type : types_of(ctx, 2)) inputs.types.push_back(std::move(type));
  inputs.contents.resize(inputs.types.size());
  for (size_t i = 2 + s.carried; i < inputs.types.size(); ++i) inputs.contents[i] = contents_of(*node.inputs[i]);
  inputs.first_carried = 2;
  inputs.carried = s.carried;
  const std::vector<Type> outputs = infer_iterations(ctx, inputs, 1, "loop_size");
  ctx.check(has_bound(node) || !condition_stays_true(node),
            "a loop must end: by a trip count, or by a condition that becomes false. Got neither");
  Outward outward(ctx, "loop_size");
  for (size_t i = 0; i < s.carried; ++i) ctx.set_output(static_cast<int>(i), outward(inputs.types[2 + i]));
  if (s.stacked == 0) return;
  Range trips = Symbol().range;
  std::optional<Dim> length;
  if (ctx.has_input(0)) {
    const Contents limit = ctx.contents(0);
    if (limit && limit->size() == 1) {
      trips.hi = std::clamp<int64_t>((*limit)[0].range().hi, 0, trips.hi);
      if (condition_stays_true(node)) length = max((*limit)[0], 0);
    }
  }
  if (!length) length = ctx.fresh("loop_trips", trips);
  for (size_t i = 0; i < s.stacked; ++i) {
    set_stacked(ctx, s.carried + i, outward(outputs[1 + s.carried + i]), *length, 0);
  }
}

void infer_scan(InferContext& ctx) {
  const Node& node = ctx.node();
  const LoopSignature s = scan_signature(node);
  const auto in_axes = scan_axes(node, "scan_input_axes", "scan_input_directions", s.scanned);
  const auto out_axes = scan_axes(node, "scan_output_axes", "scan_output_directions", s.stacked);
  BodyInputs inputs;
  inputs.types = types_of(ctx, 0);
  inputs.contents.resize(inputs.types.size());
  inputs.carried = s.carried;
  std::optional<Dim> length;
  for (size_t i = 0; i < s.scanned; ++i) {
    Type& type = inputs.types[s.carried + i];
    if (!type.is_tensor()) ctx.fail(ErrorKind::Type, str("a scan input must be a tensor. Got ", type.to_string()));
    if (!type.shape.has_rank()) continue;
    std::vector<Dim> dims = type.shape.dims();
    const auto axis = dims.begin() + ctx.axis(in_axes[i].axis, type.shape.rank());
    if (length) {
      ctx.require_equal(*length, *axis, "scan inputs must have one length");
    } else {
      length = *axis;
    }
    dims.erase(axis);
    type.shape = Shape(std::move(dims));
  }
  if (!length) length = ctx.fresh("scan_length");
  for (size_t i = s.carried + s.scanned; i < inputs.types.size(); ++i) {
    inputs.contents[i] = contents_of(*node.inputs[i]);
  }
  const std::vector<Type> outputs = infer_iterations(ctx, inputs, 0, "scan_size");
  Outward outward(ctx, "scan_size");
  for (size_t i = 0; i < s.carried; ++i) ctx.set_output(static_cast<int>(i), outward(inputs.types[i]));
  for (size_t i = 0; i < s.stacked; ++i) {
    set_stacked(ctx, s.carried + i, outward(outputs[s.carried + i]), *length, out_axes[i].axis);
  }
}

}  // namespace

void add_control_ops(OpRegistry& ops) {
  ops.add({.name = "If", .min_inputs = 1, .max_inputs = -1, .max_outputs = -1, .infer = infer_if});
  ops.add({.name = "Loop",
           .min_inputs = 2,
           .max_inputs = -1,
           .required_inputs = 0,
           .max_outputs = -1,
           .infer = infer_loop});
  ops.add({.name = "Scan", .min_inputs = 1, .max_inputs = -1, .max_outputs = -1, .infer = infer_scan});
}

}  // namespace neo
