#include "ops/einsum.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/budget.h"
#include "ops/attention.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

using Label = EinsumLabel;
using Term = EinsumTerm;
using Equation = EinsumEquation;
constexpr Label kMark = -1;  // "..." before its rank is known

[[noreturn]] void refuse_equation(const Node& node, std::string_view rule) {
  fail(ErrorKind::Model, node.op, str(rule, ". Got \"", node.string_attr("equation", ""), "\" - at ", node.place()));
}

Term parse_term(const Node& node, std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i, 3) == "...") {
      if (std::find(term.begin(), term.end(), kMark) != term.end())
        refuse_equation(node, "a term may have one ellipsis");
      term.push_back(kMark);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term.push_back(c);
    } else {
      refuse_equation(node, "an equation must be made of letters, commas, an ellipsis and an arrow");
    }
  }
  return term;
}

// Replaces the mark by one label per axis of the ellipsis.
void expand_ellipsis(Term& term, int rank) {
  const auto mark = std::find(term.begin(), term.end(), kMark);
  if (mark == term.end()) return;
  Term axes;
  for (int i = rank; i-- > 0;) axes.push_back(kEinsumEllipsis + i);
  term.insert(term.erase(mark), axes.begin(), axes.end());
}

}  // namespace

EinsumEquation parse_einsum(const Node& node, const std::vector<int>& ranks) {
  std::string text = node.string_attr("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  Equation equation;
  for (;;) {
    const size_t comma = left.find(',');
    equation.operands.push_back(parse_term(node, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.operands.size() != ranks.size()) refuse_equation(node, "an equation must have one term per operand");
  int ellipsis = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    Term& term = equation.operands[i];
    const bool marked = std::find(term.begin(), term.end(), kMark) != term.end();
    const int rest = ranks[i] - static_cast<int>(term.size()) + (marked ? 1 : 0);
    if (rest < 0 || (!marked && rest != 0))
      refuse_equation(node, "a term must have one letter per axis of its operand");
    expand_ellipsis(term, rest);
    ellipsis = std::max(ellipsis, rest);
  }
  if (arrow != std::string::npos) {
    equation.output = parse_term(node, std::string_view(text).substr(arrow + 2));
    expand_ellipsis(equation.output, ellipsis);
    return equation;
  }
  std::map<Label, int> uses;
  for (const Term& term : equation.operands) {
    for (const Label label : term) ++uses[label];
  }
  equation.output = {kMark};
  expand_ellipsis(equation.output, ellipsis);
  for (const auto& [label, count] : uses) {
    if (label < kEinsumEllipsis && count == 1) equation.output.push_back(label);
  }
  return equation;
}

namespace {

// Inference

struct LabelDims {
  Equation equation;
  std::map<Label, Dim> sizes;
};

LabelDims infer_labels(InferContext& ctx) {
  std::vector<int> ranks;
  for (int i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.shape(i).rank());
  LabelDims result{parse_einsum(ctx.node(), ranks), {}};
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Term& term = result.equation.operands[static_cast<size_t>(i)];
    for (size_t axis = 0; axis < term.size(); ++axis) {
      const Dim& dim = ctx.shape(i)[static_cast<int>(axis)];
      const auto [found, added] = result.sizes.emplace(term[axis], dim);
      if (added) continue;
      found->second = ctx.broadcast(found->second, dim);
    }
  }
  return result;
}

void infer_einsum(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  bool ranked = true;
  for (int i = 0; i < ctx.input_count(); ++i) {
    check_same_dtype(ctx, 0, i);
    ranked = ranked && ctx.ranked(i);
  }
  if (!ranked) return ctx.set_output(0, ctx.dtype(0), Shape());
  const LabelDims labels = infer_labels(ctx);
  std::vector<Dim> dims;
  for (const Label label : labels.equation.output) {
    const auto found = labels.sizes.find(label);
    if (found == labels.sizes.end()) refuse_equation(ctx.node(), "the result must use letters of the operands");
    dims.push_back(found->second);
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

// References

// The sum over all labels: the output's are the outer loops.
struct Loops {
  Dims dims;                  // of the output's labels, then of the summed ones
  size_t outer = 0;           // how many of them are the output's
  std::vector<Dims> strides;  // by operand
};

Loops plan_loops(const ReferenceContext& ctx) {
  std::vector<int> ranks;
  for (int i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.input(i).rank());
  const Equation equation = parse_einsum(ctx.node(), ranks);
  std::map<Label, int64_t> sizes;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Dims& dims = ctx.input(static_cast<int>(i)).dims();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const Label label = equation.operands[i][axis];
      int64_t& size = sizes.emplace(label, dims[axis]).first->second;
      const bool spread = size == 1 || dims[axis] == 1;
      ctx.check(size == dims[axis] || spread,
                str("axes of one letter must be equal, or of size 1. Got ", size, " and ", dims[axis]));
      if (size == 1) size = dims[axis];
    }
  }
  std::vector<Label> order = equation.output;
  for (const Label label : order) {
    if (sizes.find(label) == sizes.end()) refuse_equation(ctx.node(), "the result must use letters of the operands");
  }
  Loops loops;
  loops.outer = order.size();
  for (const auto& [label, size] : sizes) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (const Label label : order) loops.dims.push_back(sizes[label]);
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Dims& dims = ctx.input(static_cast<int>(i)).dims();
    const Dims dense = dense_strides(dims);
    Dims strides(order.size());
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const auto loop = std::find(order.begin(), order.end(), equation.operands[i][axis]) - order.begin();
      // A letter twice in one term walks the diagonal.
      if (dims[axis] != 1) strides[static_cast<size_t>(loop)] += dense[axis];
    }
    loops.strides.push_back(std::move(strides));
  }
  return loops;
}

