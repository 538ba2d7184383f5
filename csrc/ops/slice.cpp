#include "ops/slice.h"

#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Concat

void infer_concat(InferContext& ctx) {
  std::optional<std::vector<Dim>> contents = std::vector<Dim>{};
  std::vector<Dim> dims;
  bool ranked = true;
  for (int i = 0; i < ctx.input_count(); ++i) {
    ctx.check(ctx.has_input(i), "an input must not be left out");
    ctx.check(ctx.dtype(i) == ctx.dtype(0),
              str("inputs must have one element type. Got ", name(ctx.dtype(0)), " and ", name(ctx.dtype(i))));
    ranked = ranked && ctx.ranked(i);
  }
  if (!ranked) {
    for (int i = 0; i < ctx.input_count(); ++i) {
      if (!ctx.ranked(i)) continue;
      return ctx.set_output(0, ctx.dtype(0), Shape(fresh_dims(ctx, ctx.shape(i).rank(), "concat")));
    }
    return ctx.set_output(0, ctx.dtype(0), Shape());
  }
  const int rank = ctx.shape(0).rank();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), rank);
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Shape& shape = ctx.shape(i);
    ctx.check(shape.rank() == rank,
              str("inputs must have one rank. Got ", ctx.shape(0).to_string(), " and ", shape.to_string()));
    if (i == 0) {
      dims = shape.dims();
    } else {
      for (int a = 0; a < rank; ++a) {
        Dim& dim = dims[static_cast<size_t>(a)];
        dim =
            a == axis ? dim + shape[a] : unify(ctx, dim, shape[a], "inputs must agree on the axes that are not joined");
      }
    }
    const auto part = rank > 0 && axis == 0 ? tensor_contents(ctx, i) : std::nullopt;
    if (!part) {
      contents.reset();
    } else if (contents) {
      contents->insert(contents->end(), part->begin(), part->end());
    }
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  if (contents) ctx.set_contents(0, std::move(*contents));
}

void reference_concat(ReferenceContext& ctx) {
  Dims dims = ctx.input(0).dims();
  const int rank = ctx.input(0).rank();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), rank);
  for (int i = 1; i < ctx.input_count(); ++i) {
    const Dims& part = ctx.input(i).dims();
    if (part.size() != dims.size())
      ctx.fail(ErrorKind::Shape, str("inputs must have one rank. Got ", to_string(dims), " and ", to_string(part)));
    for (size_t a = 0; a < dims.size(); ++a) {
      if (static_cast<int>(a) == axis) {
        dims[a] += part[a];
      } else {
        if (dims[a] != part[a])
          ctx.fail(ErrorKind::Shape, str("inputs must agree on the axes that are not joined. Got ", to_string(part),
                                         " on axis ", a, ", expected ", dims[a]));
      }
    }
  }
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, dtype, dims);
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t row = count_between(dims, axis, rank);
  int64_t offset = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Tensor& x = ctx.input(i);
    const int64_t run = count_between(x.dims(), axis, rank);
    if (run == 0 || outer == 0) continue;
    const ElementMover move(dtype, x.data(), y.data());
    for (int64_t o = 0; o < outer; ++o) move(o * row + offset, o * run, run);
    offset += run;
  }
}

// Split

// Parts of one size, of which the last are smaller or empty where it does not divide the axis.
std::vector<int64_t> even_parts(int64_t size, int parts) {
  const int64_t chunk = (size + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t at = 0; static_cast<int>(sizes.size()) < parts; at += chunk) {
    sizes.push_back(std::clamp<int64_t>(size - at, 0, chunk));
  }
  return sizes;
}

