#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "ops/labels.h"
#include "ops/movement.h"
#include "routines/families.h"

namespace neo {
namespace {

constexpr std::string_view kOneHotEncoder = "ai.onnx.ml.OneHotEncoder";

// The output as it was planned, else new.
Tensor& host_output(HostValue& output, DType dtype, const Dims& dims) {
  if (output.kind != HostValue::Kind::Tensor) output = Tensor(dtype, dims);
  return output.tensor;
}

const void* item_at(const Tensor& t, int64_t i) {
  return t.as<char>() + i * item_bytes(t.dtype());
}

// f(i, position) for every element of x, -1 where it is none of the keys. `as_integer`: floats are truncated.
template <class F>
void look_up_all(const KeyTable& table, const Tensor& x, bool as_integer, F&& f) {
  const int64_t count = x.size();
  if (table.dtype() == DType::String) {
    const std::string* texts = x.strings();
    for (int64_t i = 0; i < count; ++i) f(i, table.find(texts[i]));
  } else if (!as_integer && is_float(table.dtype())) {
    for (int64_t i = 0; i < count; ++i) f(i, table.find(load_double(x.dtype(), item_at(x, i))));
  } else if (x.dtype() == DType::Int64) {
    const auto* numbers = x.as<int64_t>();
    for (int64_t i = 0; i < count; ++i) f(i, table.find(numbers[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) f(i, table.find(load_int64(x.dtype(), item_at(x, i))));
  }
}

// A LabelEncoder, or a CategoryMapper.
class LabelStep final : public HostStep {
 public:
  LabelStep(const Node& node, DType input) : mapping_(label_mapping(node, input)), table_(mapping_.keys) {}

  static bool fits(const Node& node, DType input) {
    const LabelMapping mapping = label_mapping(node, input);
    return mapping.keys.size() == mapping.values.size() &&
           (input == DType::String) == (mapping.keys.dtype() == DType::String);
  }

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team&) const override {
    const Tensor& x = inputs[0].tensor;
    const DType dtype = mapping_.values.dtype();
    const Tensor& y = host_output(outputs[0], dtype, x.dims());
    if (dtype == DType::String) return map<std::string>(x, y);
    if (item_bytes(dtype) == 8) return map<uint64_t>(x, y);
    if (item_bytes(dtype) == 4) return map<uint32_t>(x, y);
    const ElementMover move(dtype, mapping_.values.data(), y.data());
    look_up_all(table_, x, false, [&](int64_t i, int64_t found) {
      if (found >= 0) {
        move(i, found);
      } else {
        fill_elements(dtype, y.data(), i, 1, mapping_.fallback.data());
      }
    });
  }

 private:
  template <class T>
  void map(const Tensor& x, const Tensor& y) const {
    const T* values = mapping_.values.as<T>();
    const T& fallback = *mapping_.fallback.as<T>();
    T* to = y.as<T>();
    look_up_all(table_, x, false, [&](int64_t i, int64_t found) { to[i] = found >= 0 ? values[found] : fallback; });
  }

  LabelMapping mapping_;
  KeyTable table_;
};

class OneHotStep final : public HostStep {
 public:
  explicit OneHotStep(const Node& node)
      : table_(category_list(node)),
        categories_(category_list(node).size()),
        takes_others_(node.int_attr("zeros", 1) != 0),
        place_(node.place()) {}

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team&) const override {
    const Tensor& x = inputs[0].tensor;
    Dims dims = x.dims();
    dims.push_back(categories_);
    auto* y = host_output(outputs[0], DType::Float32, dims).as<float>();
    std::fill(y, y + x.size() * categories_, 0.0F);
    look_up_all(table_, x, true, [&](int64_t i, int64_t found) {
      NEO_CHECK(found >= 0 || takes_others_, Shape, kOneHotEncoder, "an element must be a category. Got element ", i,
                " outside them - at ", place_);
      if (found >= 0) y[i * categories_ + found] = 1;
    });
  }

 private:
  KeyTable table_;
  int64_t categories_;
  bool takes_others_;
  std::string place_;
};

// N-grams as paths in a tree of words: a step down is a look-up of a node and a word.
class TfIdfStep final : public HostStep {
 public:
  TfIdfStep(const Node& node, DType input)
      : words_(input == DType::String ? word_list(node) : number_list(node)),
        shortest_(std::max<int64_t>(1, node.int_attr("min_gram_length", 1))),
        longest_(node.int_attr("max_gram_length", 1)),
        skips_(node.int_attr("max_skip_count", 0)) {
    const auto indexes = node.ints_attr("ngram_indexes");
    const auto weights = node.floats_attr("weights");
    const std::string mode = node.string_attr("mode", "TF");
    counts_ = mode != "IDF";
    width_ = *std::max_element(indexes.begin(), indexes.end()) + 1;
    scale_.assign(static_cast<size_t>(width_), 1.0F);
    for (size_t i = 0; mode != "TF" && i < std::min(weights.size(), indexes.size()); ++i)
      scale_[static_cast<size_t>(indexes[i])] = static_cast<float>(weights[i]);
    plant(node, input, indexes);
  }

