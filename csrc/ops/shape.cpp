#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

std::string quoted(const Shape& shape) {
  return shape.to_string();
}

// Keeps known elements across operators that only change the dims.
void pass_contents(InferContext& ctx, const Shape& result) {
  if (!result.is_static()) return;
  if (auto contents = tensor_contents(ctx, 0)) ctx.set_contents(0, std::move(*contents));
}

void set_view(InferContext& ctx, std::vector<Dim> dims) {
  const Shape result(std::move(dims));
  ctx.set_output(0, ctx.dtype(0), result);
  pass_contents(ctx, result);
}

// Shape

std::pair<int, int> shape_interval(const Node& node, int rank) {
  const auto clamp = [rank](int64_t at) {
    return static_cast<int>(std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank));
  };
  const int begin = clamp(node.int_attr("start", 0));
  return {begin, std::max(begin, clamp(node.int_attr("end", rank)))};
}

void infer_shape(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::Int64, Shape({ctx.fresh("rank")}));
  const auto& dims = ctx.shape(0).dims();
  const auto [begin, end] = shape_interval(ctx.node(), ctx.shape(0).rank());
  ctx.set_output(0, DType::Int64, Shape::of({end - begin}));
  ctx.set_contents(0, {dims.begin() + begin, dims.begin() + end});
}

void reference_shape(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  const auto [begin, end] = shape_interval(ctx.node(), ctx.input(0).rank());
  store_ints(ctx.output(0, DType::Int64, {end - begin}),
             std::span(dims).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

void infer_size(InferContext& ctx) {
  ctx.set_output(0, DType::Int64, Shape::of({}));
  if (ctx.ranked(0)) ctx.set_contents(0, {ctx.shape(0).element_count()});
}

void reference_size(ReferenceContext& ctx) {
  const int64_t size = ctx.input(0).size();
  store_ints(ctx.output(0, DType::Int64, {}), std::span(&size, 1));
}

// Reshape

constexpr std::string_view kReshapeRule = "the new shape must have as many elements as the input";

void infer_reshape(InferContext& ctx) {
  const bool allow_zero = ctx.node().int_attr("allowzero", 0) != 0;
  const auto target = shape_contents(ctx, 1);
  if (!target) {
    const auto rank = constant_length(ctx, 1);
    return ctx.set_output(0, ctx.dtype(0), rank ? Shape(fresh_dims(ctx, *rank, "reshape")) : Shape());
  }
  std::vector<Dim> dims = *target;
  int solved = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is(-1)) {
      ctx.check(solved < 0, "at most one size may be -1. Got two");
      solved = static_cast<int>(i);
    } else if (dims[i].is(0) && !allow_zero) {
      if (ctx.ranked(0)) {
        ctx.check(static_cast<int>(i) < ctx.shape(0).rank(),
                  str("a size of 0 copies the input's size on that axis. Got axis ", i, " of ", quoted(ctx.shape(0))));
        dims[i] = ctx.shape(0)[static_cast<int>(i)];
      } else {
        dims[i] = ctx.fresh("reshape");
      }
    } else {
      ctx.require_less_equal(0, dims[i], "a size must not be negative");
    }
  }
  if (!ctx.ranked(0)) {
    if (solved >= 0) dims[static_cast<size_t>(solved)] = ctx.fresh("reshape");
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  if (solved < 0) {
    const Shape result(dims);
    ctx.require_equal(ctx.shape(0).element_count(), result.element_count(), std::string(kReshapeRule));
    return set_view(ctx, std::move(dims));
  }
  if (allow_zero) {
    for (const Dim& dim : dims) ctx.check(!dim.is(0), "a shape with allowzero must not hold both 0 and -1");
  }
  // Axes that both sides have cancel, so that no division is left for them.
  std::vector<Dim> rest = ctx.shape(0).dims();
  Dim known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int>(i) == solved) continue;
    const auto same = std::find(rest.begin(), rest.end(), dims[i]);
    if (same != rest.end()) {
      rest.erase(same);
    } else {
      known = known * dims[i];
    }
  }
  const Dim total = product(rest);
  if (known.is(0)) {
    ctx.require_equal(total, 0, std::string(kReshapeRule));
    dims[static_cast<size_t>(solved)] = 0;
  } else {
    if (!known.is(1)) ctx.require_divides(known, total, std::string(kReshapeRule));
    dims[static_cast<size_t>(solved)] = known.is(1) ? total : floordiv(total, known);
  }
  set_view(ctx, std::move(dims));
}

