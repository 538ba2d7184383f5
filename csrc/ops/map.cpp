#include <algorithm>
#include <map>
#include <string_view>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

// Operators of ai.onnx.ml whose values are maps: keys and values are two tensors of one axis.

namespace neo {

namespace {

const Type& map_type(const InferContext& ctx) {
  const Type& type = ctx.type(0);
  if (type.kind != Type::Kind::Map) ctx.fail(ErrorKind::Type, str("the input must be a map. Got ", type.to_string()));
  return type;
}

struct Entries {
  const Tensor& keys;
  const Tensor& values;
};

Entries entries(const ReferenceContext& ctx) {
  const HostValue& value = ctx.value(0);
  if (value.kind != HostValue::Kind::Map) ctx.fail(ErrorKind::Type, "the input must be a map. Got another value");
  return {value.items[0].tensor, value.items[1].tensor};
}

// Positions of the keys in their order; of equal keys the last counts.
std::vector<int64_t> sorted_positions(const Tensor& keys) {
  const auto sort = [&](auto key_at) {
    std::map<decltype(key_at(0)), int64_t> positions;
    for (int64_t i = 0; i < keys.size(); ++i) positions[key_at(i)] = i;
    std::vector<int64_t> order;
    for (const auto& entry : positions) order.push_back(entry.second);
    return order;
  };
  if (keys.dtype() == DType::String) return sort([&](int64_t i) { return std::string_view(keys.strings()[i]); });
  const auto numbers = load_ints(keys);
  return sort([&](int64_t i) { return numbers[static_cast<size_t>(i)]; });
}

Tensor label_tensor(const Node& node, std::string_view ints, std::string_view strings) {
  const auto numbers = node.ints_attr(ints);
  const auto words = node.strings_attr(strings);
  NEO_CHECK(numbers.empty() != words.empty(), Model, node.op, "the labels must be either integers or strings. Got ",
            numbers.size(), " and ", words.size(), " - at ", node.place());
  if (words.empty()) return Tensor::from<int64_t>(DType::Int64, {static_cast<int64_t>(numbers.size())}, numbers);
  return Tensor::from<std::string>(DType::String, {static_cast<int64_t>(words.size())}, words);
}

// ZipMap

Tensor class_labels(const Node& node) {
  return label_tensor(node, "classlabels_int64s", "classlabels_strings");
}

void infer_zip_map(InferContext& ctx) {
  const Tensor labels = class_labels(ctx.node());
  ctx.check(ctx.type(0).is_tensor(), str("the input must be a tensor. Got ", ctx.type(0).to_string()));
  if (ctx.ranked(0)) {
    const Shape& shape = ctx.shape(0);
    ctx.check(shape.rank() == 1 || shape.rank() == 2, str("scores must be [N,C] or [C]. Got ", shape.to_string()));
    ctx.require_equal(shape[shape.rank() - 1], labels.size(), "there must be one label per score");
  }
  ctx.set_output(0, Type::sequence(Type::map(labels.dtype(), ctx.dtype(0))));
}

void reference_zip_map(ReferenceContext& ctx) {
  Tensor keys = class_labels(ctx.node());
  const Tensor& x = ctx.input(0);
  ctx.check(x.rank() == 1 || x.rank() == 2, str("scores must be [N,C] or [C]. Got ", to_string(x.dims())));
  ctx.check(x.dims().back() == keys.size(),
            str("there must be one label per score. Got ", x.dims().back(), ", expected ", keys.size()));
  const auto order = sorted_positions(keys);
  const auto count = static_cast<int64_t>(order.size());
  Tensor sorted_keys(keys.dtype(), {count});
  const ElementMover move_key(keys.dtype(), keys.data(), sorted_keys.data());
  for (int64_t i = 0; i < count; ++i) move_key(i, order[static_cast<size_t>(i)]);
  const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1;
  Tensor scores(x.dtype(), {rows, count});
  const ElementMover move(x.dtype(), x.data(), scores.data());
  const bool is_sorted = count == keys.size() && std::is_sorted(order.begin(), order.end());
  if (is_sorted) move(0, 0, rows * count);
  require_memory(rows * 3 * static_cast<int64_t>(sizeof(HostValue)));
  std::vector<HostValue> maps;
  maps.reserve(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count && !is_sorted; ++i)
      move(r * count + i, r * keys.size() + order[static_cast<size_t>(i)]);
    auto* row = static_cast<std::byte*>(scores.data()) + r * count * item_bytes(x.dtype());
    HostValue& map = maps.emplace_back();
    map.kind = HostValue::Kind::Map;
    map.items.reserve(2);
    map.items.emplace_back(sorted_keys);
    map.items.emplace_back(Tensor(x.dtype(), {count}, row, scores.owner()));
  }
  ctx.set_output(0, HostValue::sequence(std::move(maps)));
}

// DictVectorizer

Tensor vocabulary(const Node& node) {
  return label_tensor(node, "int64_vocabulary", "string_vocabulary");
}

void infer_dict_vectorizer(InferContext& ctx) {
  const Type& type = map_type(ctx);
  const Tensor words = vocabulary(ctx.node());
  ctx.check(words.dtype() == type.key(), str("the vocabulary must be of the keys' dtype. Got ", name(words.dtype()),
                                             ", expected ", name(type.key())));
  ctx.set_output(0, type.element->dtype, Shape::of({1, words.size()}));
}

void reference_dict_vectorizer(ReferenceContext& ctx) {
  const auto [keys, values] = entries(ctx);
  const Tensor words = vocabulary(ctx.node());
  if (words.dtype() != keys.dtype())
    ctx.fail(ErrorKind::Type, str("the vocabulary must be of the keys' dtype. Got ", name(words.dtype()), ", expected ",
                                  name(keys.dtype())));
  const Tensor& y = ctx.output(0, values.dtype(), {1, words.size()});
  const ElementMover move(values.dtype(), values.data(), y.data());
  const auto fill = [&](const auto* key, const auto* word) {
    std::map<std::remove_const_t<std::remove_pointer_t<decltype(key)>>, int64_t> positions;
    for (int64_t i = 0; i < keys.size(); ++i) positions[key[i]] = i;
    for (int64_t i = 0; i < words.size(); ++i) {
      const auto found = positions.find(word[i]);
      if (found != positions.end()) {
        move(i, found->second);
      } else {
        fill_elements(values.dtype(), y.data(), i, 1, blank_element(values.dtype()));
      }
    }
  };
  if (keys.dtype() == DType::String) {
    fill(keys.strings(), words.strings());
  } else {
    const auto numbers = load_ints(keys);
    fill(numbers.data(), words.as<int64_t>());
  }
}

// CastMap. Numbers become strings with six digits behind the point, and a string that is left out is "0.f", as ONNX
// Runtime has them: the ONNX text does not say.

DType cast_map_dtype(const Node& node) {
  const std::string to = node.string_attr("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return DType::Float32;
  if (to == "TO_INT64") return DType::Int64;
  NEO_CHECK(to == "TO_STRING", Model, node.op, "cast_to must be TO_FLOAT, TO_INT64 or TO_STRING. Got \"", to,
            "\" - at ", node.place());
  return DType::String;
}

bool is_sparse(const Node& node) {
  const std::string form = node.string_attr("map_form", "DENSE");
  NEO_CHECK(form == "DENSE" || form == "SPARSE", Model, node.op, "map_form must be DENSE or SPARSE. Got \"", form,
            "\" - at ", node.place());
  return form == "SPARSE";
}

int64_t sparse_size(const Node& node) {
  const int64_t size = node.int_attr("max_map", 1);
  NEO_CHECK(size > 0, Model, node.op, "max_map must be positive. Got ", size, " - at ", node.place());
  return size;
}

void infer_cast_map(InferContext& ctx) {
  const Type& type = map_type(ctx);
  ctx.check(type.key() != DType::String, "the keys must be integers. Got strings");
  const Dim width = is_sparse(ctx.node()) ? Dim(sparse_size(ctx.node())) : ctx.fresh("entries");
  ctx.set_output(0, cast_map_dtype(ctx.node()), Shape({1, width}));
}

void reference_cast_map(ReferenceContext& ctx) {
  const auto [keys, values] = entries(ctx);
  if (keys.dtype() == DType::String) ctx.fail(ErrorKind::Type, "the keys must be integers. Got strings");
  const DType dtype = cast_map_dtype(ctx.node());
  const auto order = sorted_positions(keys);
  const bool sparse = is_sparse(ctx.node());
  const int64_t size = sparse ? sparse_size(ctx.node()) : static_cast<int64_t>(order.size());
  const Tensor& y = ctx.output(0, dtype, {1, size});
  const Tensor converted(dtype, values.dims());
  if (dtype == DType::String && is_float(values.dtype())) {
    const auto numbers = load_doubles(values);
    for (size_t i = 0; i < numbers.size(); ++i) converted.strings()[i] = std::to_string(numbers[i]);
  } else {
    cast_elements(ctx, values, converted);
  }
  const ElementMover move(dtype, converted.data(), y.data());
  if (!sparse) {
    for (int64_t i = 0; i < size; ++i) move(i, order[static_cast<size_t>(i)]);
    return;
  }
  const std::string zero = "0.f";
  const void* blank = dtype == DType::String ? static_cast<const void*>(&zero) : blank_element(dtype);
  fill_elements(dtype, y.data(), 0, size, blank);
  const auto numbers = load_ints(keys);
  for (const int64_t i : order) {
    const int64_t at = numbers[static_cast<size_t>(i)];
    ctx.check(at >= 0, str("keys of a sparse map must not be negative. Got ", at));
    if (at < size) move(at, i);
  }
}

}  // namespace

void add_map_ops(OpRegistry& ops) {
  ops.add({.name = "ai.onnx.ml.ZipMap", .infer = infer_zip_map, .reference = reference_zip_map, .work = movement_work});
  ops.add({.name = "ai.onnx.ml.DictVectorizer",
           .infer = infer_dict_vectorizer,
           .reference = reference_dict_vectorizer,
           .work = movement_work});
  ops.add(
      {.name = "ai.onnx.ml.CastMap", .infer = infer_cast_map, .reference = reference_cast_map, .work = movement_work});
}

}  // namespace neo
