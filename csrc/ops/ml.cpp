#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/labels.h"
#include "ops/movement.h"
#include "ops/scores.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// ArrayFeatureExtractor

void infer_array_feature_extractor(InferContext& ctx) {
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(0, ctx.dtype(0), Shape());
  ctx.check(ctx.shape(0).rank() >= 1, "data must have a rank of at least 1. Got a scalar");
  std::vector<Dim> dims = ctx.shape(0).dims();
  dims.back() = ctx.shape(1).element_count();
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_array_feature_extractor(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  ctx.check(x.rank() >= 1, "data must have a rank of at least 1. Got a scalar");
  const auto indices = ctx.ints(1);
  Dims dims = x.dims();
  const int64_t size = dims.back();
  dims.back() = static_cast<int64_t>(indices.size());
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const ElementMover move(x.dtype(), x.data(), y.data());
  const int64_t rows = count_between(x.dims(), 0, x.rank() - 1);
  int64_t to = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (const int64_t index : indices) move(to++, r * size + checked_index(ctx, index, size));
  }
}

// Binarizer

void reference_binarizer(ReferenceContext& ctx) {
  auto elements = ctx.doubles(0);
  const double threshold = ctx.node().float_attr("threshold", 0);
  for (double& x : elements) x = x > threshold ? 1 : 0;
  store_doubles(ctx.output(0, ctx.input(0).dtype(), ctx.input(0).dims()), elements);
}

// LabelEncoder, CategoryMapper

const void* element_of(const Tensor& t, int64_t i) {
  return t.as<char>() + i * item_bytes(t.dtype());
}

// The position of element i of x among the keys, -1 where it is none of them.
int64_t find_key(const KeyTable& table, const Tensor& x, int64_t i) {
  if (table.dtype() == DType::String) return table.find(x.strings()[i]);
  return is_float(table.dtype()) ? table.find(load_double(x.dtype(), element_of(x, i)))
                                 : table.find(load_int64(x.dtype(), element_of(x, i)));
}

void map_labels(ReferenceContext& ctx, const LabelMapping& mapping) {
  const auto& [keys, values, fallback] = mapping;
  const Tensor& x = ctx.input(0);
  ctx.check(keys.size() == values.size(),
            str("keys and values must have one length. Got ", keys.size(), " and ", values.size()));
  if ((x.dtype() == DType::String) != (keys.dtype() == DType::String)) {
    ctx.fail(ErrorKind::Type,
             str("the input must have the keys' type. Got ", name(x.dtype()), ", expected ", name(keys.dtype())));
  }
  const KeyTable table(keys);
  const Tensor& y = ctx.output(0, values.dtype(), x.dims());
  const ElementMover move(values.dtype(), values.data(), y.data());
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t found = find_key(table, x, i);
    if (found >= 0) {
      move(i, found);
    } else {
      fill_elements(values.dtype(), y.data(), i, 1, fallback.data());
    }
  }
}

void infer_label_encoder(InferContext& ctx) {
  ctx.set_output(0, label_mapping(ctx.node(), ctx.dtype(0)).values.dtype(), ctx.shape(0));
}

void reference_label_encoder(ReferenceContext& ctx) {
  map_labels(ctx, label_mapping(ctx.node(), ctx.input(0).dtype()));
}

void infer_category_mapper(InferContext& ctx) {
  ctx.set_output(0, ctx.dtype(0) == DType::String ? DType::Int64 : DType::String, ctx.shape(0));
}

// Normalizer

void infer_float_same(InferContext& ctx) {
  ctx.set_output(0, DType::Float32, ctx.shape(0));
}

void reference_normalizer(ReferenceContext& ctx) {
  const std::string norm = ctx.node().string_attr("norm", "MAX");
  NEO_CHECK(norm == "MAX" || norm == "L1" || norm == "L2", Model, ctx.node().op, "norm must be MAX, L1 or L2. Got \"",
            norm, "\" - at ", ctx.node().place());
  FeatureRows x = read_features(ctx, 0);
  for (int64_t r = 0; r < x.rows && x.features > 0; ++r) {
    double* row = x.elements.data() + r * x.features;
    double divisor = norm == "MAX" ? row[0] : 0;
    for (int64_t i = 0; i < x.features; ++i) {
      if (norm == "MAX") divisor = std::max(divisor, row[i]);
      if (norm == "L1") divisor += std::abs(row[i]);
      if (norm == "L2") divisor += row[i] * row[i];
    }
    if (norm == "L2") divisor = std::sqrt(divisor);
    for (int64_t i = 0; i < x.features && divisor != 0; ++i) row[i] /= divisor;
  }
  store_doubles(ctx.output(0, DType::Float32, ctx.input(0).dims()), x.elements);
}