void reference_reshape(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool allow_zero = ctx.node().int_attr("allowzero", 0) != 0;
  Dims dims = ctx.ints(1);
  int64_t known = 1;
  int64_t total = x.size();
  int solved = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      ctx.check(solved < 0, "at most one size may be -1. Got two");
      solved = static_cast<int>(i);
      continue;
    }
    if (dims[i] == 0 && !allow_zero) {
      ctx.check(static_cast<int>(i) < x.rank(),
                str("a size of 0 copies the input's size on that axis. Got axis ", i, " of ", to_string(x.dims())));
      dims[i] = x.dims()[i];
    }
    ctx.check(dims[i] >= 0, str("a size must not be negative, beside one -1. Got ", to_string(dims)));
  }
  const auto multiply = [&](int64_t size) {
    ctx.check(!__builtin_mul_overflow(known, size, &known),
              str(kReshapeRule, ". Got ", to_string(x.dims()), ", expected ", to_string(dims)));
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int>(i) != solved) multiply(dims[i]);
  }
  if (solved >= 0) {
    if (known == 0) {
      // Zero sizes that both sides share leave the product of the input's other axes.
      Dims rest = x.dims();
      known = 1;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (static_cast<int>(i) == solved) continue;
        const auto same = std::find(rest.begin(), rest.end(), dims[i]);
        if (same != rest.end()) {
          rest.erase(same);
        } else {
          multiply(dims[i]);
        }
      }
      total = count_between(rest, 0, static_cast<int>(rest.size()));
    }
    ctx.check(known == 0 ? total == 0 : total % known == 0,
              str(kReshapeRule, ". Got ", x.size(), " elements, expected a multiple of ", known));
    dims[static_cast<size_t>(solved)] = known == 0 ? 0 : total / known;
  }
  ctx.check(element_count(dims) == x.size(),
            str(kReshapeRule, ". Got ", to_string(x.dims()), ", expected ", to_string(dims)));
  copy_tensor(x, ctx.output(0, x.dtype(), dims));
}

// Flatten

int flatten_axis(const Node& node, int rank) {
  const int64_t axis = node.int_attr("axis", 1);
  NEO_CHECK(axis >= -rank && axis <= rank, Model, node.op, "axis must lie inside the rank. Got ", axis, ", expected ",
            -rank, " to ", rank, " - at ", node.place());
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void infer_flatten(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape(fresh_dims(ctx, 2, "flatten")));
  const std::span<const Dim> dims = ctx.shape(0).dims();
  const auto axis = static_cast<size_t>(flatten_axis(ctx.node(), ctx.shape(0).rank()));
  set_view(ctx, {product(dims.first(axis)), product(dims.subspan(axis))});
}

void reference_flatten(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int axis = flatten_axis(ctx.node(), x.rank());
  copy_tensor(x, ctx.output(0, x.dtype(), {count_between(x.dims(), 0, axis), count_between(x.dims(), axis, x.rank())}));
}

// Squeeze, Unsqueeze

template <class Context>
std::vector<bool> marked_axes(const Context& ctx, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> marked(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) marked[static_cast<size_t>(ctx.axis(axis, rank))] = true;
  return marked;
}

// The places of new axes among all.
template <class Context>
std::vector<bool> new_axes(const Context& ctx, const std::vector<int64_t>& axes, int rank) {
  auto marked = marked_axes(ctx, axes, rank + static_cast<int>(axes.size()));
  if (std::count(marked.begin(), marked.end(), true) != std::ssize(axes))
    ctx.fail(ErrorKind::Model, str("axes must not repeat. Got ", to_string(axes)));
  return marked;
}

// Without axes, and as ONNX Runtime has it with none in them, every axis of size 1 goes.
void infer_squeeze(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const auto& dims = ctx.shape(0).dims();
  std::vector<Dim> kept;
  if (!ctx.has_input(1) || constant_length(ctx, 1) == 0) {
    for (const Dim& dim : dims) {
      if (dim.is(1)) continue;
      // A symbol that may be 1 leaves the rank open.
      if (!dim.is_constant() && dim.range().lo <= 1 && dim.range().hi >= 1)
        return ctx.set_output(0, ctx.dtype(0), Shape());
      kept.push_back(dim);
    }
    return set_view(ctx, std::move(kept));
  }
  const auto axes = ctx.constant_ints(1);
  if (!axes) {
    const auto count = constant_length(ctx, 1);
    return ctx.set_output(
        0, ctx.dtype(0),
        count ? Shape(fresh_dims(ctx, std::max<int64_t>(0, ctx.shape(0).rank() - *count), "squeeze")) : Shape());
  }
  const auto marked = marked_axes(ctx, *axes, ctx.shape(0).rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (marked[i]) {
      ctx.require_equal(dims[i], 1, "an axis that is squeezed must have size 1");
    } else {
      kept.push_back(dims[i]);
    }
  }
  set_view(ctx, std::move(kept));
}

