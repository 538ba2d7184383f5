#include <algorithm>
#include <cmath>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Normalizations over the last axes: LayerNormalization, RMSNormalization and Microsoft's forms of them.

struct Rows {
  int64_t count = 1;
  int64_t size = 1;
};

Rows rows_of(const Dims& dims, int axis) {
  Rows rows;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    (i < axis ? rows.count : rows.size) *= dims[static_cast<size_t>(i)];
  }
  return rows;
}

// Normalizes every row of x; `mean` (null: the mean is not subtracted) and `inverse` get one element per row.
void normalize_rows(std::vector<double>& x, const Rows& rows, double epsilon, std::vector<double>* mean,
                    std::vector<double>& inverse) {
  for (int64_t row = 0; row < rows.count; ++row) {
    double* elements = x.data() + row * rows.size;
    double center = 0;
    if (mean) {
      for (int64_t i = 0; i < rows.size; ++i) center += elements[i];
      center /= static_cast<double>(rows.size);
      mean->push_back(center);
    }
    double square = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      elements[i] -= center;
      square += elements[i] * elements[i];
    }
    inverse.push_back(1.0 / std::sqrt(square / static_cast<double>(rows.size) + epsilon));
    for (int64_t i = 0; i < rows.size; ++i) elements[i] *= inverse.back();
  }
}

void scale_by(const ReferenceContext& ctx, int input, const Dims& dims, std::vector<double>& x) {
  if (!ctx.has_input(input)) return;
  const auto scale = broadcast_doubles(ctx, input, dims);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
}

void shift_by(const ReferenceContext& ctx, int input, const Dims& dims, std::vector<double>& x) {
  if (!ctx.has_input(input)) return;
  const auto shift = broadcast_doubles(ctx, input, dims);
  for (size_t i = 0; i < x.size(); ++i) x[i] += shift[i];
}

// The shape of one statistic per row.
Shape statistic_shape(const Shape& shape, int axis) {
  std::vector<Dim> dims = shape.dims();
  std::fill(dims.begin() + axis, dims.end(), Dim(1));
  return Shape(std::move(dims));
}

Dims statistic_dims(Dims dims, int axis) {
  std::fill(dims.begin() + axis, dims.end(), 1);
  return dims;
}

void require_broadcast_to(InferContext& ctx, int input, const Shape& shape) {
  if (!ctx.has_input(input) || !ctx.ranked(input) || !shape.has_rank()) return;
  ctx.check(ctx.shape(input).rank() <= shape.rank(), str("input ", input, " must broadcast to the first one. Got ",
                                                         ctx.shape(input).to_string(), " and ", shape.to_string()));
  const int missing = shape.rank() - ctx.shape(input).rank();
  for (int axis = 0; axis < ctx.shape(input).rank(); ++axis) {
    const Dim& size = ctx.shape(input)[axis];
    // An axis of more than one element is repeated nowhere.
    if (size.range().lo > 1) ctx.require_equal(shape[missing + axis], size, "sizes must agree");
  }
  ctx.broadcast(shape, ctx.shape(input));
}

// The dtype of the statistics; some exporters write 0, "undefined", for float32.
DType stash_dtype(const Node& node) {
  const auto found = node.attrs.find("stash_type");
  const auto* number = found == node.attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return number && *number == 0 ? DType::Float32 : dtype_attr(node, "stash_type", DType::Float32);
}

// LayerNormalization(X, scale, bias) -> Y, mean, inverse deviation. In ONNX all have one dtype; ONNX Runtime's
// optimizer leaves out the Cast of a half precision X, and Y has the dtype of the scale.

void infer_layer_norm(InferContext& ctx) {
  for (const int i : {0, 1}) check_dtype(ctx, i, DTypeClass::Float);
  ctx.set_output(0, ctx.dtype(1), ctx.shape(0));
  for (const int i : {1, 2}) require_broadcast_to(ctx, i, ctx.shape(0));
  const DType stash = stash_dtype(ctx.node());
  Shape statistic;
  if (ctx.ranked(0)) {
    const int rank = ctx.shape(0).rank();
    statistic = statistic_shape(ctx.shape(0), ctx.axis(ctx.node().int_attr("axis", -1), rank));
  }
  for (const int i : {1, 2}) ctx.set_output(i, stash, statistic);
}

void reference_layer_norm(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size()));
  const DType stash = stash_dtype(ctx.node());
  auto x = ctx.doubles(0);
  std::vector<double> mean;
  std::vector<double> inverse;
  normalize_rows(x, rows_of(dims, axis), ctx.node().float_attr("epsilon", 1e-5f), &mean, inverse);
  scale_by(ctx, 1, dims, x);
  shift_by(ctx, 2, dims, x);
  store_doubles(ctx.output(0, ctx.input(1).dtype(), dims), x);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, stash, statistic_dims(dims, axis)), mean);
  if (ctx.has_output(2)) store_doubles(ctx.output(2, stash, statistic_dims(dims, axis)), inverse);
}