void infer_split(InferContext& ctx) {
  const int parts = ctx.output_count();
  if (!ctx.ranked(0)) {
    for (int i = 0; i < parts; ++i) ctx.set_output(i, ctx.dtype(0), Shape());
    return;
  }
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), ctx.shape(0).rank());
  const Dim size = ctx.shape(0)[axis];
  std::vector<Dim> sizes;
  if (ctx.has_input(1)) {
    if (const auto given = shape_contents(ctx, 1)) {
      ctx.check(static_cast<int>(given->size()) == parts,
                str("split must have one size per output. Got ", given->size(), ", expected ", parts));
      sizes = *given;
      ctx.require_equal(size, std::accumulate(sizes.begin(), sizes.end(), Dim(0)),
                        "the sizes of the parts must add up to the axis");
      for (const Dim& part : sizes) ctx.require_less_equal(0, part, "a part must not have a negative size");
    } else {
      for (int i = 0; i < parts; ++i) sizes.push_back(ctx.fresh("split", {0, size.range().hi}));
    }
  } else {
    const int64_t count = ctx.node().int_attr("num_outputs", parts);
    ctx.check(count == parts, str("num_outputs must be the number of outputs. Got ", count, ", expected ", parts));
    if (size.is_constant()) {
      for (const int64_t part : even_parts(size.value(), parts)) sizes.push_back(part);
    } else {
      const Dim chunk = ceildiv(size, Dim(parts));
      sizes.assign(static_cast<size_t>(parts), chunk);
      sizes.back() = size - chunk * Dim(parts - 1);
      ctx.require_less_equal(0, sizes.back(), "the axis must be long enough for the number of parts");
    }
  }
  const auto contents = ctx.shape(0).rank() == 1 ? shape_contents(ctx, 0) : std::nullopt;
  size_t offset = 0;
  bool known = contents.has_value();
  for (int i = 0; i < parts; ++i) {
    const Dim& part = sizes[static_cast<size_t>(i)];
    std::vector<Dim> dims = ctx.shape(0).dims();
    dims[static_cast<size_t>(axis)] = part;
    ctx.set_output(i, ctx.dtype(0), Shape(std::move(dims)));
    known = known && part.is_constant() && offset + static_cast<size_t>(part.value()) <= contents->size();
    if (!known) continue;
    const auto begin = contents->begin() + static_cast<int64_t>(offset);
    ctx.set_contents(i, {begin, begin + part.value()});
    offset += static_cast<size_t>(part.value());
  }
}

void reference_split(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int rank = x.rank();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), rank);
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  const int parts = ctx.output_count();
  std::vector<int64_t> sizes;
  if (ctx.has_input(1)) {
    sizes = ctx.ints(1);
    if (static_cast<int>(sizes.size()) != parts)
      ctx.fail(ErrorKind::Shape, str("split must have one size per output. Got ", sizes.size(), ", expected ", parts));
  } else {
    sizes = even_parts(size, parts);
  }
  if (!add_up(sizes, size))
    ctx.fail(ErrorKind::Shape, str("the sizes of the parts must add up to the axis. Got ", to_string(sizes),
                                   ", expected a sum of ", size));
  const int64_t outer = count_between(x.dims(), 0, axis);
  const int64_t inner = count_between(x.dims(), axis + 1, rank);
  int64_t offset = 0;
  for (int i = 0; i < parts; ++i) {
    const int64_t run = sizes[static_cast<size_t>(i)] * inner;
    if (ctx.has_output(i)) {
      Dims dims = x.dims();
      dims[static_cast<size_t>(axis)] = sizes[static_cast<size_t>(i)];
      const Tensor& y = ctx.output(i, x.dtype(), dims);
      const ElementMover move(x.dtype(), x.data(), y.data());
      for (int64_t o = 0; o < outer; ++o) move(o * run, o * size * inner + offset, run);
    }
    offset += run;
  }
}

// Slice

// The largest int32 and int64 as the end of a slice that runs backwards stand for its last position, the axis's first,
// as ONNX Runtime has it.
bool is_open_end(int64_t end) {
  return end == INT32_MAX || end == INT64_MAX;
}

// A start or an end counted from the front; `low` and `high` stand for positions beyond every axis.
Dim slice_position(const Dim& position, const Dim& size, const Dim& low, const Dim& high) {
  if (position.is_constant() && position.value() <= -kMaxExtent) return low;
  if (position.is_constant() && position.value() >= kMaxExtent) return high;
  return position == size - Dim(1) ? position : from_front(position, size);
}