void reference_squeeze(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  Dims kept;
  if (ctx.has_input(1) && ctx.input(1).size() > 0) {
    const auto marked = marked_axes(ctx, ctx.ints(1), x.rank());
    for (size_t i = 0; i < marked.size(); ++i) {
      if (!marked[i]) {
        kept.push_back(x.dims()[i]);
      } else {
        ctx.check(x.dims()[i] == 1,
                  str("an axis that is squeezed must have size 1. Got ", to_string(x.dims()), " at axis ", i));
      }
    }
  } else {
    std::copy_if(x.dims().begin(), x.dims().end(), std::back_inserter(kept), [](int64_t dim) { return dim != 1; });
  }
  copy_tensor(x, ctx.output(0, x.dtype(), kept));
}

template <class D>
std::vector<D> insert_ones(const std::vector<D>& dims, const std::vector<bool>& marked) {
  std::vector<D> result;
  size_t next = 0;
  for (const bool is_new : marked) result.push_back(is_new ? D(1) : dims[next++]);
  return result;
}

void infer_unsqueeze(InferContext& ctx) {
  const auto axes = ctx.constant_ints(1);
  if (!ctx.ranked(0) || !axes) {
    const auto count = constant_length(ctx, 1);
    const bool has_rank = ctx.ranked(0) && count;
    return ctx.set_output(0, ctx.dtype(0),
                          has_rank ? Shape(fresh_dims(ctx, ctx.shape(0).rank() + *count, "unsqueeze")) : Shape());
  }
  const auto& dims = ctx.shape(0).dims();
  set_view(ctx, insert_ones(dims, new_axes(ctx, *axes, static_cast<int>(dims.size()))));
}

void reference_unsqueeze(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto axes = ctx.ints(1);
  copy_tensor(x, ctx.output(0, x.dtype(), insert_ones(x.dims(), new_axes(ctx, axes, x.rank()))));
}

// Identity

void infer_identity(InferContext& ctx) {
  ctx.set_output(0, ctx.type(0));
  if (!ctx.type(0).is_tensor()) return;
  pass_contents(ctx, ctx.shape(0));
}

void reference_identity(ReferenceContext& ctx) {
  if (ctx.value(0).kind != HostValue::Kind::Tensor) return ctx.set_output(0, ctx.value(0));
  const Tensor& x = ctx.input(0);
  copy_tensor(x, ctx.output(0, x.dtype(), x.dims()));
}

// Transpose

std::vector<int64_t> permutation(const Node& node, int rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = node.ints_attr("perm", perm);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool complete = static_cast<int>(perm.size()) == rank;
  for (size_t i = 0; complete && i < sorted.size(); ++i) complete = sorted[i] == static_cast<int64_t>(i);
  NEO_CHECK(complete, Model, node.op, "perm must hold every axis once. Got ", to_string(perm),
            ", expected the axes 0 to ", rank - 1, " - at ", node.place());
  return perm;
}

void infer_transpose(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::vector<Dim> dims;
  const std::vector<int64_t> perm = permutation(ctx.node(), ctx.shape(0).rank());
  for (const int64_t axis : perm) dims.push_back(ctx.shape(0)[static_cast<int>(axis)]);
  const Shape result(std::move(dims));
  ctx.set_output(0, ctx.dtype(0), result);
  if (!result.is_static()) return;
  const auto contents = tensor_contents(ctx, 0);
  if (!contents) return;
  const Dims sizes = result.to_dims();
  const Dims strides = dense_strides(ctx.shape(0).to_dims());
  std::vector<Dim> moved;
  for (int64_t i = 0; i < std::ssize(*contents); ++i) {
    int64_t from = 0;
    int64_t rest = i;
    for (size_t a = sizes.size(); a-- > 0;) {
      from += rest % sizes[a] * strides[static_cast<size_t>(perm[a])];
      rest /= sizes[a];
    }
    moved.push_back((*contents)[static_cast<size_t>(from)]);
  }
  ctx.set_contents(0, std::move(moved));
}

