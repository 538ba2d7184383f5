#include <algorithm>

#include "base/check.h"
#include "routines/gpu/index/families.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/movement/moved.h"
#include "routines/patterns/reduced_axes.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

namespace {

constexpr int kMaxIndexAxes = 6;

Expr zero_of(DType dtype) {
  return is_float(dtype) ? kernel::real(0, {dtype, 1}) : kernel::integer(0, {dtype, 1});
}

Expr as_int64(const Expr& x) {
  return cast(x, DType::Int64);
}

// An index as it is stored, counted from the front: as int32, nothing known of it.
Expr counted(Builder& b, const Expr& stored, const Expr& size) {
  const Expr given = b.let("given", cast(stored, DType::Int64));
  return b.let("index",
               cast(select(given < kernel::integer(0, given->type), given + as_int64(size), given), DType::Int32));
}

kernel::Kernel gather_kernel(DType item, DType index, int lanes, int threads) {
  Builder b("gather");
  const Expr items = b.size("items", 1, kMaxElements);
  const Expr outer = b.size("outer", 1, kMaxElements), size = b.size("size", 1, 1 << 28),
             inner = b.size("inner", 1, 1 << 28);
  const Expr count = b.size("count", 1, 1 << 28), chunks = b.size("chunks", 1, (1 << 28) / lanes);
  const Expr rows = b.size("rows", 1, kMaxElements);
  const Array x = b.input("x", item, outer * size * inner), at = b.input("at", index, count);
  const Array y = b.output("y", item, rows * inner);
  each_item(b, items, threads, [&](const Expr& i) {
    const Expr row = b.let("row", i / chunks), first = b.let("first", i % chunks * lanes);
    const Expr place = b.let("place", row / count);
    const Expr wanted = counted(b, at[row % count], size);
    const auto move = [&](const Expr& column, int n) {
      b.when(
          wanted >= 0 && wanted < size,
          [&] { y.at(row * inner + column, n) = x.at((place * size + wanted) * inner + column, n); },
          [&] {
            const Expr zero = zero_of(item);
            y.at(row * inner + column, n) = n == 1 ? zero : broadcast(zero, n);
          });
    };
    b.when(row < rows && place < outer, [&] {
      if (lanes == 1) return b.when(first < inner, [&] { move(first, 1); });
      b.when(
          first <= inner - lanes, [&] { move(first, lanes); },
          [&] { b.loop("column", first, inner, [&](const Expr& column) { move(column, 1); }); });
    });
  });
  return b.finish();
}

// Sizes of several axes.
std::vector<Expr> sizes(Builder& b, const std::string& name, int rank) {
  std::vector<Expr> all;
  for (int i = 0; i < rank; ++i) all.push_back(b.size(name + std::to_string(i), 1, kMaxElements));
  return all;
}

kernel::Kernel gather_elements_kernel(DType item, DType index, int rank, int axis, int threads) {
  Builder b("gather_elements");
  const Expr items = b.size("items", 1, kMaxElements), elements = b.size("elements", 1, kMaxElements);
  const std::vector<Expr> of_index = sizes(b, "s", rank), of_data = sizes(b, "d", rank);
  const Array x = b.input("x", item, elements), at = b.input("at", index, items), y = b.output("y", item, items);
  each_item(b, items, threads, [&](const Expr& i) {
    std::vector<Expr> place = split_index(b, i, of_index);
    const Expr size = of_data[static_cast<size_t>(axis)];
    const Expr wanted = counted(b, at[i], size);
    place[static_cast<size_t>(axis)] = wanted;
    const Expr from = join_index_unproven(b, place, of_data);
    b.when(
        wanted >= 0 && wanted < size && from >= 0 && from < elements, [&] { y[i] = x[from]; },
        [&] { y[i] = zero_of(item); });
  });
  return b.finish();
}

kernel::Kernel copy_kernel(DType item, int threads) {
  Builder b("index_copy");
  const Expr n = b.size("n", 1, kMaxElements);
  const Array x = b.input("x", item, n), y = b.output("y", item, n);
  each_item(b, n, threads, [&](const Expr& i) { y[i] = x[i]; });
  return b.finish();
}

Expr combined(const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return select(old < update || update != update, update, old);
  if (reduction == "min") return select(update < old || update != update, update, old);
  return update;
}

// Updates of one line along the axis are made in their order, by one thread.
kernel::Kernel scatter_elements_kernel(DType item, DType index, int rank, int axis, const std::string& reduction,
                                       int threads) {
  Builder b("scatter_elements");
  const Expr items = b.size("items", 1, kMaxElements), elements = b.size("elements", 1, kMaxElements),
             updates_count = b.size("updates_count", 1, kMaxElements);
  const std::vector<Expr> of_index = sizes(b, "s", rank), of_data = sizes(b, "d", rank);
  const Array at = b.input("at", index, updates_count), updates = b.input("updates", item, updates_count);
  const Array y = b.inout("y", item, elements);
  each_item(b, items, threads, [&](const Expr& line) {
    const auto a = static_cast<size_t>(axis);
    std::vector<Expr> lines = of_index;
    lines[a] = 1;
    std::vector<Expr> place = split_index(b, line, lines);
    b.loop("j", 0, of_index[a], [&](const Expr& j) {
      place[a] = j;
      const Expr from = join_index_unproven(b, place, of_index);
      b.when(from >= 0 && from < updates_count, [&] {
        const Expr wanted = counted(b, at[from], of_data[a]);
        std::vector<Expr> target = place;
        target[a] = wanted;
        const Expr to = join_index_unproven(b, target, of_data);
        b.when(wanted >= 0 && wanted < of_data[a] && to >= 0 && to < elements, [&] {
          const Expr old = b.let("old", y[to]), update = b.let("update", updates[from]);
          y[to] = combined(reduction, old, update);
        });
      });
    });
  });
  return b.finish();
}

// GatherND and ScatterND: tuples of `depth` indices choose slices of `inner` elements among the first axes of the data,
// behind `batch` axes that both have. With `in_order` a thread makes all updates of one place of the slices.
struct Tuples {
  DType item, index;
  int depth = 1;
  bool scatter = false, in_order = false;
  std::string reduction = "none";
};

kernel::Kernel tuples_kernel(const Tuples& t, int threads) {
  Builder b(t.scatter ? "scatter_nd" : "gather_nd");
  const Expr items = b.size("items", 1, kMaxElements), elements = b.size("elements", 1, kMaxElements);
  const Expr tuples = b.size("tuples", 1, 1 << 28), per_batch = b.size("per_batch", 1, kMaxElements);
  const Expr inner = b.size("inner", 1, kMaxElements);
  const std::vector<Expr> dims = sizes(b, "d", t.depth);
  std::optional<Array> x;
  if (!t.scatter) x = b.input("x", t.item, elements);
  const Array at = b.input("at", t.index, tuples * t.depth);
  std::optional<Array> updates;
  if (t.scatter) updates = b.input("updates", t.item, tuples * inner);
  const Array y = t.scatter ? b.inout("y", t.item, elements) : b.output("y", t.item, tuples * inner);
  // The slice of one tuple; body(its element, whether there is one).
  const auto each = [&](const Expr& tuple, const Expr& column) {
    Expr slice = as_int64(tuple / per_batch);
    Expr inside = kernel::integer(1, kernel::kBool);
    for (int i = 0; i < t.depth; ++i) {
      const Expr size = dims[static_cast<size_t>(i)];
      const Expr wanted = counted(b, at[tuple * t.depth + i], size);
      const Expr fits = wanted >= 0 && wanted < size;
      inside = i == 0 ? fits : inside && fits;
      slice = slice * as_int64(size) + as_int64(wanted);
    }
    const Expr place = b.let("place", cast(slice * as_int64(inner) + as_int64(column), DType::Int32));
    const Expr mine = tuple * inner + column;
    const Expr there = inside && place >= 0 && place < elements;
    if (!t.scatter) {
      b.when(
          there, [&] { y[mine] = (*x)[place]; }, [&] { y[mine] = zero_of(t.item); });
      return;
    }
    b.when(there, [&] {
      const Expr old = b.let("old", y[place]), update = b.let("update", (*updates)[mine]);
      y[place] = combined(t.reduction, old, update);
    });
  };
  each_item(b, items, threads, [&](const Expr& i) {
    if (t.in_order) {
      b.when(i < inner, [&] { b.loop("tuple", 0, tuples, [&](const Expr& tuple) { each(tuple, i); }); });
      return;
    }
    const Expr tuple = b.let("tuple", i / inner), column = b.let("column", i % inner);
    b.when(tuple < tuples, [&] { each(tuple, column); });
  });
  return b.finish();
}

int64_t between(const Dims& dims, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

void add_sizes(KernelLaunch& launch, const Dims& dims) {
  for (const int64_t n : dims) launch.arguments.emplace_back(n);
}

void add_operands(KernelLaunch& launch, std::initializer_list<int> operands) {
  for (const int i : operands) launch.arguments.emplace_back(Operand{i});
}

std::unique_ptr<Program> make_gather(const Node& node, DType item, DType index, const BasicOptions& options) {
  const Shape& shape = node.inputs[0]->shape();
  const auto axis = static_cast<size_t>(axis_from_front(node.int_attr("axis", 0), shape.rank()));
  int lanes = options.lanes;
  const Dims hint = shape.hint_dims();
  while (lanes > 1 && lanes > between(hint, axis + 1, hint.size())) lanes /= 2;
  std::vector<kernel::Kernel> kernels;
  kernels.push_back(gather_kernel(item, index, lanes, options.threads));
  return make_program(std::move(kernels), [axis, lanes](std::span<const Dims> shapes) {
    Launches all;
    if (element_count(shapes[2]) == 0) return all;
    const Dims& dims = shapes[0];
    const int64_t outer = between(dims, 0, axis), inner = between(dims, axis + 1, dims.size());
    const int64_t count = element_count(shapes[1]), chunks = (inner + lanes - 1) / lanes;
    KernelLaunch launch{0, {outer * count * chunks, outer, dims[axis], inner, count, chunks, outer * count}};
    add_operands(launch, {0, 1, 2});
    all.launches.push_back(std::move(launch));
    return all;
  });
}

std::unique_ptr<Program> make_elements(const Node& node, DType item, DType index, const BasicOptions& options) {
  const int rank = node.inputs[0]->shape().rank(), axis = axis_from_front(node.int_attr("axis", 0), rank);
  const bool scatter = node.op != "GatherElements";
  std::vector<kernel::Kernel> kernels;
  if (scatter) kernels.push_back(copy_kernel(item, options.threads));
  kernels.push_back(
      scatter ? scatter_elements_kernel(item, index, rank, axis, node.string_attr("reduction", "none"), options.threads)
              : gather_elements_kernel(item, index, rank, axis, options.threads));
  return make_program(std::move(kernels), [scatter, axis](std::span<const Dims> shapes) {
    Launches all;
    const int64_t elements = element_count(shapes[0]), count = element_count(shapes[1]);
    if (elements == 0) return all;
    if (scatter) all.launches.push_back({0, {elements, Operand{0}, Operand{3}}});
    if (count == 0) return all;
    KernelLaunch launch{scatter ? 1 : 0, {scatter ? count / shapes[1][static_cast<size_t>(axis)] : count, elements}};
    if (scatter) launch.arguments.emplace_back(count);
    add_sizes(launch, shapes[1]);
    add_sizes(launch, shapes[0]);
    if (scatter) {
      add_operands(launch, {1, 2, 3});
    } else {
      add_operands(launch, {0, 1, 2});
    }
    all.launches.push_back(std::move(launch));
    return all;
  });
}

std::unique_ptr<Program> make_tuples(const Node& node, const Tuples& t, const BasicOptions& options) {
  const auto batch = static_cast<size_t>(t.scatter ? 0 : node.int_attr("batch_dims", 0));
  std::vector<kernel::Kernel> kernels;
  if (t.scatter) kernels.push_back(copy_kernel(t.item, options.threads));
  kernels.push_back(tuples_kernel(t, options.threads));
  return make_program(std::move(kernels), [t, batch](std::span<const Dims> shapes) {
    Launches all;
    const Dims& dims = shapes[0];
    const int64_t elements = element_count(dims);
    if (elements == 0) return all;
    if (t.scatter) all.launches.push_back({0, {elements, Operand{0}, Operand{3}}});
    const int64_t tuples = element_count(shapes[1]) / t.depth;
    if (tuples == 0) return all;
    const auto depth = static_cast<size_t>(t.depth);
    const int64_t inner = between(dims, batch + depth, dims.size());
    const int64_t batches = between(dims, 0, batch);
    KernelLaunch launch{t.scatter ? 1 : 0,
                        {t.in_order ? inner : tuples * inner, elements, tuples, tuples / batches, inner}};
    add_sizes(launch, Dims(dims.begin() + static_cast<std::ptrdiff_t>(batch),
                           dims.begin() + static_cast<std::ptrdiff_t>(batch + depth)));
    if (t.scatter) {
      add_operands(launch, {1, 2, 3});
    } else {
      add_operands(launch, {0, 1, 2});
    }
    all.launches.push_back(std::move(launch));
    return all;
  });
}

}  // namespace

std::vector<std::string_view> index_roots() {
  return {"Gather", "GatherElements", "GatherND", "ScatterElements", "Scatter", "ScatterND"};
}

std::optional<Made> read_index(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  for (const Value* v : workload.inputs) {
    if (!v->type.is_tensor() || !v->shape().has_rank()) return not_made(why, "an input has no known rank");
  }
  if (workload.inputs.size() != node.inputs.size()) return not_made(why, "an input is used twice");
  const DType dtype = node.inputs[0]->dtype(), index = node.inputs[1]->dtype();
  if (dtype == DType::String || item_bytes(dtype) > 8) return not_made(why, "its elements are not of fixed size");
  if (index != DType::Int32 && index != DType::Int64) return not_made(why, "its indices are no integers");
  const std::string reduction = node.string_attr("reduction", "none");
  const bool computes = reduction != "none";
  if (computes && dtype != DType::Float32 && dtype != DType::Int32 && dtype != DType::Int64) {
    return not_made(why, "its dtype is not computed with");
  }
  const DType item = computes ? dtype : dtype == DType::Float32 ? dtype : moved_dtype(item_bytes(dtype));
  Made made;
  if (node.op == "Gather") {
    made.program = [=, &node] { return make_gather(node, item, index, options); };
  } else if (node.op == "GatherND" || node.op == "ScatterND") {
    const Shape& shape = node.inputs[1]->shape();
    if (shape.rank() == 0 || !shape[shape.rank() - 1].is_constant())
      return not_made(why, "the length of its tuples is not known");
    const int64_t depth = shape[shape.rank() - 1].value();
    if (depth < 1 || depth > kMaxIndexAxes) return not_made(why, "its tuples are too long");
    const Tuples t{item, index, static_cast<int>(depth), node.op == "ScatterND", computes, reduction};
    made.program = [=, &node] { return make_tuples(node, t, options); };
  } else {
    const int rank = node.inputs[0]->shape().rank();
    if (rank < 1 || rank > kMaxIndexAxes) return not_made(why, "it has too many axes");
    made.program = [=, &node] { return make_elements(node, item, index, options); };
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) made.inputs.push_back(static_cast<int>(i));
  return made;
}

}  // namespace neo::gpu