// Clamps that cannot change the number of elements are left out.
Dim sliced_size(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  const Dim last = size - Dim(1);
  Dim span;
  if (step > 0) {
    span = smaller(slice_position(end, size, 0, size), size) - larger(slice_position(start, size, 0, size), 0);
  } else {
    const Dim begin = slice_position(start, size, 0, last);
    const bool open = end.is_constant() && is_open_end(end.value());
    const Dim stop = open ? Dim(-1) : larger(slice_position(end, size, -1, last), -1);
    span = (begin == last ? last : smaller(larger(begin, 0), last)) - stop;
  }
  const int64_t stride = step == INT64_MIN ? INT64_MAX : std::abs(step);
  return larger(stride == 1 ? span : ceildiv(span, stride), 0);
}

// The first position and the number of elements of one axis.
std::pair<int64_t, int64_t> slice_axis(int64_t size, int64_t start, int64_t end, int64_t step) {
  const auto bound = [size](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -size ? -size - 1 : at;
    if (at < 0) at += size;
    return std::min(std::max(at, low), high);
  };
  const int64_t begin = step > 0 ? bound(start, 0, size) : bound(start, 0, size - 1);
  const int64_t stop = step > 0 ? bound(end, 0, size) : is_open_end(end) ? -1 : bound(end, -1, size - 1);
  if (step > 0) return {begin, stop > begin ? (stop - begin - 1) / step + 1 : 0};
  return {begin, begin > stop ? (stop - begin + 1) / step + 1 : 0};
}

// An axis that is listed twice would be cut twice, from where it began.
template <class Context>
void check_once(const Context& ctx, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (const int64_t given : axes) {
    const auto axis = static_cast<size_t>(ctx.axis(given, rank));
    if (seen[axis]) ctx.check(false, str("an axis must be listed once. Got ", given, " twice"));
    seen[axis] = true;
  }
}

// The elements of a slice, where those of the whole are known.
void keep_sliced_contents(InferContext& ctx, const std::vector<int64_t>& axes, const std::vector<Dim>& starts,
                          const std::vector<Dim>& ends, const std::optional<std::vector<int64_t>>& steps) {
  auto contents = tensor_contents(ctx, 0);
  if (!contents) return;
  Dims dims = ctx.shape(0).to_dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!starts[i].is_constant() || !ends[i].is_constant()) return;
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], ctx.shape(0).rank()));
    const int64_t step = steps ? (*steps)[i] : 1;
    const auto [begin, count] = slice_axis(dims[axis], starts[i].value(), ends[i].value(), step);
    const int64_t run = count_between(dims, static_cast<int>(axis) + 1, static_cast<int>(dims.size()));
    const int64_t outer = count_between(dims, 0, static_cast<int>(axis));
    std::vector<Dim> kept;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < count; ++k) {
        const auto from = contents->begin() + (o * dims[axis] + begin + k * step) * run;
        kept.insert(kept.end(), from, from + run);
      }
    }
    contents = std::move(kept);
    dims[axis] = count;
  }
  ctx.set_contents(0, std::move(*contents));
}

