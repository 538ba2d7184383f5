#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/function_ref.h"
#include "ops/elements.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/reduce/families.h"
#include "routines/gpu/reduce/rows.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_global_pool(const Node& node) {
  return node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool";
}

// How one operator reduces.
struct Rule {
  double initial = 0;
  Expr (*map)(const Expr&) = nullptr;  // null: the element itself
  Expr (*combine)(const Expr&, const Expr&) = nullptr;
  bool integers = false;
};

const std::map<std::string_view, Rule>& rules() {
  static const auto add = [](const Expr& a, const Expr& b) { return a + b; };
  static const auto square = [](const Expr& x) { return x * x; };
  static const auto magnitude = [](const Expr& x) { return call(Op::Abs, x); };
  static const auto largest = [](const Expr& a, const Expr& b) { return max_nan(a, b); };
  static const std::map<std::string_view, Rule> table = {
      {"ReduceSum", {0, nullptr, add, true}},
      {"ReduceMean", {0, nullptr, add}},
      {"GlobalAveragePool", {0, nullptr, add}},
      {"ReduceMax", {-kInfinity, nullptr, largest, true}},
      {"GlobalMaxPool", {-kInfinity, nullptr, largest}},
      {"ReduceMin", {kInfinity, nullptr, [](const Expr& a, const Expr& b) { return min_nan(a, b); }, true}},
      {"ReduceProd", {1, nullptr, [](const Expr& a, const Expr& b) { return a * b; }, true}},
      {"ReduceL1", {0, magnitude, add}},
      {"ReduceL2", {0, square, add}},
      {"ReduceSumSquare", {0, square, add}},
      {"ReduceLogSum", {0, nullptr, add}},
  };
  return table;
}

Expr initial_of(const Rule& rule, DType dtype) {
  if (is_float(dtype)) return kernel::real(rule.initial, {dtype, 1});
  const int64_t value = rule.initial == kInfinity    ? integer_max(dtype)
                        : rule.initial == -kInfinity ? integer_min(dtype)
                                                     : static_cast<int64_t>(rule.initial);
  return kernel::integer(value, {dtype, 1});
}

// A reduction by a function that takes all elements together and one that makes a number beside them.
struct Reducer {
  std::function<Expr(const Expr& initial, FunctionRef<Expr(const Expr&)> map, Walk::Combine)> reduce;
  std::function<Expr(const Expr&)> beside;
};

Expr reduced(Builder& b, const std::string& op, DType dtype, const Expr& count, const Reducer& over) {
  const auto itself = [](const Expr& x) { return x; };
  if (op == "ReduceLogSumExp") {
    const Rule& most = rules().at("ReduceMax");
    const Expr top = over.reduce(initial_of(most, dtype), itself, most.combine);
    const Expr finite =
        b.let("top", select(top == over.beside(kernel::real(-kInfinity)), over.beside(kernel::real(0)), top));
    const auto in = [&](const Expr& x) {
      return x->type.lanes == finite->type.lanes ? finite : broadcast(finite, x->type.lanes);
    };
    const Expr sum = over.reduce(
        kernel::real(0), [&](const Expr& x) { return call(Op::Exp, x - in(x)); },
        [](const Expr& a, const Expr& c) { return a + c; });
    return finite + call(Op::Log, sum);
  }
  const Rule& rule = rules().at(op);
  const Expr all = over.reduce(
      initial_of(rule, dtype), [&](const Expr& x) { return rule.map ? rule.map(x) : x; }, rule.combine);
  if (op == "ReduceMean" || op == "GlobalAveragePool") return all / over.beside(cast(count, DType::Float32));
  if (op == "ReduceL2") return call(Op::Sqrt, all);
  if (op == "ReduceLogSum") return call(Op::Log, all);
  return all;
}

kernel::Kernel reduce_kernel(const std::string& op, const RowForm& form, const RowSchedule& schedule) {
  RowKernel k("reduce_" + op, form, schedule);
  Builder& b = k.builder();
  const Array y = b.output("y", form.dtype, form.is_last ? k.outer : k.outer * k.inner);
  return k.write([&](Walk& walk) {
    const Reducer over{[&](const Expr& initial, FunctionRef<Expr(const Expr&)> map, Walk::Combine combine) {
                         return walk.reduce(
                             initial, [&](const Expr& x, const Expr&) { return map(x); }, combine);
                       },
                       [&](const Expr& x) { return walk.rows() > 1 ? broadcast(x, walk.rows()) : x; }};
    const Expr result = reduced(b, op, form.dtype, walk.along, over);
    walk.once([&] { y.at(walk.result, walk.rows()) = result; });
  });
}

