#include "ops/elements.h"

#include <algorithm>
#include <numeric>

#include "base/budget.h"

namespace neo {

namespace {

bool belongs(DType dtype, DTypeClass allowed) {
  switch (allowed) {
    case DTypeClass::Number:
      return is_float(dtype) || is_integer(dtype);
    case DTypeClass::Float:
      return is_float(dtype);
    case DTypeClass::Integer:
      return is_integer(dtype);
    case DTypeClass::Bool:
      return dtype == DType::Bool;
  }
  return false;
}

std::string_view description(DTypeClass allowed) {
  switch (allowed) {
    case DTypeClass::Number:
      return "a number";
    case DTypeClass::Float:
      return "a floating point type";
    case DTypeClass::Integer:
      return "an integer type";
    case DTypeClass::Bool:
      return "bool";
  }
  return "";
}

template <class T>
std::vector<T> spread(const ReferenceContext& ctx, std::vector<T> elements, const Dims& from, const Dims& to) {
  if (from == to) return elements;
  auto result = make_scratch<T>(element_count(to));
  if (elements.size() == 1) {
    std::fill(result.begin(), result.end(), elements[0]);
    return result;
  }
  const auto indices = broadcast_indices(ctx, from, to);
  std::transform(indices.begin(), indices.end(), result.begin(),
                 [&](int64_t index) { return elements[static_cast<size_t>(index)]; });
  return result;
}

}  // namespace

void check_dtype(const InferContext& ctx, int input, DTypeClass allowed) {
  ctx.check(ctx.type(input).is_tensor() && belongs(ctx.dtype(input), allowed),
            str("input ", input, " must be of ", description(allowed), ". Got ", ctx.type(input).to_string()));
}

void check_same_dtype(const InferContext& ctx, int a, int b) {
  ctx.check(ctx.dtype(a) == ctx.dtype(b), str("inputs ", a, " and ", b, " must have one element type. Got ",
                                              name(ctx.dtype(a)), " and ", name(ctx.dtype(b))));
}

Dims broadcast_dims(const ReferenceContext& ctx, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims dims = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = dims[offset + i];
    ctx.check(dim == shorter[i] || dim == 1 || shorter[i] == 1,
              str("operands must broadcast. Got dims ", to_string(a), " and ", to_string(b)));
    if (dim == 1) dim = shorter[i];
  }
  return dims;
}

Dims broadcast_all_dims(const ReferenceContext& ctx) {
  Dims dims;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) dims = broadcast_dims(ctx, dims, ctx.input(i).dims());
  }
  return dims;
}

std::vector<int64_t> broadcast_indices(const ReferenceContext& ctx, const Dims& from, const Dims& to) {
  ctx.check(from.size() <= to.size() && broadcast_dims(ctx, from, to) == to,
            str("an operand must broadcast to the dims ", to_string(to), ". Got ", to_string(from)));
  std::vector<int64_t> indices = {0};
  const Dims strides = dense_strides(from);
  const size_t offset = to.size() - from.size();
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const int64_t stride = axis < offset || from[axis - offset] == 1 ? 0 : strides[axis - offset];
    std::vector<int64_t> finer;
    finer.reserve(indices.size() * static_cast<size_t>(to[axis]));
    for (const int64_t index : indices) {
      for (int64_t i = 0; i < to[axis]; ++i) finer.push_back(index + i * stride);
    }
    indices = std::move(finer);
  }
  return indices;
}

std::vector<double> broadcast_doubles(const ReferenceContext& ctx, int input, const Dims& to) {
  return spread(ctx, ctx.doubles(input), ctx.input(input).dims(), to);
}

std::vector<int64_t> broadcast_ints(const ReferenceContext& ctx, int input, const Dims& to) {
  return spread(ctx, ctx.ints(input), ctx.input(input).dims(), to);
}

AxisView::AxisView(const Dims& dims, int axis) {
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)];
    (i < axis ? outer : i == axis ? size : inner) *= dim;
  }
}

double round_to(DType dtype, double x) {
  alignas(8) unsigned char element[8];
  store_double(dtype, element, x);
  return load_double(dtype, element);
}

bool int_less(DType dtype, int64_t a, int64_t b) {
  return dtype == DType::UInt64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t int_divide(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::UInt64) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? wrap_subtract(0, a) : a / b;
}

Dim element_count_or_zero(const Value* value) {
  return value && value->shape().has_rank() ? value->shape().element_count() : Dim(0);
}

Dim operand_bytes(const Node& node) {
  Dim bytes = 0;
  const auto add = [&bytes](const Value* value) {
    if (value) bytes = bytes + element_count_or_zero(value) * Dim(item_bytes(value->dtype()));
  };
  for (const Value* value : node.inputs) add(value);
  for (const Value* value : node.outputs) add(value);
  return bytes;
}

}  // namespace neo