void infer_slice(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  const int rank = ctx.shape(0).rank();
  const auto starts = shape_contents(ctx, 1);
  const auto ends = shape_contents(ctx, 2);
  const auto steps = ctx.has_input(4) ? ctx.constant_ints(4) : std::nullopt;
  std::optional<std::vector<int64_t>> axes;
  if (ctx.has_input(3)) {
    axes = ctx.constant_ints(3);
  } else if (const auto count = starts ? std::optional<int64_t>(starts->size()) : constant_length(ctx, 1)) {
    axes.emplace(static_cast<size_t>(*count));
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (!axes) {
    for (Dim& dim : dims) dim = ctx.fresh("slice", {0, dim.range().hi});
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  check_once(ctx, *axes, rank);
  bool known = starts && ends && (steps || !ctx.has_input(4));
  if (known) {
    ctx.check(
        starts->size() == axes->size() && ends->size() == axes->size() && (!steps || steps->size() == axes->size()),
        str("starts, ends, axes and steps must have one length. Got ", starts->size(), ", ", ends->size(), ", ",
            axes->size(), ", ", steps ? steps->size() : axes->size()));
  }
  for (size_t i = 0; i < axes->size(); ++i) {
    Dim& dim = dims[static_cast<size_t>(ctx.axis((*axes)[i], rank))];
    if (!known) {
      dim = ctx.fresh("slice", {0, dim.range().hi});
      continue;
    }
    const int64_t step = steps ? (*steps)[i] : 1;
    ctx.check(step != 0, "steps must not be 0");
    dim = sliced_size(dim, (*starts)[i], (*ends)[i], step);
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  if (known) keep_sliced_contents(ctx, *axes, *starts, *ends, steps);
}

}  // namespace

void reference_slice(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto starts = ctx.ints(1);
  const auto ends = ctx.ints(2);
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (ctx.has_input(3)) axes = ctx.ints(3);
  std::vector<int64_t> steps(starts.size(), 1);
  if (ctx.has_input(4)) steps = ctx.ints(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    ctx.fail(ErrorKind::Shape, str("starts, ends, axes and steps must have one length. Got ", starts.size(), ", ",
                                   ends.size(), ", ", axes.size(), ", ", steps.size()));
  check_once(ctx, axes, x.rank());
  Dims dims = x.dims();
  StridedView from{0, dense_strides(x.dims())};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], x.rank()));
    ctx.check(steps[i] != 0, "steps must not be 0");
    const auto [begin, count] = slice_axis(x.dims()[axis], starts[i], ends[i], steps[i]);
    dims[axis] = count;
    if (count > 0) from.offset += begin * from.strides[axis];
    from.strides[axis] = count > 1 ? from.strides[axis] * steps[i] : 0;
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  copy_strided(x.dtype(), dims, x.data(), from, y.data(), {0, dense_strides(dims)});
}

namespace {

// Trilu

void infer_trilu(InferContext& ctx) {
  if (ctx.ranked(0))
    ctx.check(ctx.shape(0).rank() >= 2,
              str("the input must have a rank of at least 2. Got ", ctx.shape(0).to_string()));
  infer_same(ctx);
}

void reference_trilu(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2)
    ctx.fail(ErrorKind::Shape, str("the input must have a rank of at least 2. Got ", to_string(x.dims())));
  const bool upper = ctx.node().int_attr("upper", 1) != 0;
  const int64_t k = ctx.has_input(1) ? scalar_int(ctx, 1) : 0;
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  const int64_t rows = x.dims()[x.dims().size() - 2];
  const int64_t columns = x.dims().back();
  const int64_t matrices = count_between(x.dims(), 0, x.rank() - 2);
  const ElementMover move(x.dtype(), x.data(), y.data());
  const void* blank = blank_element(x.dtype());
  for (int64_t r = 0; r < matrices * rows; ++r) {
    const int64_t i = r % rows;
    // The row keeps the columns [begin, end).
    const int64_t diagonal = k > 0 && i > INT64_MAX - k ? columns : std::max<int64_t>(i + k, -1);
    const int64_t begin = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
    const int64_t end = upper ? columns : std::clamp<int64_t>(diagonal, -1, columns - 1) + 1;
    fill_elements(x.dtype(), y.data(), r * columns, begin, blank);
    move(r * columns + begin, r * columns + begin, end - begin);
    fill_elements(x.dtype(), y.data(), r * columns + end, columns - end, blank);
  }
}

// ReverseSequence

void infer_reverse_sequence(InferContext& ctx) {
  if (ctx.ranked(0)) {
    ctx.check(ctx.shape(0).rank() >= 2,
              str("the input must have a rank of at least 2. Got ", ctx.shape(0).to_string()));
    const int64_t batch = ctx.node().int_attr("batch_axis", 1);
    const int64_t time = ctx.node().int_attr("time_axis", 0);
    ctx.check((batch == 0 && time == 1) || (batch == 1 && time == 0),
              str("batch_axis and time_axis must be 0 and 1, or 1 and 0. Got ", batch, " and ", time));
    if (ctx.ranked(1)) {
      ctx.check_rank(1, 1);
      ctx.require_equal(ctx.shape(1)[0], ctx.shape(0)[static_cast<int>(batch)],
                        "sequence_lens must have one length per sequence");
    }
  }
  infer_same(ctx);
}

