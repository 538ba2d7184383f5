#include "ops/op.h"

#include <algorithm>

#include "base/budget.h"

namespace neo {
namespace {

std::string at_place(const Node& node, const std::string& rule) {
  return str(rule, " - at ", node.place());
}

int checked_axis(const Node& node, int64_t axis, int rank) {
  NEO_CHECK(axis >= -rank && axis < rank, Model, node.op, "an axis must lie in [", -rank, ", ", rank - 1, "]. Got ",
            axis, " - at ", node.place());
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The symbol's name is `stem`, or `stem` and a number.
bool is_named_after(const Symbol& symbol, std::string_view stem) {
  if (!symbol.name.starts_with(stem)) return false;
  const std::string_view rest = std::string_view(symbol.name).substr(stem.size());
  return rest.empty() || (rest.size() > 1 && rest[0] == '_' &&
                          std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; }));
}

}  // namespace

const Type& InferContext::type(int input) const {
  const Value* value = node_.input(static_cast<size_t>(input));
  if (value == nullptr) fail(ErrorKind::Model, str("input ", input, " is required. Got none"));
  return value->type;
}

const Tensor* InferContext::constant(int input) const {
  const Value* value = node_.input(static_cast<size_t>(input));
  return value && value->constant ? &*value->constant : nullptr;
}

std::optional<std::vector<int64_t>> InferContext::constant_ints(int input) const {
  if (const Tensor* tensor = constant(input)) {
    if (tensor->rank() > 1 || !(is_integer(tensor->dtype()) || tensor->dtype() == DType::Bool)) return std::nullopt;
    return load_ints(*tensor);
  }
  const Value* value = node_.input(static_cast<size_t>(input));
  if (value == nullptr || !value->contents) return std::nullopt;
  std::vector<int64_t> ints;
  for (const Dim& d : *value->contents) {
    if (!d.is_constant()) return std::nullopt;
    ints.push_back(d.value());
  }
  return ints;
}

std::optional<std::vector<Dim>> InferContext::contents(int input) const {
  if (constant(input)) {
    const auto ints = constant_ints(input);
    if (!ints) return std::nullopt;
    return std::vector<Dim>(ints->begin(), ints->end());
  }
  const Value* value = node_.input(static_cast<size_t>(input));
  return value ? value->contents : std::nullopt;
}

namespace {

// Expressions with more nodes go on as a symbol that stands for them: what nodes make of expressions grows with the
// product of their sizes.
constexpr int kLargeExpression = 40;

void name_large(std::vector<Dim>& dims, SymbolTable& symbols) {
  for (Dim& dim : dims) {
    if (dim.node_count() > kLargeExpression) dim = symbols.define(dim);
  }
}

}  // namespace

void InferContext::set_output(int i, Type type) {
  Value* value = node_.output(static_cast<size_t>(i));
  if (value == nullptr) return;
  if (type.is_tensor() && type.shape.has_rank()) {
    std::vector<Dim> dims = type.shape.dims();
    name_large(dims, symbols_);
    type.shape = Shape(std::move(dims));
  }
  value->type = std::move(type);
}

void InferContext::set_contents(int i, std::vector<Dim> contents) {
  Value* value = node_.output(static_cast<size_t>(i));
  if (value == nullptr) return;
  name_large(contents, symbols_);
  value->contents = std::move(contents);
}

Dim InferContext::fresh(std::string_view stem, Range range, int64_t hint) {
  if (range.lo == range.hi) return range.lo;
  const size_t i = fresh_count_++;
  if (i < node_.symbols.size() && is_named_after(node_.symbols[i], stem)) {
    // A pass has found that no other number will do.
    if (const Range settled = node_.symbols[i].range; settled.lo == settled.hi) return settled.lo;
  } else {
    node_.symbols.resize(i);
    node_.symbols.push_back(*symbols_.fresh(stem, range).as_symbol());
  }
  Symbol& symbol = node_.symbols[i];
  symbol.range = range;
  if (hint > 0) symbol.hint = std::clamp(hint, range.lo, range.hi);
  return Dim::symbol(symbol);
}