// Scaler

void reference_scaler(ReferenceContext& ctx) {
  FeatureRows x = read_features(ctx, 0);
  const auto offset = ctx.node().floats_attr("offset", {0.0});
  const auto scale = ctx.node().floats_attr("scale", {1.0});
  const auto features = static_cast<size_t>(x.features);
  for (const auto* list : {&offset, &scale}) {
    ctx.check(
        list->size() == 1 || list->size() == features,
        str("offset and scale must have one number, or one per feature. Got ", list->size(), ", expected ", features));
  }
  for (size_t i = 0; i < x.elements.size(); ++i) {
    const size_t f = i % features;
    x.elements[i] = (x.elements[i] - offset[offset.size() == 1 ? 0 : f]) * scale[scale.size() == 1 ? 0 : f];
  }
  store_doubles(ctx.output(0, DType::Float32, ctx.input(0).dims()), x.elements);
}

// Imputer

template <class T>
void impute(const ReferenceContext& ctx, std::vector<T>& elements, int64_t features, T replaced,
            const std::vector<T>& imputed) {
  ctx.check(imputed.size() == 1 || static_cast<int64_t>(imputed.size()) == features,
            str("imputed values must be one, or one per feature. Got ", imputed.size(), ", expected ", features));
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool missing = elements[i] == replaced || (replaced != replaced && elements[i] != elements[i]);
    if (missing) elements[i] = imputed[imputed.size() == 1 ? 0 : i % imputed.size()];
  }
}

void reference_imputer(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t features = x.rank() == 0 ? 1 : x.dims().back();
  if (is_float(x.dtype())) {
    auto elements = ctx.doubles(0);
    impute(ctx, elements, features, ctx.node().float_attr("replaced_value_float", 0),
           ctx.node().floats_attr("imputed_value_floats"));
    store_doubles(ctx.output(0, x.dtype(), x.dims()), elements);
  } else {
    auto elements = ctx.ints(0);
    impute(ctx, elements, features, ctx.node().int_attr("replaced_value_int64", 0),
           ctx.node().ints_attr("imputed_value_int64s"));
    store_ints(ctx.output(0, x.dtype(), x.dims()), elements);
  }
}

// OneHotEncoder

void infer_one_hot_encoder(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::Float32, Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  dims.push_back(category_list(ctx.node()).size());
  ctx.set_output(0, DType::Float32, Shape(std::move(dims)));
}

void reference_one_hot_encoder(ReferenceContext& ctx) {
  const Tensor keys = category_list(ctx.node());
  const bool zeros = ctx.node().int_attr("zeros", 1) != 0;
  Tensor x = ctx.input(0);
  if ((x.dtype() == DType::String) != (keys.dtype() == DType::String)) {
    ctx.fail(ErrorKind::Type,
             str("the input must have the categories' type. Got ", name(x.dtype()), ", expected ", name(keys.dtype())));
  }
  Dims dims = x.dims();
  dims.push_back(keys.size());
  if (x.dtype() != DType::String) x = Tensor::from<int64_t>(DType::Int64, x.dims(), ctx.ints(0));
  const KeyTable table(keys);
  auto result = make_scratch<double>(element_count(dims), 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t found = find_key(table, x, i);
    ctx.check(found >= 0 || zeros, str("an element must be a category. Got element ", i, " outside them"));
    if (found >= 0) result[static_cast<size_t>(i * keys.size() + found)] = 1;
  }
  store_doubles(ctx.output(0, DType::Float32, dims), result);
}

// FeatureVectorizer. An input of one axis is one row; of more than two, what lies behind the first axis is a row, as
// ONNX Runtime has it.