// Axes that are no neighbours. Neighbours of one kind count as one axis.
struct MixedAxes {
  std::vector<std::vector<int>> groups;
  std::vector<bool> is_reduced;

  MixedAxes(const std::vector<int>& axes, int rank) {
    for (int axis = 0; axis < rank; ++axis) {
      const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
      if (is_reduced.empty() || is_reduced.back() != reduced) {
        groups.emplace_back();
        is_reduced.push_back(reduced);
      }
      groups.back().push_back(axis);
    }
  }
};

kernel::Kernel mixed_kernel(const std::string& op, DType dtype, const MixedAxes& axes, int threads) {
  Builder b("reduce_mixed_" + op);
  const Expr items = b.size("items", 1, kMaxElements), elements = b.size("elements", 0, kMaxElements);
  const Expr along = b.size("along", 0, kMaxElements);
  std::vector<Expr> sizes, strides, kept;
  for (size_t i = 0; i < axes.groups.size(); ++i) {
    const std::string at = std::to_string(i);
    sizes.push_back(b.size("n" + at, axes.is_reduced[i] ? 0 : 1, kMaxElements));
    strides.push_back(b.size("s" + at, 0, kMaxElements));
    if (!axes.is_reduced[i]) kept.push_back(sizes.back());
  }
  const Array x = b.input("x", dtype, elements), y = b.output("y", dtype, items);
  const auto opaque = [&](const Expr& value) {
    const Array held = b.registers("held", kernel::kInt, 1);
    held[0] = value;
    return b.let("place", held[0]);
  };
  each_item(b, items, threads, [&](const Expr& item) {
    const std::vector<Expr> place = split_index(b, item, kept);
    Expr start = 0;
    size_t next = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!axes.is_reduced[i]) start = start + place[next++] * strides[i];
    }
    start = opaque(start);
    const Reducer over{[&](const Expr& initial, FunctionRef<Expr(const Expr&)> map, Walk::Combine combine) {
                         const Array sum = b.registers("sum", initial->type, 1);
                         sum[0] = initial;
                         const std::function<void(size_t, const Expr&)> walk = [&](size_t i, const Expr& from) {
                           if (i == sizes.size()) {
                             b.when(from >= 0 && from < elements, [&] {
                               const Expr one = b.let("x", x[from]);
                               sum[0] = combine(sum[0], map(one));
                             });
                             return;
                           }
                           if (!axes.is_reduced[i]) return walk(i + 1, from);
                           b.loop("i", 0, sizes[i],
                                  [&](const Expr& at) { walk(i + 1, opaque(from + at * strides[i])); });
                         };
                         walk(0, start);
                         return b.let("all", sum[0]);
                       },
                       [](const Expr& one) { return one; }};
    y[item] = reduced(b, op, dtype, along, over);
  });
  return b.finish();
}

Launches mixed_launches(const MixedAxes& axes, std::span<const Dims> shapes) {
  Launches all;
  if (element_count(shapes[1]) == 0) return all;
  std::vector<int64_t> sizes;
  int64_t along = 1;
  for (size_t i = 0; i < axes.groups.size(); ++i) {
    int64_t size = 1;
    for (const int axis : axes.groups[i]) size *= shapes[0][static_cast<size_t>(axis)];
    if (axes.is_reduced[i]) along *= size;
    sizes.push_back(size);
  }
  KernelLaunch launch{0, {element_count(shapes[1]), element_count(shapes[0]), along}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t stride = 1;
    for (size_t j = i + 1; j < sizes.size(); ++j) stride *= sizes[j];
    launch.arguments.insert(launch.arguments.end(), {sizes[i], stride});
  }
  launch.arguments.insert(launch.arguments.end(), {Operand{0}, Operand{1}});
  all.launches.push_back(std::move(launch));
  return all;
}