void InferContext::drop_stale_symbols() {
  if (node_.symbols.size() > fresh_count_) node_.symbols.resize(fresh_count_);
}

void InferContext::require_equal(const Dim& a, const Dim& b, std::string rule) {
  const auto equal = prove_equal(a, b);
  if (equal == true) return;
  if (equal == false) {
    fail(ErrorKind::Shape, str(rule, ". Got ", a.to_string(), " and ", b.to_string()));
  }
  node_.guards.push_back({Guard::Relation::Equal, a, b, std::move(rule)});
}

void InferContext::require_less_equal(const Dim& a, const Dim& b, std::string rule) {
  const auto greater = prove_less(b, a);
  if (greater == false) return;
  if (greater == true) {
    fail(ErrorKind::Shape, str(rule, ". Got ", a.to_string(), " and ", b.to_string()));
  }
  node_.guards.push_back({Guard::Relation::LessEqual, a, b, std::move(rule)});
}

void InferContext::require_divides(const Dim& divisor, const Dim& dividend, std::string rule) {
  const auto refuse = [&] {
    fail(ErrorKind::Shape, str(rule, ". Got ", dividend.to_string(), " by ", divisor.to_string()));
  };
  if (divisor.is(0)) refuse();
  const Dim remainder = mod(dividend, divisor);
  if (remainder.is(0)) return;
  if (remainder.is_constant()) refuse();
  node_.guards.push_back({Guard::Relation::Divides, divisor, dividend, std::move(rule)});
}

namespace {

constexpr std::string_view kBroadcastRule = "sizes must be equal or 1 to broadcast";

}  // namespace

Dim InferContext::broadcast(const Dim& a, const Dim& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  const auto may_be_one = [](const Dim& d) { return prove_equal(d, 1) != false; };
  std::string rule(kBroadcastRule);
  if (!may_be_one(a) && !may_be_one(b)) {
    require_equal(a, b, std::move(rule));
    return a.is_constant() ? a : b.is_constant() ? b : a;
  }
  if (prove_equal(a, b) != true) node_.guards.push_back({Guard::Relation::Broadcasts, a, b, std::move(rule)});
  if (!may_be_one(a)) return a;
  if (!may_be_one(b)) return b;
  // The operands may be swapped where the guard holds; a fixed order makes equal sizes compare equal.
  return a.to_string() <= b.to_string() ? neo::broadcast(a, b) : neo::broadcast(b, a);
}

Shape InferContext::broadcast(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    if (ia >= 0 && ib >= 0 && a[ia].is_constant() && b[ib].is_constant() && a[ia] != b[ib] && !a[ia].is(1) &&
        !b[ib].is(1)) {
      fail(ErrorKind::Shape, str(kBroadcastRule, ". Got ", a[ia].to_string(), " and ", b[ib].to_string(), " in ",
                                 a.to_string(), " and ", b.to_string()));
    }
    dims.push_back(ia < 0 ? b[ib] : ib < 0 ? a[ia] : broadcast(a[ia], b[ib]));
  }
  return Shape(std::move(dims));
}

void InferContext::fail(ErrorKind kind, const std::string& rule) const {
  neo::fail(kind, node_.op, at_place(node_, rule));
}

void InferContext::check_rank(int input, int rank) {
  if (!has_input(input)) return;
  if (!ranked(input)) {
    required_ranks_[input] = rank;
    return;
  }
  if (shape(input).rank() == rank) return;
  fail(ErrorKind::Shape, str("input ", input, " must have rank ", rank, ". Got the shape ", shape(input).to_string()));
}

int InferContext::required_rank(int input) const {
  const auto it = required_ranks_.find(input);
  return it == required_ranks_.end() ? -1 : it->second;
}

int InferContext::axis(int64_t axis, int rank) const {
  return checked_axis(node_, axis, rank);
}