// RMSNormalization(X, scale) -> Y; SimplifiedLayerNormalization gives the inverse deviation too

void infer_rms_norm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_dtype(ctx, 1, DTypeClass::Float);
  ctx.set_output(0, ctx.dtype(1), ctx.shape(0));
  require_broadcast_to(ctx, 1, ctx.shape(0));
  Shape statistic;
  if (ctx.ranked(0)) {
    const int rank = ctx.shape(0).rank();
    statistic = statistic_shape(ctx.shape(0), ctx.axis(ctx.node().int_attr("axis", -1), rank));
  }
  ctx.set_output(1, stash_dtype(ctx.node()), statistic);
}

void reference_rms_norm(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size()));
  auto x = ctx.doubles(0);
  std::vector<double> inverse;
  normalize_rows(x, rows_of(dims, axis), ctx.node().float_attr("epsilon", 1e-5f), nullptr, inverse);
  scale_by(ctx, 1, dims, x);
  shift_by(ctx, 2, dims, x);
  store_doubles(ctx.output(0, ctx.input(1).dtype(), dims), x);
  if (!ctx.has_output(1)) return;
  const DType stash = stash_dtype(ctx.node());
  store_doubles(ctx.output(1, stash, statistic_dims(dims, axis)), inverse);
}

// com.microsoft.SkipLayerNormalization(input, skip, gamma, beta, bias) -> Y, mean, inverse deviation, the sum.
// The simplified form has no beta: (input, skip, gamma, bias).

bool is_simplified(const Node& node) {
  return node.op == "com.microsoft.SkipSimplifiedLayerNormalization";
}

void infer_skip_layer_norm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    check_same_dtype(ctx, 0, i);
    require_broadcast_to(ctx, i, ctx.shape(0));
  }
  const Shape statistic = ctx.ranked(0) ? statistic_shape(ctx.shape(0), ctx.axis(-1, ctx.shape(0).rank())) : Shape();
  for (const int i : {1, 2}) ctx.set_output(i, DType::Float32, statistic);
  ctx.set_output(3, ctx.dtype(0), ctx.shape(0));
}

void reference_skip_layer_norm(ReferenceContext& ctx) {
  const bool simplified = is_simplified(ctx.node());
  const Dims dims = ctx.input(0).dims();
  const DType dtype = ctx.input(0).dtype();
  const int axis = ctx.axis(-1, static_cast<int>(dims.size()));
  auto x = ctx.doubles(0);
  for (const int added : {1, simplified ? 3 : 4}) {
    shift_by(ctx, added, dims, x);
  }
  if (ctx.has_output(3)) store_doubles(ctx.output(3, dtype, dims), x);
  std::vector<double> mean;
  std::vector<double> inverse;
  const double epsilon = ctx.node().float_attr("epsilon", 1e-12f);
  normalize_rows(x, rows_of(dims, axis), epsilon, simplified ? nullptr : &mean, inverse);
  mean.resize(inverse.size());
  scale_by(ctx, 2, dims, x);
  if (!simplified) shift_by(ctx, 3, dims, x);
  store_doubles(ctx.output(0, dtype, dims), x);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, DType::Float32, statistic_dims(dims, axis)), mean);
  if (ctx.has_output(2)) store_doubles(ctx.output(2, DType::Float32, statistic_dims(dims, axis)), inverse);
}

Work layer_norm_work(const Node& node) {
  return {Dim(6) * element_count_or_zero(node.input(0)), operand_bytes(node)};
}

}  // namespace

void add_layer_norm_ops(OpRegistry& ops) {
  ops.add({.name = "LayerNormalization",
           .min_inputs = 2,
           .max_inputs = 3,
           .max_outputs = 3,
           .infer = infer_layer_norm,
           .reference = reference_layer_norm,
           .work = layer_norm_work});
  ops.add({.name = "RMSNormalization",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_rms_norm,
           .reference = reference_rms_norm,
           .work = layer_norm_work});
  // ONNX Runtime knows the name in both domains.
  for (const char* name : {"SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization"}) {
    ops.add({.name = name,
             .min_inputs = 2,
             .max_inputs = 3,
             .max_outputs = 2,
             .infer = infer_rms_norm,
             .reference = reference_rms_norm,
             .work = layer_norm_work});
  }
  for (const char* name : {"com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization"}) {
    ops.add({.name = name,
             .min_inputs = 3,
             .max_inputs = 5,
             .max_outputs = 4,
             .infer = infer_skip_layer_norm,
             .reference = reference_skip_layer_norm,
             .work = layer_norm_work});
  }
}

}  // namespace neo
