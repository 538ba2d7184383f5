#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/pool.h"
#include "ops/sizes.h"

namespace neo {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The elements of a group are folded into one, which `finish` completes.
struct Reduction {
  std::string_view name;
  double initial;
  double (*real)(double sum, double x);
  double (*finish)(double sum, double count);             // null: nothing to do
  int64_t (*whole)(DType dtype, int64_t sum, int64_t x);  // null: integers go by way of double
  bool bools = false;
};

constexpr std::array kReductions = {
    Reduction{"ReduceL1", 0, [](double sum, double x) { return sum + std::fabs(x); }, nullptr,
              [](DType dtype, int64_t sum, int64_t x) { return wrap_add(sum, whole_abs(dtype, x)); }},
    Reduction{"ReduceL2", 0, [](double sum, double x) { return sum + x * x; },
              [](double sum, double) { return std::sqrt(sum); }, nullptr},
    Reduction{"ReduceLogSum", 0, [](double sum, double x) { return sum + x; },
              [](double sum, double) { return std::log(sum); }, nullptr},
    Reduction{"ReduceMax", -kInfinity, [](double best, double x) { return std::isnan(best) || best > x ? best : x; },
              nullptr, [](DType dtype, int64_t best, int64_t x) { return int_less(dtype, best, x) ? x : best; }, true},
    Reduction{"ReduceMean", 0, [](double sum, double x) { return sum + x; },
              [](double sum, double count) { return sum / count; }, nullptr},
    Reduction{"ReduceMin", kInfinity, [](double best, double x) { return std::isnan(best) || best < x ? best : x; },
              nullptr, [](DType dtype, int64_t best, int64_t x) { return int_less(dtype, x, best) ? x : best; }, true},
    Reduction{"ReduceProd", 1, [](double product, double x) { return product * x; }, nullptr,
              [](DType, int64_t product, int64_t x) { return wrap_multiply(product, x); }},
    Reduction{"ReduceSum", 0, [](double sum, double x) { return sum + x; }, nullptr,
              [](DType, int64_t sum, int64_t x) { return wrap_add(sum, x); }},
    Reduction{"ReduceSumSquare", 0, [](double sum, double x) { return sum + x * x; }, nullptr,
              [](DType, int64_t sum, int64_t x) { return wrap_add(sum, wrap_multiply(x, x)); }},
};

const Reduction& get_reduction(const Node& node) {
  const auto* found = std::find_if(kReductions.begin(), kReductions.end(),
                                   [&](const Reduction& reduction) { return reduction.name == node.op; });
  NEO_ASSERT(found != kReductions.end(), node.op);
  return *found;
}

// The value from which an integer reduction begins.
int64_t whole_initial(const Reduction& reduction, DType dtype) {
  if (std::isfinite(reduction.initial)) return static_cast<int64_t>(reduction.initial);
  if (dtype == DType::Bool) return reduction.initial > 0 ? 1 : 0;
  if (reduction.initial < 0) return integer_min(dtype);
  return dtype == DType::UInt64 ? -1 : integer_max(dtype);
}

// Which axes of an input of `rank` a list names; empty: all or none, as the node says.
std::vector<bool> reduced_axes(const Node& node, const std::vector<int64_t>& axes, int rank) {
  if (axes.empty()) {
    const bool all = node.int_attr("noop_with_empty_axes", 0) == 0;
    return std::vector<bool>(static_cast<size_t>(rank), all);
  }
  std::vector<bool> reduced(static_cast<size_t>(rank));
  for (const int64_t axis : axes) {
    NEO_CHECK(axis >= -rank && axis < rank, Model, node.op, "an axis must lie inside the rank. Got ", axis,
              ", expected ", -rank, " to ", rank - 1, " - at ", node.place());
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

bool keeps_dims(const Node& node) {
  return node.int_attr("keepdims", 1) != 0;
}

// Inference

// The shape when the axes are known only at run time.
Shape unknown_reduced_shape(InferContext& ctx) {
  const int rank = ctx.shape(0).rank();
  if (keeps_dims(ctx.node())) return Shape(fresh_dims(ctx, rank, "reduced"));
  const auto listed = constant_length(ctx, 1);
  if (!listed || *listed == 0 || *listed > rank) return Shape();
  return Shape(fresh_dims(ctx, rank - *listed, "reduced"));
}

std::optional<Dim> fold_sizes(std::string_view op, const Dim& a, const Dim& b) {
  if (op == "ReduceProd") return a * b;
  if (op == "ReduceSum") return a + b;
  if (op == "ReduceMax") return larger(a, b);
  if (op == "ReduceMin") return smaller(a, b);
  return std::nullopt;
}

// The product, sum or bound of the elements of a shape.
void infer_reduced_contents(InferContext& ctx) {
  const auto contents = shape_contents(ctx, 0);
  const std::string_view op = ctx.node().op;
  const DType dtype = ctx.dtype(0);
  if (dtype != DType::Int64 && dtype != DType::Int32) return;
  if (!contents || contents->empty() || !fold_sizes(op, 1, 1)) return;
  Dim result = contents->front();
  try {
    for (size_t i = 1; i < contents->size(); ++i) result = *fold_sizes(op, result, (*contents)[i]);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Shape) throw;
    return;  // too large for a size, but fine for an integer that wraps
  }
  const bool wraps =
      result.is_constant() && (result.value() < integer_min(dtype) || result.value() > integer_max(dtype));
  if (!wraps) ctx.set_contents(0, {result});
}

void infer_reduce(InferContext& ctx) {
  const bool bools = ctx.node().op == "ReduceMax" || ctx.node().op == "ReduceMin";
  if (!bools || ctx.dtype(0) != DType::Bool) check_dtype(ctx, 0, DTypeClass::Number);
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>{};
  if (ctx.has_input(1)) axes = ctx.constant_ints(1);
  if (!axes) return ctx.set_output(0, ctx.dtype(0), unknown_reduced_shape(ctx));
  const Shape& x = ctx.shape(0);
  const auto reduced = reduced_axes(ctx.node(), *axes, x.rank());
  std::vector<Dim> dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)]) {
      dims.push_back(x[axis]);
    } else if (keeps_dims(ctx.node())) {
      dims.emplace_back(1);
    }
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  if (x.rank() == 1 && reduced[0]) infer_reduced_contents(ctx);
}