void reference_reverse_sequence(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2)
    ctx.fail(ErrorKind::Shape, str("the input must have a rank of at least 2. Got ", to_string(x.dims())));
  const auto lengths = ctx.ints(1);
  const auto batch_axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("batch_axis", 1), 2));
  const size_t time_axis = 1 - batch_axis;
  const int64_t batches = x.dims()[batch_axis];
  const int64_t times = x.dims()[time_axis];
  if (static_cast<int64_t>(lengths.size()) != batches)
    ctx.fail(ErrorKind::Shape,
             str("sequence_lens must have one length per sequence. Got ", lengths.size(), ", expected ", batches));
  const Dims strides = dense_strides(x.dims());
  const int64_t run = count_between(x.dims(), 2, x.rank());
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  const ElementMover move(x.dtype(), x.data(), y.data());
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    if (length < 0 || length > times)
      ctx.fail(ErrorKind::Shape, str("a sequence must fit the time axis. Got ", length, ", expected 0 to ", times));
    for (int64_t t = 0; t < times; ++t) {
      const int64_t from = t < length ? length - 1 - t : t;
      move(b * strides[batch_axis] + t * strides[time_axis], b * strides[batch_axis] + from * strides[time_axis], run);
    }
  }
}

// Compress

void infer_compress(InferContext& ctx) {
  ctx.check_rank(1, 1);
  const bool flat = !ctx.node().has_attr("axis");
  if (!flat && !ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::vector<Dim> dims = flat ? std::vector<Dim>{Dim(0)} : ctx.shape(0).dims();
  const int axis = flat ? 0 : ctx.axis(ctx.node().int_attr("axis", 0), ctx.shape(0).rank());
  Range range;
  if (ctx.ranked(0)) range.hi = (flat ? ctx.shape(0).element_count() : dims[static_cast<size_t>(axis)]).range().hi;
  dims[static_cast<size_t>(axis)] = ctx.fresh("compress", range);
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_compress(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto condition = ctx.ints(1);
  const bool flat = !ctx.node().has_attr("axis");
  Dims dims = flat ? Dims{x.size()} : x.dims();
  const int rank = static_cast<int>(dims.size());
  const int axis = flat ? 0 : ctx.axis(ctx.node().int_attr("axis", 0), rank);
  const int64_t size = dims[static_cast<size_t>(axis)];
  std::vector<int64_t> chosen;
  // Elements of the condition past the axis count for nothing, as in ONNX Runtime.
  const auto asked = std::min(static_cast<int64_t>(condition.size()), size);
  for (int64_t i = 0; i < asked; ++i) {
    if (condition[static_cast<size_t>(i)] != 0) chosen.push_back(i);
  }
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(chosen.size());
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t run = count_between(dims, axis + 1, rank);
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const ElementMover move(x.dtype(), x.data(), y.data());
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t i : chosen) {
      move(to, (o * size + i) * run, run);
      to += run;
    }
  }
}

}  // namespace

void add_slice_ops(OpRegistry& ops) {
  ops.add({.name = "Concat",
           .max_inputs = -1,
           .layout = LayoutClass::Tolerant,
           .infer = infer_concat,
           .reference = reference_concat,
           .work = movement_work});
  ops.add({.name = "Split",
           .max_inputs = 2,
           .max_outputs = -1,
           .layout = LayoutClass::Tolerant,
           .infer = infer_split,
           .reference = reference_split,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "Slice",
           .min_inputs = 3,
           .max_inputs = 5,
           .infer = infer_slice,
           .reference = reference_slice,
           .work = movement_work});
  ops.add(
      {.name = "Trilu", .max_inputs = 2, .infer = infer_trilu, .reference = reference_trilu, .work = movement_work});
  ops.add({.name = "ReverseSequence",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_reverse_sequence,
           .reference = reference_reverse_sequence,
           .work = movement_work});
  ops.add({.name = "Compress",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_compress,
           .reference = reference_compress,
           .work = movement_work});
}

}  // namespace neo