  // Whether the tree's conditions hold, as they do for every model that the reference takes.
  static bool fits(const Node& node, DType input) {
    const auto starts = node.ints_attr("ngram_counts");
    const auto indexes = node.ints_attr("ngram_indexes");
    const std::string mode = node.string_attr("mode", "TF");
    const auto size = static_cast<int64_t>(input == DType::String ? node.strings_attr("pool_strings").size()
                                                                  : node.ints_attr("pool_int64s").size());
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return false;
    if (indexes.empty() || *std::min_element(indexes.begin(), indexes.end()) < 0) return false;
    int64_t grams = 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto length = static_cast<int64_t>(i) + 1;
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
      if (starts[i] < 0 || starts[i] > end || end > size || (end - starts[i]) % length != 0) return false;
      grams += (end - starts[i]) / length;
    }
    return grams <= std::ssize(indexes);
  }

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team&) const override {
    const Tensor& x = inputs[0].tensor;
    const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1;
    const int64_t size = x.rank() == 0 ? 1 : x.dims().back();
    auto* y = host_output(outputs[0], DType::Float32, x.rank() == 2 ? Dims{rows, width_} : Dims{width_}).as<float>();
    std::fill(y, y + rows * width_, 0.0F);
    std::vector<int64_t> words(static_cast<size_t>(x.size()));
    look_up_all(words_, x, true, [&](int64_t i, int64_t found) { words[static_cast<size_t>(i)] = found; });
    std::vector<int64_t> touched;
    for (int64_t r = 0; r < rows; ++r, y += width_) {
      touched.clear();
      count_row(words.data() + r * size, size, y, touched);
      for (const int64_t place : touched) y[place] = (counts_ ? y[place] : 1) * scale_[static_cast<size_t>(place)];
    }
  }

 private:
  static Tensor word_list(const Node& node) {
    const auto pool = node.strings_attr("pool_strings");
    return Tensor::from<std::string>(DType::String, {std::ssize(pool)}, pool);
  }
  static Tensor number_list(const Node& node) {
    const auto pool = node.ints_attr("pool_int64s");
    return Tensor::from<int64_t>(DType::Int64, {std::ssize(pool)}, pool);
  }

  static int64_t step_key(int64_t tree_node, int64_t word) { return tree_node << 32 | word; }