Tensor& ReferenceContext::output(int i, DType dtype, const Dims& dims) {
  if (dtype == DType::Undefined)
    fail(ErrorKind::Type, "the dtype of a result must be known. Got inputs that are no tensors");
  NEO_ASSERT(i >= 0 && i < output_count(), "output ", i, " - at ", node_.place());
  HostValue& value = outputs_[static_cast<size_t>(i)];
  if (value.kind == HostValue::Kind::Tensor && value.tensor.defined()) {
    NEO_ASSERT(value.tensor.dtype() == dtype, "output ", i, " was given as ", name(value.tensor.dtype()),
               ", computed as ", name(dtype), " - at ", node_.place());
    // Readers may need another shape than the one that a sequence or an optional brings.
    check(value.tensor.dims() == dims, str("output ", i, " must have the shape that is known of it. Got ",
                                           to_string(dims), ", expected ", to_string(value.tensor.dims())));
  } else {
    value = HostValue(Tensor(dtype, dims));
  }
  return value.tensor;
}

std::vector<double> ReferenceContext::doubles(int input) const {
  return load_doubles(this->input(input));
}
std::vector<int64_t> ReferenceContext::ints(int input) const {
  return load_ints(this->input(input));
}

void ReferenceContext::fail(ErrorKind kind, const std::string& rule) const {
  neo::fail(kind, node_.op, at_place(node_, rule));
}

int ReferenceContext::axis(int64_t axis, int rank) const {
  return checked_axis(node_, axis, rank);
}

namespace {

void check_elements(const Tensor& output, size_t count) {
  NEO_ASSERT(output.size() == static_cast<int64_t>(count), "writing ", count, " elements to ",
             to_string(output.dims()));
}

char* element(const Tensor& tensor, int64_t i) {
  return static_cast<char*>(tensor.data()) + i * item_bytes(tensor.dtype());
}

void check_defined(const Tensor& tensor) {
  NEO_CHECK(tensor.defined(), Model, "tensor", "a tensor is required. Got nothing");
}

}  // namespace

void store_doubles(const Tensor& output, std::span<const double> elements) {
  check_elements(output, elements.size());
  if (output.dtype() == DType::Float32) {
    std::transform(elements.begin(), elements.end(), output.as<float>(),
                   [](double x) { return static_cast<float>(x); });
    return;
  }
  for (int64_t i = 0; i < output.size(); ++i) {
    store_double(output.dtype(), element(output, i), elements[static_cast<size_t>(i)]);
  }
}

void store_ints(const Tensor& output, std::span<const int64_t> elements) {
  check_elements(output, elements.size());
  for (int64_t i = 0; i < output.size(); ++i) {
    store_int64(output.dtype(), element(output, i), elements[static_cast<size_t>(i)]);
  }
}

std::vector<double> load_doubles(const Tensor& tensor) {
  check_defined(tensor);
  require_memory(tensor.size() * static_cast<int64_t>(sizeof(double)));
  if (tensor.dtype() == DType::Float32) return {tensor.as<float>(), tensor.as<float>() + tensor.size()};
  std::vector<double> elements(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    elements[static_cast<size_t>(i)] = load_double(tensor.dtype(), element(tensor, i));
  }
  return elements;
}

std::vector<int64_t> load_ints(const Tensor& tensor) {
  check_defined(tensor);
  require_memory(tensor.size() * static_cast<int64_t>(sizeof(int64_t)));
  if (tensor.dtype() == DType::Int64) return {tensor.as<int64_t>(), tensor.as<int64_t>() + tensor.size()};
  std::vector<int64_t> elements(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    elements[static_cast<size_t>(i)] = load_int64(tensor.dtype(), element(tensor, i));
  }
  return elements;
}

void OpRegistry::add(Op op) {
  std::string op_name = op.name;
  const bool added = ops_.emplace(op_name, std::move(op)).second;
  NEO_ASSERT(added, "the operator ", op_name, " is registered twice");
}

const Op* OpRegistry::find(std::string_view op_name) const {
  const auto it = ops_.find(op_name);
  return it == ops_.end() ? nullptr : &it->second;
}

const Op& OpRegistry::get(std::string_view op_name) const {
  const Op* op = find(op_name);
  NEO_CHECK(op != nullptr, Unsupported, op_name, "the operator is not supported");
  return *op;
}

std::vector<const Op*> OpRegistry::all() const {
  std::vector<const Op*> result;
  for (const auto& [op_name, op] : ops_) result.push_back(&op);
  return result;
}

}  // namespace neo