// References

// The groups that a reduction folds.
struct ReducedGroups {
  std::vector<int64_t> group;  // of every element
  int64_t count = 0;           // of groups
  double size = 0;             // of one group
  Dims output;
};

ReducedGroups read_groups(const ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const auto axes = ctx.has_input(1) ? ctx.ints(1) : std::vector<int64_t>{};
  const auto reduced = reduced_axes(ctx.node(), axes, static_cast<int>(dims.size()));
  Dims kept = dims;
  ReducedGroups groups;
  int64_t size = 1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (reduced[axis]) {
      kept[axis] = 1;
      size *= dims[axis];
    }
    if (!reduced[axis] || keeps_dims(ctx.node())) groups.output.push_back(kept[axis]);
  }
  groups.count = element_count(kept);
  groups.size = static_cast<double>(size);
  if (element_count(dims) > 0) groups.group = broadcast_indices(ctx, kept, dims);
  return groups;
}

// The means of integers, rounded towards zero, by quotients and remainders: sums may leave 64 bits.
template <class T>
std::vector<int64_t> whole_means(const std::vector<int64_t>& x, const ReducedGroups& groups) {
  const auto size = static_cast<T>(groups.size);
  std::vector<T> quotient(static_cast<size_t>(groups.count)), rest(quotient.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto element = static_cast<T>(x[i]);
    const auto group = static_cast<size_t>(groups.group[i]);
    quotient[group] += element / size;
    rest[group] += element % size;
    quotient[group] += rest[group] / size;
    rest[group] %= size;
  }
  std::vector<int64_t> means(quotient.size());
  for (size_t i = 0; i < means.size(); ++i) {
    const T other_sign = quotient[i] > 0 && rest[i] < 0 ? 1 : 0, own_sign = rest[i] > 0 && quotient[i] + 1 <= 0 ? 1 : 0;
    means[i] = static_cast<int64_t>(quotient[i] - other_sign + own_sign);
  }
  return means;
}

using Wide = unsigned __int128;

// The whole root of a number, rounded down.
uint64_t whole_root(Wide x) {
  if (x == 0) return 0;
  constexpr double kEnd = 18446744073709549568.0;  // the largest double below 2^64
  Wide root = static_cast<uint64_t>(std::min(std::sqrt(static_cast<double>(x)), kEnd));
  root = (root + x / root) / 2;  // a step of Newton's: 53 bits become 64
  while (root >> 64 || root * root > x) --root;
  while (root + 1 <= std::numeric_limits<uint64_t>::max() && (root + 1) * (root + 1) <= x) ++root;
  return static_cast<uint64_t>(root);
}

// The lengths of vectors of integers, rounded down; where the dtype does not hold one, its largest number.
std::vector<int64_t> whole_lengths(DType dtype, const std::vector<int64_t>& x, const ReducedGroups& groups) {
  std::vector<Wide> sums(static_cast<size_t>(groups.count));
  for (size_t i = 0; i < x.size(); ++i) {
    const bool is_negative = dtype != DType::UInt64 && x[i] < 0;
    const Wide size = is_negative ? -static_cast<uint64_t>(x[i]) : static_cast<uint64_t>(x[i]);
    Wide& sum = sums[static_cast<size_t>(groups.group[i])];
    if (__builtin_add_overflow(sum, size * size, &sum)) sum = ~Wide{0};
  }
  const uint64_t largest =
      dtype == DType::UInt64 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(integer_max(dtype));
  std::vector<int64_t> lengths;
  for (const Wide sum : sums) lengths.push_back(static_cast<int64_t>(std::min(whole_root(sum), largest)));
  return lengths;
}