kernel::Kernel arg_kernel(const Node& node, const RowForm& form, const RowSchedule& schedule) {
  const bool largest = node.op == "ArgMax", last = node.int_attr("select_last_index", 0) != 0;
  RowKernel k(largest ? "reduce_argmax" : "reduce_argmin", form, schedule);
  Builder& b = k.builder();
  const Array y = b.output("y", DType::Int64, form.is_last ? k.outer : k.outer * k.inner);
  return k.write([&](Walk& walk) {
    const Array best = b.registers("best", {form.dtype, 1}, 1), place = b.registers("place", kernel::kInt, 1);
    place[0] = -1;
    best[0] = walk.number(0, form.dtype);
    walk.each_in_order([&](const Expr& x, const Expr& j) {
      const Expr a = largest ? Expr(best[0]) : x, c = largest ? x : Expr(best[0]);
      // Better than the best; with `last`, not worse.
      b.when(j == 0 || (last ? !(c < a) && x == x && best[0] == best[0] : a < c), [&] {
        best[0] = x;
        place[0] = j;
      });
    });
    y[walk.result] = cast(place[0], DType::Int64);
  });
}

}  // namespace

std::vector<std::string_view> reduce_roots() {
  std::vector<std::string_view> ops = {"ArgMax", "ArgMin", "ReduceLogSumExp"};
  for (const auto& [op, rule] : rules()) ops.push_back(op);
  return ops;
}

std::optional<Made> read_reduce(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  const Value *x = node.inputs.front(), *y = workload.outputs.front();
  if (!x->type.is_tensor() || !x->shape().has_rank() || !y->shape().has_rank())
    return not_made(why, "its rank is not known");
  const bool arg = node.op == "ArgMax" || node.op == "ArgMin";
  const auto rule = rules().find(node.op);
  const bool integers = arg || (rule != rules().end() && rule->second.integers);
  if (x->dtype() != DType::Float32 && !(integers && (x->dtype() == DType::Int32 || x->dtype() == DType::Int64))) {
    return not_made(why, "its dtype is not reduced");
  }
  const auto axes = reduced_axes(node);
  if (!axes) return not_made(why, "the axes are not known");
  const int rank = x->shape().rank();
  const bool blocked = options.together != 1;
  if (blocked && (!is_global_pool(node) || !x->shape()[1].is_constant() || x->shape()[1].value() < 2)) {
    return not_made(why, "it reduces plain arrays");
  }
  const auto run = reduced_run(node);
  if (!run) {
    Made made;
    made.inputs = {0};
    made.program = [&node, dtype = x->dtype(), mixed = MixedAxes(*axes, rank), threads = options.threads] {
      std::vector<kernel::Kernel> kernels;
      kernels.push_back(mixed_kernel(node.op, dtype, mixed, threads));
      return make_program(std::move(kernels),
                          [mixed](std::span<const Dims> shapes) { return mixed_launches(mixed, shapes); });
    };
    return made;
  }
  RowForm form;
  form.is_last = run->last == rank - 1 && !blocked;
  form.dtype = x->dtype();
  const Layout layout = channels_layout(rank, blocked ? channels_block(options.together, x->shape()[1].value()) : 1);
  RowSchedule schedule = row_schedule(form, row_sizes(layout.physical_dims(x->shape().hint_dims()), *run), options);
  if (arg) schedule.lanes = schedule.together = 1;
  Made made;
  made.inputs = {0};
  made.layouts = {channels_layout(rank, options.together), channels_layout(y->shape().rank(), options.together)};
  const auto launches = [=, run = *run](std::span<const Dims> shapes) {
    const RowSizes s = row_sizes(layout.physical_dims(shapes[0]), run);
    Launches all;
    if (s.outer * s.inner == 0) return all;
    KernelLaunch launch{0, row_arguments(form, schedule, s.outer, s.along, s.inner)};
    launch.arguments.emplace_back(Operand{1});
    all.launches.push_back(std::move(launch));
    return all;
  };
  made.program = [=, &node] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(arg ? arg_kernel(node, form, schedule) : reduce_kernel(node.op, form, schedule));
    return make_program(std::move(kernels), launches);
  };
  return made;
}

}  // namespace neo::gpu
