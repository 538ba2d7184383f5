#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

// The type of a sequence holds the type of every element; a symbol in it may stand for another size in each.

namespace {

const Type& element_type(const InferContext& ctx, int input) {
  const Type& type = ctx.type(input);
  if (type.kind != Type::Kind::Sequence)
    ctx.fail(ErrorKind::Type, str("an input must be a sequence. Got ", type.to_string()));
  return *type.element;
}

// A type that holds both: sizes that differ become symbols, ranks that differ leave none.
Type common_type(InferContext& ctx, const Type& a, const Type& b) {
  if (a == b) return a;
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype) {
    ctx.fail(ErrorKind::Type,
             str("the elements of a sequence must have one type. Got ", a.to_string(), " and ", b.to_string()));
  }
  if (!a.shape.has_rank() || !b.shape.has_rank() || a.shape.rank() != b.shape.rank())
    return Type::tensor(a.dtype, Shape());
  std::vector<Dim> dims = a.shape.dims();
  for (int i = 0; i < b.shape.rank(); ++i) {
    Dim& dim = dims[static_cast<size_t>(i)];
    if (!(dim == b.shape[i])) dim = ctx.fresh("element");
  }
  return Type::tensor(a.dtype, Shape(std::move(dims)));
}

// The type of one element: its symbols are its own.
Type single_type(InferContext& ctx, const Type& type) {
  if (!type.is_tensor() || !type.shape.has_rank()) return type;
  std::vector<Dim> dims = type.shape.dims();
  for (Dim& dim : dims) {
    if (!dim.is_constant()) dim = ctx.fresh("element", dim.range());
  }
  return Type::tensor(type.dtype, Shape(std::move(dims)));
}

// Sequences outlive the buffers that their elements came from.
Tensor owned_copy(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  copy_tensor(tensor, copy);
  return copy;
}

HostValue owned_copy(const HostValue& value) {
  return value.kind == HostValue::Kind::Tensor ? HostValue(owned_copy(value.tensor)) : value;
}

const std::vector<HostValue>& items_of(const ReferenceContext& ctx, int input) {
  const HostValue& value = ctx.value(input);
  if (value.kind != HostValue::Kind::Sequence) ctx.fail(ErrorKind::Type, str("input ", input, " must be a sequence"));
  return value.items;
}

void set_element(ReferenceContext& ctx, const HostValue& value) {
  if (value.kind != HostValue::Kind::Tensor) return ctx.set_output(0, value);
  copy_tensor(value.tensor, ctx.output(0, value.tensor.dtype(), value.tensor.dims()));
}

void infer_sequence_construct(InferContext& ctx) {
  Type element = ctx.type(0);
  for (int i = 1; i < ctx.input_count(); ++i) element = common_type(ctx, element, ctx.type(i));
  ctx.set_output(0, Type::sequence(std::move(element)));
}

void reference_sequence_construct(ReferenceContext& ctx) {
  std::vector<HostValue> items;
  for (int i = 0; i < ctx.input_count(); ++i) items.push_back(owned_copy(ctx.value(i)));
  ctx.set_output(0, HostValue::sequence(std::move(items)));
}

void infer_sequence_empty(InferContext& ctx) {
  ctx.set_output(0, Type::sequence(Type::tensor(dtype_attr(ctx.node(), "dtype", DType::Float32), Shape())));
}

void reference_sequence_empty(ReferenceContext& ctx) {
  ctx.set_output(0, HostValue::sequence({}));
}

void infer_sequence_at(InferContext& ctx) {
  ctx.set_output(0, single_type(ctx, element_type(ctx, 0)));
}

void reference_sequence_at(ReferenceContext& ctx) {
  const auto& items = items_of(ctx, 0);
  const int64_t at = checked_index(ctx, scalar_int(ctx, 1), static_cast<int64_t>(items.size()));
  set_element(ctx, items[static_cast<size_t>(at)]);
}

void infer_sequence_length(InferContext& ctx) {
  element_type(ctx, 0);
  ctx.set_output(0, DType::Int64, Shape::of({}));
}

void reference_sequence_length(ReferenceContext& ctx) {
  const auto count = static_cast<int64_t>(items_of(ctx, 0).size());
  store_ints(ctx.output(0, DType::Int64, {}), std::span(&count, 1));
}

void infer_sequence_erase(InferContext& ctx) {
  element_type(ctx, 0);
  infer_same(ctx);
}

void reference_sequence_erase(ReferenceContext& ctx) {
  std::vector<HostValue> items = items_of(ctx, 0);
  const int64_t position = ctx.has_input(1) ? scalar_int(ctx, 1) : -1;
  items.erase(items.begin() + checked_index(ctx, position, static_cast<int64_t>(items.size())));
  ctx.set_output(0, HostValue::sequence(std::move(items)));
}