template <class T, class Add, class Multiply>
std::vector<T> sum_products(const Loops& loops, const std::vector<std::vector<T>>& operands, const Add& add,
                            const Multiply& multiply) {
  const Dims outer(loops.dims.begin(), loops.dims.begin() + static_cast<int64_t>(loops.outer));
  const Dims summed(loops.dims.begin() + static_cast<int64_t>(loops.outer), loops.dims.end());
  const int64_t terms = element_count(summed);
  auto result = make_scratch<T>(element_count(outer));
  std::vector<int64_t> at(outer.size());
  std::vector<int64_t> start(operands.size());
  std::vector<int64_t> position(operands.size());
  for (T& element : result) {
    for (size_t i = 0; i < operands.size(); ++i) {
      start[i] = 0;
      for (size_t axis = 0; axis < outer.size(); ++axis) start[i] += at[axis] * loops.strides[i][axis];
    }
    std::vector<int64_t> inner(summed.size());
    for (int64_t t = 0; t < terms; ++t) {
      checkpoint();
      T product = 1;
      for (size_t i = 0; i < operands.size(); ++i) {
        int64_t index = start[i];
        for (size_t axis = 0; axis < summed.size(); ++axis) index += inner[axis] * loops.strides[i][loops.outer + axis];
        product = multiply(product, operands[i][static_cast<size_t>(index)]);
      }
      element = add(element, product);
      next_index(inner, summed);
    }
    next_index(at, outer);
  }
  return result;
}

void reference_einsum(ReferenceContext& ctx) {
  const Loops loops = plan_loops(ctx);
  const DType dtype = ctx.input(0).dtype();
  const Dims dims(loops.dims.begin(), loops.dims.begin() + static_cast<int64_t>(loops.outer));
  const Tensor& y = ctx.output(0, dtype, dims);
  if (is_integer(dtype)) {
    std::vector<std::vector<int64_t>> operands;
    for (int i = 0; i < ctx.input_count(); ++i) operands.push_back(ctx.ints(i));
    return store_ints(y, sum_products(loops, operands, wrap_add, wrap_multiply));
  }
  std::vector<std::vector<double>> operands;
  for (int i = 0; i < ctx.input_count(); ++i) operands.push_back(ctx.doubles(i));
  store_doubles(y, sum_products(loops, operands, std::plus<>(), std::multiplies<>()));
}

// Two flops for every combination of the letters.
Work einsum_work(const Node& node) {
  std::vector<int> ranks;
  for (const Value* value : node.inputs) {
    if (!value || !value->shape().has_rank()) return {0, operand_bytes(node)};
    ranks.push_back(value->shape().rank());
  }
  const Equation equation = parse_einsum(node, ranks);
  std::map<Label, Dim> sizes;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    for (size_t axis = 0; axis < equation.operands[i].size(); ++axis) {
      const Dim& dim = node.inputs[i]->shape()[static_cast<int>(axis)];
      const auto found = sizes.emplace(equation.operands[i][axis], dim).first;
      if (found->second.is(1)) found->second = dim;
    }
  }
  Dim flops = 2;
  for (const auto& [label, size] : sizes) flops = flops * size;
  return {flops, operand_bytes(node)};
}

}  // namespace

void add_einsum_ops(OpRegistry& ops) {
  ops.add(
      {.name = "Einsum", .max_inputs = -1, .infer = infer_einsum, .reference = reference_einsum, .work = einsum_work});
}

}  // namespace neo