Shape feature_shape(const InferContext& ctx, int input) {
  const std::vector<Dim>& dims = ctx.shape(input).dims();
  ctx.check(!dims.empty(), "features must have at least one axis. Got a scalar");
  if (dims.size() == 1) return Shape({1, dims[0]});
  return Shape({dims[0], product(std::span(dims).subspan(1))});
}

FeatureRows read_any_features(const ReferenceContext& ctx, int input) {
  const Dims& dims = ctx.input(input).dims();
  ctx.check(!dims.empty(), "features must have at least one axis. Got a scalar");
  const int rank = static_cast<int>(dims.size());
  return {rank == 1 ? 1 : dims[0], count_between(dims, rank == 1 ? 0 : 1, rank), ctx.doubles(input)};
}

void infer_feature_vectorizer(InferContext& ctx) {
  const auto widths = ctx.node().ints_attr("inputdimensions");
  ctx.check(widths.empty() || static_cast<int>(widths.size()) == ctx.input_count(),
            str("inputdimensions must have one size per input. Got ", widths.size(), ", expected ", ctx.input_count()));
  Dim width = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!widths.empty()) {
      width = width + Dim(widths[static_cast<size_t>(i)]);
    } else {
      width = width + (ctx.ranked(i) ? feature_shape(ctx, i)[1] : ctx.fresh("features"));
    }
  }
  ctx.set_output(0, DType::Float32, Shape({ctx.ranked(0) ? feature_shape(ctx, 0)[0] : ctx.fresh("rows"), width}));
}

void reference_feature_vectorizer(ReferenceContext& ctx) {
  const auto widths = ctx.node().ints_attr("inputdimensions");
  std::vector<FeatureRows> inputs;
  std::vector<int64_t> taken;
  for (int i = 0; i < ctx.input_count(); ++i) {
    inputs.push_back(read_any_features(ctx, i));
    ctx.check(inputs.back().rows == inputs.front().rows,
              str("inputs must have one number of rows. Got ", inputs.back().rows, ", expected ", inputs.front().rows));
    taken.push_back(widths.empty() ? inputs.back().features : widths[static_cast<size_t>(i)]);
  }
  std::vector<double> result;
  for (int64_t r = 0; r < inputs.front().rows; ++r) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (int64_t f = 0; f < taken[i]; ++f) result.push_back(f < inputs[i].features ? inputs[i].row(r)[f] : 0);
    }
  }
  const int64_t width = std::accumulate(taken.begin(), taken.end(), int64_t{0});
  store_doubles(ctx.output(0, DType::Float32, {inputs.front().rows, width}), result);
}

}  // namespace

void add_ml_ops(OpRegistry& ops) {
  ops.add({.name = "ai.onnx.ml.ArrayFeatureExtractor",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_array_feature_extractor,
           .reference = reference_array_feature_extractor,
           .work = movement_work});
  ops.add({.name = "ai.onnx.ml.Binarizer",
           .layout = LayoutClass::Oblivious,
           .infer = infer_same,
           .reference = reference_binarizer});
  ops.add({.name = "ai.onnx.ml.LabelEncoder",
           .infer = infer_label_encoder,
           .reference = reference_label_encoder,
           .work = lookup_work});
  ops.add({.name = "ai.onnx.ml.CategoryMapper",
           .infer = infer_category_mapper,
           .reference = reference_label_encoder,
           .work = lookup_work});
  ops.add({.name = "ai.onnx.ml.Normalizer", .infer = infer_float_same, .reference = reference_normalizer});
  ops.add({.name = "ai.onnx.ml.Scaler", .infer = infer_float_same, .reference = reference_scaler});
  ops.add({.name = "ai.onnx.ml.Imputer", .infer = infer_same, .reference = reference_imputer});
  ops.add({.name = "ai.onnx.ml.OneHotEncoder",
           .infer = infer_one_hot_encoder,
           .reference = reference_one_hot_encoder,
           .work = lookup_work});
  ops.add({.name = "ai.onnx.ml.FeatureVectorizer",
           .max_inputs = -1,
           .infer = infer_feature_vectorizer,
           .reference = reference_feature_vectorizer});
}

}  // namespace neo
