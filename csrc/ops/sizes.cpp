#include "ops/sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace neo {

namespace {

// A shape computation never holds more.
constexpr int64_t kMaxContents = 1024;

// TensorProto.DataType, by number.
constexpr std::array<DType, 27> kOnnxDTypes = {
    DType::Undefined,      DType::Float32,  DType::UInt8,        DType::Int8,           DType::UInt16,
    DType::Int16,          DType::Int32,    DType::Int64,        DType::String,         DType::Bool,
    DType::Float16,        DType::Float64,  DType::UInt32,       DType::UInt64,         DType::Complex64,
    DType::Complex128,     DType::BFloat16, DType::Float8E4M3FN, DType::Float8E4M3FNUZ, DType::Float8E5M2,
    DType::Float8E5M2FNUZ, DType::UInt4,    DType::Int4,         DType::Float4E2M1,     DType::Float8E8M0,
    DType::UInt2,          DType::Int2,
};

}  // namespace

bool provably_less_equal(const Dim& a, const Dim& b) {
  return a == b || prove_less(b, a) == std::optional<bool>(false);
}

Dim smaller(const Dim& a, const Dim& b) {
  if (provably_less_equal(a, b)) return a;
  if (provably_less_equal(b, a)) return b;
  return min(a, b);
}

Dim larger(const Dim& a, const Dim& b) {
  if (provably_less_equal(a, b)) return b;
  if (provably_less_equal(b, a)) return a;
  return max(a, b);
}

Dim from_front(const Dim& position, const Dim& size) {
  const Range range = position.range();
  if (range.lo >= 0) return position;
  if (range.hi < 0) return position + size;
  // 1 for negative positions, 0 for others.
  const Dim is_negative = min(Dim(1), max(Dim(0), Dim(0) - position));
  return position + size * is_negative;
}

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

Dim unify(InferContext& ctx, const Dim& a, const Dim& b, const std::string& rule) {
  ctx.require_equal(a, b, rule);
  return b.is_constant() ? b : a;
}

std::optional<std::vector<Dim>> shape_contents(InferContext& ctx, int input) {
  if (!ctx.has_input(input)) return std::nullopt;
  const Shape& shape = ctx.shape(input);
  if (!shape.has_rank() || shape.rank() > 1 || !shape.is_static()) return std::nullopt;
  if (!shape.element_count().is_constant() || shape.element_count().value() > kMaxContents) return std::nullopt;
  return ctx.contents(input);
}

std::optional<std::vector<Dim>> tensor_contents(InferContext& ctx, int input) {
  if (!ctx.ranked(input) || !ctx.shape(input).is_static()) return std::nullopt;
  if (ctx.shape(input).rank() <= 1) return shape_contents(ctx, input);
  if (element_count(ctx.shape(input).to_dims()) > kMaxContents) return std::nullopt;
  const Tensor* constant = ctx.constant(input);
  if (!constant) return ctx.contents(input);
  if (!is_integer(constant->dtype())) return std::nullopt;
  const std::vector<int64_t> ints = load_ints(*constant);
  return std::vector<Dim>(ints.begin(), ints.end());
}

std::optional<Dim> scalar_contents(InferContext& ctx, int input) {
  const auto contents = shape_contents(ctx, input);
  if (!contents || contents->size() != 1) return std::nullopt;
  return contents->front();
}

std::optional<int64_t> constant_length(InferContext& ctx, int input) {
  if (!ctx.ranked(input) || ctx.shape(input).rank() != 1 || !ctx.shape(input)[0].is_constant()) return std::nullopt;
  return ctx.shape(input)[0].value();
}

std::vector<Dim> fresh_dims(InferContext& ctx, int64_t rank, std::string_view stem) {
  ctx.check(rank <= kMaxAxes, str("a tensor must have at most ", kMaxAxes, " axes. Got ", rank));
  // Costs take a tensor of unknown sizes for one of 2^18 elements, as they take a matrix for 512 x 512.
  const int64_t hint = rank > 2 ? std::llround(std::exp2(18.0 / static_cast<double>(rank))) : 0;
  std::vector<Dim> dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(ctx.fresh(stem, {0, kMaxSymbol}, hint));
  return dims;
}

std::vector<int> all_or_listed_axes(const Node& node, int rank) {
  std::vector<int> axes;
  if (!node.has_attr("axes")) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  for (const int64_t axis : node.ints_attr("axes")) {
    NEO_CHECK(axis >= -rank && axis < rank, Model, node.op, "axes must lie inside the rank. Got ", axis, ", expected ",
              -rank, " to ", rank - 1, " - at ", node.place());
    const auto at = static_cast<int>(axis < 0 ? axis + rank : axis);
    NEO_CHECK(std::ranges::find(axes, at) == axes.end(), Model, node.op, "axes must be distinct. Got ", at,
              " twice - at ", node.place());
    axes.push_back(at);
  }
  return axes;
}

DType dtype_attr(const Node& node, std::string_view key, DType fallback) {
  const auto found = node.attrs.find(key);
  if (found == node.attrs.end()) return fallback;
  if (const auto* text = std::get_if<std::string>(&found->second)) {
    const auto dtype = find_dtype(*text);
    NEO_CHECK(dtype.has_value(), Model, node.op, "attribute ", key, " must name an element type. Got \"", *text,
              "\" - at ", node.place());
    return *dtype;
  }
  const int64_t number = node.int_attr(key, 0);
  NEO_CHECK(number > 0 && number < static_cast<int64_t>(kOnnxDTypes.size()), Model, node.op, "attribute ", key,
            " must be a TensorProto data type. Got ", number, ", expected 1 to ", kOnnxDTypes.size() - 1, " - at ",
            node.place());
  return kOnnxDTypes[static_cast<size_t>(number)];
}

int64_t scalar_int(const ReferenceContext& ctx, int input) {
  ctx.check(ctx.input(input).size() == 1,
            str("input ", input, " must hold one element. Got dims ", to_string(ctx.input(input).dims())));
  return load_int64(ctx.input(input).dtype(), ctx.input(input).data());
}

double scalar_double(const ReferenceContext& ctx, int input) {
  ctx.check(ctx.input(input).size() == 1,
            str("input ", input, " must hold one element. Got dims ", to_string(ctx.input(input).dims())));
  return load_double(ctx.input(input).dtype(), ctx.input(input).data());
}

void infer_same(InferContext& ctx) {
  ctx.set_output(0, ctx.type(0));
}

}  // namespace neo