  // Words of the pool are known by the last position of equal ones.
  void plant(const Node& node, DType input, const std::vector<int64_t>& indexes) {
    const auto texts = node.strings_attr("pool_strings");
    const auto numbers = node.ints_attr("pool_int64s");
    const auto word_at = [&](int64_t i) {
      return input == DType::String ? words_.find(texts[static_cast<size_t>(i)])
                                    : words_.find(numbers[static_cast<size_t>(i)]);
    };
    const auto starts = node.ints_attr("ngram_counts");
    const int64_t size = input == DType::String ? std::ssize(texts) : std::ssize(numbers);
    std::map<int64_t, int64_t> steps;
    std::vector<std::vector<int64_t>> places(1);
    size_t gram = 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto length = static_cast<int64_t>(i) + 1;
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
      for (int64_t at = starts[i]; at < end; at += length, ++gram) {
        if (length < shortest_ || length > longest_) continue;
        int64_t tree_node = 0;
        for (int64_t k = 0; k < length; ++k) {
          const auto [next, is_new] = steps.try_emplace(step_key(tree_node, word_at(at + k)), std::ssize(places));
          if (is_new) places.emplace_back();
          tree_node = next->second;
        }
        places[static_cast<size_t>(tree_node)].push_back(indexes[gram]);
      }
    }
    std::vector<int64_t> keys;
    for (const auto& [key, next] : steps) {
      keys.push_back(key);
      next_.push_back(next);
    }
    steps_.emplace(Tensor::from<int64_t>(DType::Int64, {std::ssize(keys)}, keys));
    for (const auto& list : places) {
      places_begin_.push_back(std::ssize(places_));
      places_.insert(places_.end(), list.begin(), list.end());
    }
    places_begin_.push_back(std::ssize(places_));
  }

  // Counts at the places of a row, which are listed as they are touched.
  void count_row(const int64_t* words, int64_t size, float* counts, std::vector<int64_t>& touched) const {
    const int64_t most = std::min(longest_, size);
    // Words side by side, then those with so many of others between them; single words have nothing to skip.
    for (int64_t distance = 1; distance <= 1 + (most > 1 ? std::min(skips_, size) : 0); ++distance) {
      for (int64_t begin = 0; begin < size; ++begin) {
        int64_t tree_node = 0;
        int64_t at = begin;
        for (int64_t length = 1; length <= most && at < size && words[at] >= 0; ++length, at += distance) {
          const int64_t step = steps_->find(step_key(tree_node, words[at]));
          if (step < 0) break;
          tree_node = next_[static_cast<size_t>(step)];
          if (length == 1 && distance > 1) continue;
          for (int64_t p = places_begin_[static_cast<size_t>(tree_node)];
               p < places_begin_[static_cast<size_t>(tree_node) + 1]; ++p) {
            const int64_t place = places_[static_cast<size_t>(p)];
            if (counts[place] == 0) touched.push_back(place);
            counts[place] += 1;
          }
        }
      }
    }
  }

  KeyTable words_;
  int64_t shortest_, longest_, skips_;
  bool counts_ = true;
  int64_t width_ = 0;
  std::vector<float> scale_;
  std::optional<KeyTable> steps_;  // by node and word
  std::vector<int64_t> next_;      // by step: the node that it leads to
  std::vector<int64_t> places_begin_;
  std::vector<int64_t> places_;
};

// Encoders whose tables are hashed once.
class LookupRoutine final : public RoutineOf<LookupRoutine> {
 public:
  std::string_view name() const override { return "cpu/lookup"; }
  std::vector<std::string_view> roots() const override {
    return {"ai.onnx.ml.LabelEncoder", "ai.onnx.ml.CategoryMapper", kOneHotEncoder, "TfIdfVectorizer"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank()) return "the rank of the input is not known";
    const DType dtype = input->dtype();
    if (node.op == kOneHotEncoder) {
      const bool fits = (dtype == DType::String) == (category_list(node).dtype() == DType::String);
      return fits ? std::nullopt : std::optional<std::string>("the input is not of the categories' type");
    }
    if (node.op == "TfIdfVectorizer") {
      if (input->shape().rank() > 2) return "the input is not [C] or [N,C]";
      return TfIdfStep::fits(node, dtype) ? std::nullopt : std::optional<std::string>("the pool does not fit");
    }
    return LabelStep::fits(node, dtype) ? std::nullopt
                                        : std::optional<std::string>("the keys do not fit the values or the input");
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target&, const OpRegistry& ops) const override {
    constexpr double kCallUs = 1, kStepUs = 0.0001;
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    c.cost.time_us = kCallUs + static_cast<double>(workload.work(ops).flops.hint()) * kStepUs;
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    const DType input = node.inputs.front()->dtype();
    if (node.op == kOneHotEncoder) return std::make_unique<OneHotStep>(node);
    if (node.op == "TfIdfVectorizer") return std::make_unique<TfIdfStep>(node, input);
    return std::make_unique<LabelStep>(node, input);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(lookup, LookupRoutine)

}  // namespace neo