void infer_sequence_insert(InferContext& ctx) {
  ctx.set_output(0, Type::sequence(common_type(ctx, element_type(ctx, 0), ctx.type(1))));
}

void reference_sequence_insert(ReferenceContext& ctx) {
  std::vector<HostValue> items = items_of(ctx, 0);
  const auto count = static_cast<int64_t>(items.size());
  const int64_t position = ctx.has_input(2) ? scalar_int(ctx, 2) : count;
  ctx.check(position >= -count && position <= count,
            str("position must lie inside the sequence. Got ", position, ", expected ", -count, " to ", count));
  items.insert(items.begin() + (position < 0 ? position + count : position), owned_copy(ctx.value(1)));
  ctx.set_output(0, HostValue::sequence(std::move(items)));
}

// ConcatFromSequence

void infer_concat_from_sequence(InferContext& ctx) {
  const Type element = element_type(ctx, 0);
  if (!element.is_tensor()) ctx.fail(ErrorKind::Type, str("elements must be tensors. Got ", element.to_string()));
  if (!element.shape.has_rank()) return ctx.set_output(0, element.dtype, Shape());
  const bool stack = ctx.node().int_attr("new_axis", 0) != 0;
  const int rank = element.shape.rank();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), stack ? rank + 1 : rank);
  std::vector<Dim> dims = single_type(ctx, element).shape.dims();
  const Dim joined = ctx.fresh("joined");
  if (stack) {
    dims.insert(dims.begin() + axis, joined);
  } else {
    dims[static_cast<size_t>(axis)] = joined;
  }
  ctx.set_output(0, element.dtype, Shape(std::move(dims)));
}

void reference_concat_from_sequence(ReferenceContext& ctx) {
  const auto& items = items_of(ctx, 0);
  ctx.check(!items.empty(), "the sequence must not be empty");
  const bool stack = ctx.node().int_attr("new_axis", 0) != 0;
  Dims dims = items[0].tensor.dims();
  const int rank = static_cast<int>(dims.size());
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), stack ? rank + 1 : rank);
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> sizes;
  for (const HostValue& item : items) {
    Dims part = item.tensor.dims();
    sizes.push_back(stack ? 1 : part.size() == dims.size() ? part[at] : 0);
    if (!stack && part.size() == dims.size()) part[at] = dims[at];
    ctx.check(part == dims && item.tensor.dtype() == items[0].tensor.dtype(),
              str("elements must agree on the axes that are not joined. Got ", to_string(item.tensor.dims()), " and ",
                  to_string(dims)));
  }
  if (stack) dims.insert(dims.begin() + axis, 1);
  dims[at] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t inner = count_between(dims, axis + 1, static_cast<int>(dims.size()));
  const DType dtype = items[0].tensor.dtype();
  const Tensor& y = ctx.output(0, dtype, dims);
  int64_t offset = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const ElementMover move(dtype, items[i].tensor.data(), y.data());
    for (int64_t o = 0; o < outer; ++o) move((o * dims[at] + offset) * inner, o * sizes[i] * inner, sizes[i] * inner);
    offset += sizes[i];
  }
}

// SplitToSequence

void infer_split_to_sequence(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, Type::sequence(Type::tensor(ctx.dtype(0), Shape())));
  std::vector<Dim> dims = ctx.shape(0).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), ctx.shape(0).rank());
  const Dim size = dims[static_cast<size_t>(axis)];
  Dim& part = dims[static_cast<size_t>(axis)];
  if (!ctx.has_input(1)) {
    part = 1;
    if (ctx.node().int_attr("keepdims", 1) == 0) dims.erase(dims.begin() + axis);
  } else {
    const auto contents = shape_contents(ctx, 1);
    const bool scalar = ctx.ranked(1) && ctx.shape(1).rank() == 0;
    const bool equal =
        contents && !contents->empty() &&
        std::all_of(contents->begin(), contents->end(), [&](const Dim& d) { return d == contents->front(); });
    const bool even =
        equal && (!scalar || (contents->front().is_constant() && size.is_constant() && contents->front().value() > 0 &&
                              size.value() % contents->front().value() == 0));
    part = even ? contents->front() : ctx.fresh("part", {0, size.range().hi});
  }
  ctx.set_output(0, Type::sequence(Type::tensor(ctx.dtype(0), Shape(std::move(dims)))));
}