void reference_reduce(ReferenceContext& ctx) {
  const Reduction& reduction = get_reduction(ctx.node());
  const DType dtype = ctx.input(0).dtype();
  const ReducedGroups groups = read_groups(ctx);
  const Tensor& y = ctx.output(0, dtype, groups.output);
  const auto count = static_cast<size_t>(groups.count);
  if (reduction.name == "ReduceMean" && is_integer(dtype)) {
    const auto x = ctx.ints(0);
    return store_ints(y, dtype == DType::UInt64 ? whole_means<uint64_t>(x, groups) : whole_means<int64_t>(x, groups));
  }
  if (reduction.name == "ReduceL2" && is_integer(dtype))
    return store_ints(y, whole_lengths(dtype, ctx.ints(0), groups));
  if (reduction.whole && !is_float(dtype)) {
    const auto x = ctx.ints(0);
    std::vector<int64_t> result(count, whole_initial(reduction, dtype));
    for (size_t i = 0; i < x.size(); ++i) {
      int64_t& sum = result[static_cast<size_t>(groups.group[i])];
      sum = reduction.whole(dtype, sum, x[i]);
    }
    return store_ints(y, result);
  }
  const auto x = ctx.doubles(0);
  std::vector<double> result(count, reduction.initial);
  for (size_t i = 0; i < x.size(); ++i) {
    double& sum = result[static_cast<size_t>(groups.group[i])];
    sum = reduction.real(sum, x[i]);
  }
  if (reduction.finish) {
    for (double& sum : result) sum = reduction.finish(sum, groups.size);
  }
  store_doubles(y, result);
}

void reference_reduce_log_sum_exp(ReferenceContext& ctx) {
  const ReducedGroups groups = read_groups(ctx);
  const auto x = ctx.doubles(0);
  auto largest = make_scratch<double>(groups.count, -kInfinity);
  for (size_t i = 0; i < x.size(); ++i) {
    double& best = largest[static_cast<size_t>(groups.group[i])];
    best = std::isnan(best) || best > x[i] ? best : x[i];
  }
  std::vector<double> sum(largest.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto group = static_cast<size_t>(groups.group[i]);
    if (std::isfinite(largest[group])) sum[group] += std::exp(x[i] - largest[group]);
  }
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] = std::isfinite(largest[i]) ? largest[i] + std::log(sum[i]) : largest[i];
  store_doubles(ctx.output(0, ctx.input(0).dtype(), groups.output), sum);
}

// ArgMax and ArgMin

void infer_arg(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::Int64, Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), static_cast<int>(dims.size()));
  ctx.require_less_equal(1, dims[static_cast<size_t>(axis)], "the axis must not be empty");
  if (keeps_dims(ctx.node())) {
    dims[static_cast<size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  ctx.set_output(0, DType::Int64, Shape(std::move(dims)));
}

template <class T, class Better>
std::vector<int64_t> best_positions(const std::vector<T>& x, const AxisView& view, bool last, const Better& better) {
  auto positions = make_scratch<int64_t>(view.lines());
  for (int64_t line = 0; line < view.lines(); ++line) {
    checkpoint();
    const T* elements = x.data() + view.start(line);
    int64_t best = 0;
    for (int64_t i = 1; i < view.size; ++i) {
      const T& candidate = elements[i * view.inner];
      const T& current = elements[best * view.inner];
      if (better(candidate, current) || (last && !better(current, candidate))) best = i;
    }
    positions[static_cast<size_t>(line)] = best;
  }
  return positions;
}

void reference_arg(ReferenceContext& ctx) {
  Dims dims = ctx.input(0).dims();
  const DType dtype = ctx.input(0).dtype();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), static_cast<int>(dims.size()));
  const AxisView view(dims, axis);
  ctx.check(view.size > 0, str("the axis must not be empty. Got ", to_string(dims)));
  if (keeps_dims(ctx.node())) {
    dims[static_cast<size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  const bool last = ctx.node().int_attr("select_last_index", 0) != 0;
  const bool largest = ctx.node().op == "ArgMax";
  const Tensor& y = ctx.output(0, DType::Int64, dims);
  if (is_integer(dtype)) {
    return store_ints(y, best_positions(ctx.ints(0), view, last, [=](int64_t a, int64_t b) {
                        return largest ? int_less(dtype, b, a) : int_less(dtype, a, b);
                      }));
  }
  store_ints(y,
             best_positions(ctx.doubles(0), view, last, [=](double a, double b) { return largest ? a > b : a < b; }));
}

}  // namespace

void add_reduce_ops(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto reference) {
    ops.add({.name = std::string(name),
             .max_inputs = 2,
             .infer = infer_reduce,
             .reference = reference,
             .work = input_work,
             .shape_inputs = {1}});
  };
  for (const Reduction& reduction : kReductions) add(reduction.name, reference_reduce);
  add("ReduceLogSumExp", reference_reduce_log_sum_exp);
  for (const char* name : {"ArgMax", "ArgMin"}) {
    ops.add({.name = name, .infer = infer_arg, .reference = reference_arg, .work = input_work});
  }
}

}  // namespace neo