void reference_transpose(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Dims strides = dense_strides(x.dims());
  Dims dims;
  StridedView from;
  for (const int64_t axis : permutation(ctx.node(), x.rank())) {
    dims.push_back(x.dims()[static_cast<size_t>(axis)]);
    from.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  copy_strided(x.dtype(), dims, x.data(), from, y.data(), {0, dense_strides(dims)});
}

// Expand, Tile

void infer_expand(InferContext& ctx) {
  const auto target = shape_contents(ctx, 1);
  if (!target || !ctx.ranked(0)) {
    const auto length = constant_length(ctx, 1);
    if (!length || !ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
    // An axis of another size than 1 keeps it, whatever it is expanded to.
    const Shape& x = ctx.shape(0);
    std::vector<Dim> dims = fresh_dims(ctx, std::max<int64_t>(*length, x.rank()), "expand");
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (x[axis].range().lo > 1 || x[axis].range().hi < 1)
        dims[dims.size() - static_cast<size_t>(x.rank() - axis)] = x[axis];
    }
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  for (const Dim& dim : *target) ctx.require_less_equal(0, dim, "a size must not be negative");
  const Shape result = ctx.broadcast(ctx.shape(0), Shape(*target));
  ctx.set_output(0, ctx.dtype(0), result);
  if (!result.is_static() || result.rank() > 1 || result.element_count().value() > 64) return;
  if (auto contents = shape_contents(ctx, 0)) {
    const auto count = static_cast<size_t>(result.element_count().value());
    if (contents->size() == 1) contents->resize(count, contents->front());
    if (contents->size() == count) ctx.set_contents(0, std::move(*contents));
  }
}

void reference_expand(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  Dims target = ctx.ints(1);
  Dims source = x.dims();
  const size_t rank = std::max(target.size(), source.size());
  target.insert(target.begin(), rank - target.size(), 1);
  source.insert(source.begin(), rank - source.size(), 1);
  StridedView from{0, dense_strides(source)};
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    ctx.check(source[i] == target[i] || source[i] == 1 || target[i] == 1,
              str("sizes must agree or be 1. Got ", to_string(x.dims()), " expanded to ", to_string(ctx.ints(1))));
    dims[i] = source[i] == 1 ? target[i] : source[i];
    if (source[i] == 1) from.strides[i] = 0;
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  copy_strided(x.dtype(), dims, x.data(), from, y.data(), {0, dense_strides(dims)});
}

void infer_tile(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const int rank = ctx.shape(0).rank();
  const auto repeats = shape_contents(ctx, 1);
  if (!repeats) {
    std::vector<Dim> dims = ctx.shape(0).dims();
    for (Dim& dim : dims) dim = dim.is(0) ? dim : ctx.fresh("tile", {0, kMaxSymbol}, dim.hint());
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  ctx.check(static_cast<int>(repeats->size()) == rank,
            str("repeats must have one number per axis. Got ", repeats->size(), ", expected ", rank));
  std::vector<Dim> dims;
  for (int i = 0; i < rank; ++i) {
    const Dim& repeat = (*repeats)[static_cast<size_t>(i)];
    ctx.require_less_equal(0, repeat, "repeats must not be negative");
    dims.push_back(ctx.shape(0)[i] * repeat);
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_tile(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto repeats = ctx.ints(1);
  ctx.check(static_cast<int>(repeats.size()) == x.rank(),
            str("repeats must have one number per axis. Got ", repeats.size(), ", expected ", x.rank()));
  const Dims strides = dense_strides(x.dims());
  Dims dims;
  Dims box;  // every axis as (repeat, size)
  StridedView from;
  for (size_t i = 0; i < repeats.size(); ++i) {
    ctx.check(repeats[i] >= 0, str("repeats must not be negative. Got ", repeats[i]));
    ctx.check(!__builtin_mul_overflow(x.dims()[i], repeats[i], &dims.emplace_back()),
              str("the sizes must fit in 64 bits. Got ", x.dims()[i], " times ", repeats[i]));
    box.insert(box.end(), {repeats[i], x.dims()[i]});
    from.strides.insert(from.strides.end(), {0, strides[i]});
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  copy_strided(x.dtype(), box, x.data(), from, y.data(), {0, dense_strides(box)});
}

}  // namespace

void add_shape_ops(OpRegistry& ops) {
  ops.add({.name = "Shape", .infer = infer_shape, .reference = reference_shape, .work = no_work});
  ops.add({.name = "Size", .infer = infer_size, .reference = reference_size, .work = no_work});
  ops.add({.name = "Identity",
           .layout = LayoutClass::Oblivious,
           .infer = infer_identity,
           .reference = reference_identity,
           .work = movement_work});
  ops.add({.name = "Reshape",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_reshape,
           .reference = reference_reshape,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "Flatten", .infer = infer_flatten, .reference = reference_flatten, .work = movement_work});
  ops.add({.name = "Squeeze",
           .max_inputs = 2,
           .infer = infer_squeeze,
           .reference = reference_squeeze,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "Unsqueeze",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_unsqueeze,
           .reference = reference_unsqueeze,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "Transpose",
           .layout = LayoutClass::Tolerant,
           .infer = infer_transpose,
           .reference = reference_transpose,
           .work = movement_work});
  ops.add({.name = "Expand",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_expand,
           .reference = reference_expand,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "Tile",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_tile,
           .reference = reference_tile,
           .work = movement_work,
           .shape_inputs = {1}});
}

}  // namespace neo
