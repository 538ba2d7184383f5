#include "ops/labels.h"

#include <cmath>

#include "base/check.h"
#include "ops/elements.h"

namespace neo {
namespace {

Tensor float_list(const std::vector<double>& list) {
  const std::vector<float> rounded(list.begin(), list.end());
  return Tensor::from<float>(DType::Float32, {static_cast<int64_t>(list.size())}, rounded);
}

Tensor int_list(const std::vector<int64_t>& list) {
  return Tensor::from<int64_t>(DType::Int64, {static_cast<int64_t>(list.size())}, list);
}

Tensor string_list(const std::vector<std::string>& list) {
  return Tensor::from<std::string>(DType::String, {static_cast<int64_t>(list.size())}, list);
}

// "keys_tensor", "keys_strings", "keys_int64s" or "keys_floats", whichever is there.
Tensor label_list(const Node& node, const std::string& stem) {
  if (const Tensor* tensor = node.tensor_attr(stem + "_tensor")) return *tensor;
  if (node.has_attr(stem + "_strings")) return string_list(node.strings_attr(stem + "_strings"));
  if (node.has_attr(stem + "_int64s")) return int_list(node.ints_attr(stem + "_int64s"));
  NEO_CHECK(node.has_attr(stem + "_floats"), Model, node.op, "the labels must have ", stem, " - at ", node.place());
  return float_list(node.floats_attr(stem + "_floats"));
}

Tensor default_label(const Node& node, DType dtype) {
  if (const Tensor* tensor = node.tensor_attr("default_tensor")) {
    NEO_CHECK(tensor->dtype() == dtype && tensor->size() == 1, Model, node.op,
              "default_tensor must be one element of the values' type. Got ", name(tensor->dtype()), ", expected ",
              name(dtype), " - at ", node.place());
    return *tensor;
  }
  if (dtype == DType::String) return string_list({node.string_attr("default_string", "_Unused")});
  Tensor fallback(dtype, {1});
  if (is_float(dtype)) {
    store_double(dtype, fallback.data(), node.float_attr("default_float", -0.0));
  } else {
    store_int64(dtype, fallback.data(), node.int_attr("default_int64", -1));
  }
  return fallback;
}

}  // namespace

KeyTable::KeyTable(Tensor keys) : keys_(std::move(keys)) {
  const int64_t count = keys_.size();
  mask_ = std::bit_ceil(static_cast<size_t>(2 * count + 1)) - 1;
  places_.assign(mask_ + 1, -1);
  const bool is_text = keys_.dtype() == DType::String;
  if (!is_text && is_float(keys_.dtype())) reals_ = load_doubles(keys_);
  if (!is_text && !is_float(keys_.dtype())) ints_ = load_ints(keys_);
  const auto put = [&](size_t hash, int64_t i, auto&& equals) {
    size_t at = hash & mask_;
    while (places_[at] >= 0 && !equals(places_[at])) at = (at + 1) & mask_;
    places_[at] = i;
  };
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<size_t>(i);
    if (is_text) {
      const std::string* texts = keys_.strings();
      put(std::hash<std::string>()(texts[i]), i, [&](int64_t k) { return texts[k] == texts[i]; });
    } else if (ints_.empty() && std::isnan(reals_[n])) {
      nan_ = i;
    } else if (ints_.empty()) {
      put(spread(std::bit_cast<uint64_t>(reals_[n] + 0.0)), i,
          [&](int64_t k) { return reals_[static_cast<size_t>(k)] == reals_[n]; });
    } else {
      put(spread(static_cast<uint64_t>(ints_[n])), i,
          [&](int64_t k) { return ints_[static_cast<size_t>(k)] == ints_[n]; });
    }
  }
}

LabelMapping label_mapping(const Node& node, DType input) {
  LabelMapping mapping;
  if (node.op == "ai.onnx.ml.CategoryMapper") {
    mapping = {int_list(node.ints_attr("cats_int64s")), string_list(node.strings_attr("cats_strings")), {}};
    if (input == DType::String) std::swap(mapping.keys, mapping.values);
  } else {
    mapping = {label_list(node, "keys"), label_list(node, "values"), {}};
  }
  mapping.fallback = default_label(node, mapping.values.dtype());
  return mapping;
}

Work lookup_work(const Node& node) {
  constexpr int64_t kSteps = 100;
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank()) return {0, operand_bytes(node)};
  return {x->shape().element_count() * Dim(kSteps), operand_bytes(node)};
}

Tensor category_list(const Node& node) {
  const auto strings = node.strings_attr("cats_strings");
  return strings.empty() ? int_list(node.ints_attr("cats_int64s")) : string_list(strings);
}

}  // namespace neo