void reference_split_to_sequence(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), x.rank());
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  const bool has_split = ctx.has_input(1);
  if (has_split && ctx.input(1).rank() > 0) {
    sizes = ctx.ints(1);
  } else {
    const int64_t chunk = has_split ? scalar_int(ctx, 1) : 1;
    ctx.check(chunk > 0, str("split must be positive. Got ", chunk));
    for (int64_t at = 0; at < size; at += chunk) sizes.push_back(std::min(chunk, size - at));
  }
  ctx.check(add_up(sizes, size), str("the sizes of the parts must add up to the axis. Got ", to_string(sizes),
                                     ", expected a sum of ", size));
  const bool drop_axis = !has_split && ctx.node().int_attr("keepdims", 1) == 0;
  const int64_t outer = count_between(x.dims(), 0, axis);
  const int64_t inner = count_between(x.dims(), axis + 1, x.rank());
  std::vector<HostValue> items;
  int64_t offset = 0;
  for (const int64_t part : sizes) {
    Dims dims = x.dims();
    dims[static_cast<size_t>(axis)] = part;
    if (drop_axis) dims.erase(dims.begin() + axis);
    Tensor item(x.dtype(), dims);
    const ElementMover move(x.dtype(), x.data(), item.data());
    for (int64_t o = 0; o < outer; ++o) move(o * part * inner, (o * size + offset) * inner, part * inner);
    offset += part;
    items.emplace_back(std::move(item));
  }
  ctx.set_output(0, HostValue::sequence(std::move(items)));
}

// Optional; attribute type is the printed type of the element.

void infer_optional(InferContext& ctx) {
  if (ctx.has_input(0)) return ctx.set_output(0, Type::optional(ctx.type(0)));
  ctx.check(ctx.node().has_attr("type"), "an empty optional must have attribute type");
  ctx.set_output(0, Type::optional(Type::parse(ctx.node().string_attr("type", ""))));
}

void reference_optional(ReferenceContext& ctx) {
  ctx.set_output(0, ctx.has_input(0) ? owned_copy(ctx.value(0)) : HostValue());
}

void infer_optional_get_element(InferContext& ctx) {
  const Type& type = ctx.type(0);
  ctx.set_output(0, type.kind == Type::Kind::Optional ? *type.element : type);
}

void reference_optional_get_element(ReferenceContext& ctx) {
  ctx.check(ctx.value(0).kind != HostValue::Kind::Empty, "the optional must hold an element");
  set_element(ctx, ctx.value(0));
}

void infer_optional_has_element(InferContext& ctx) {
  ctx.set_output(0, DType::Bool, Shape::of({}));
}

void reference_optional_has_element(ReferenceContext& ctx) {
  const int64_t has = ctx.has_input(0) && ctx.value(0).kind != HostValue::Kind::Empty;
  store_ints(ctx.output(0, DType::Bool, {}), std::span(&has, 1));
}

}  // namespace

void add_sequence_ops(OpRegistry& ops) {
  ops.add({.name = "SequenceConstruct",
           .max_inputs = -1,
           .infer = infer_sequence_construct,
           .reference = reference_sequence_construct,
           .work = movement_work});
  ops.add({.name = "SequenceEmpty",
           .min_inputs = 0,
           .max_inputs = 0,
           .infer = infer_sequence_empty,
           .reference = reference_sequence_empty,
           .work = no_work});
  ops.add({.name = "SequenceAt",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_sequence_at,
           .reference = reference_sequence_at,
           .work = movement_work});
  ops.add({.name = "SequenceLength",
           .infer = infer_sequence_length,
           .reference = reference_sequence_length,
           .work = no_work});
  ops.add({.name = "SequenceErase",
           .max_inputs = 2,
           .infer = infer_sequence_erase,
           .reference = reference_sequence_erase,
           .work = no_work});
  ops.add({.name = "SequenceInsert",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = infer_sequence_insert,
           .reference = reference_sequence_insert,
           .work = movement_work});
  ops.add({.name = "ConcatFromSequence",
           .infer = infer_concat_from_sequence,
           .reference = reference_concat_from_sequence,
           .work = movement_work});
  ops.add({.name = "SplitToSequence",
           .max_inputs = 2,
           .infer = infer_split_to_sequence,
           .reference = reference_split_to_sequence,
           .work = movement_work});
  ops.add(
      {.name = "Optional", .min_inputs = 0, .infer = infer_optional, .reference = reference_optional, .work = no_work});
  ops.add({.name = "OptionalGetElement",
           .infer = infer_optional_get_element,
           .reference = reference_optional_get_element,
           .work = movement_work});
  ops.add({.name = "OptionalHasElement",
           .min_inputs = 0,
           .infer = infer_optional_has_element,
           .reference = reference_optional_has_element,
           .work = no_work});
}

}  // namespace neo
