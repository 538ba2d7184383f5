#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/trees/packed_forest.h"
#include "routines/families.h"

namespace neo {
namespace {

constexpr int64_t kMaxTaskRows = 64;  // a tree that is in the first-level cache serves so many rows

struct ForestCall {
  int64_t rows = 0;
  int64_t features = 0;
  int64_t task_rows = 0;
  int64_t key_bytes = 0;  // of the rows of a task, at the beginning of its workspace
  TaskSplit split;
};

// What becomes of the sums of a row.
struct ForestResult {
  Aggregate aggregate = Aggregate::Sum;
  PostTransform transform = PostTransform::None;
  std::vector<double> base;
  int64_t trees = 0;
  int64_t targets = 0;
  int64_t scores = 0;           // of a row of the output: 2 of a binary classifier, else the targets
  int64_t binary_class = -1;    // of a binary classifier: the class that is voted for
  std::vector<int64_t> labels;  // of a classifier: what it gives for each place of the largest score
  bool keeps_dtype = false;     // TreeEnsemble gives the features' dtype, the others float32
  int labels_at = -1;           // arguments; -1: not wanted
  int scores_at = -1;
};

// The sum of no votes.
double first_sum(Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::Min:
      return std::numeric_limits<float>::max();
    case Aggregate::Max:
      return std::numeric_limits<float>::lowest();
    case Aggregate::Sum:
    case Aggregate::Average:
      break;
  }
  return 0;
}

inline void vote(Aggregate aggregate, double& sum, double weight) {
  if (aggregate == Aggregate::Min) {
    sum = std::min(sum, weight);
  } else if (aggregate == Aggregate::Max) {
    sum = std::max(sum, weight);
  } else {
    sum += weight;
  }
}

// The leaves below `at`; x[lane] are the keys of the lane's row.
template <class Key>
inline void descend(const typename PackedForest<Key>::Entry* entries, const Key* const (&x)[kForestLanes],
                    uint32_t (&at)[kForestLanes]) {
  uint32_t moved;
  do {
    moved = 0;
    for (int64_t lane = 0; lane < kForestLanes; ++lane) {
      const auto& entry = entries[at[lane]];
      const uint32_t next = entry.child + static_cast<uint32_t>(x[lane][entry.feature] > entry.key);
      moved |= next ^ at[lane];
      at[lane] = next;
    }
  } while (moved != 0);
}

// Element: of the features. Key: int32_t for float, else int64_t.
template <class Element, class Key>
class ForestStep final : public KernelStep {
 public:
  ForestStep(const Forest& forest, ForestResult result, const std::string& place)
      : forest_(PackedForest<Key>::of(forest, place)), result_(std::move(result)), place_(place) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole rows");
    const Dims& dims = args[0].dims;
    ForestCall call;
    call.rows = dims.size() == 2 ? dims[0] : 1;
    call.features = dims.back();
    NEO_CHECK(call.features >= forest_.features, Shape, "TreeEnsemble", "a branch must look at a feature. Got ",
              forest_.features - 1, ", expected less than ", call.features, " - at ", place_);
    const int64_t groups = ceil_div(call.rows, kForestLanes);
    call.task_rows = kForestLanes * std::clamp<int64_t>(groups / 16, 1, kMaxTaskRows / kForestLanes);
    call.key_bytes = call.task_rows * copies() * call.features * static_cast<int64_t>(sizeof(Key));
    call.key_bytes = ceil_div(call.key_bytes, 64) * 64;
    const int64_t sums = call.task_rows * std::max(result_.targets, result_.scores);
    call.split = TaskSplit::of(ceil_div(call.rows, call.task_rows), operations(call.rows, call.features),
                               call.key_bytes + sums * static_cast<int64_t>(sizeof(double)));
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const ForestCall*>(prepared);
    run_tasks_with<std::byte>(team, call.split, scratch, [&](int64_t begin, int64_t end, std::byte* workspace) {
      auto* keys = reinterpret_cast<Key*>(workspace);
      auto* sums = reinterpret_cast<double*>(workspace + call.key_bytes);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task * call.task_rows;
        const int64_t rows = std::min(call.task_rows, call.rows - first);
        write_keys(call, reinterpret_cast<const Element*>(args[0]) + first * call.features, rows, keys);
        std::fill(sums, sums + rows * result_.targets, first_sum(result_.aggregate));
        if (rows <= 2) {
          for (int64_t r = 0; r < rows; ++r) sum_row(keys + r, sums + r * result_.targets);
        } else {
          sum_rows(call, keys, rows, sums);
        }
        for (int64_t r = rows - 1; r >= 0; --r) finish(sums, r, first + r, args);
      }
    });
  }

 private:
  int64_t copies() const { return forest_.has_missing ? 2 : 1; }
  int64_t operations(int64_t rows, int64_t features) const {
    const double steps = static_cast<double>(forest_.trees.size()) * (forest_.mean_depth + 2);
    return static_cast<int64_t>(static_cast<double>(rows) * (8 * steps + 4 * static_cast<double>(features)));
  }

  // Groups of kForestLanes rows, a feature's keys side by side. Lanes without a row have the keys of 0.
  void write_keys(const ForestCall& call, const Element* x, int64_t rows, Key* keys) const {
    using Float = std::conditional_t<sizeof(Key) == sizeof(float), float, double>;
    const int64_t copies = this->copies(), group = call.features * copies * kForestLanes;
    const int64_t lanes = ceil_div(rows, kForestLanes) * kForestLanes;
    for (int64_t r = 0; r < lanes; ++r) {
      Key* to = keys + r / kForestLanes * group + r % kForestLanes;
      for (int64_t f = 0; f < call.features; ++f) {
        const Element element = r < rows ? x[r * call.features + f] : Element(0);
        const auto value = static_cast<Float>(element);
        Key key = order_key(value);
        Key missing = key;
        if (value != value) {
          key = std::numeric_limits<Key>::max();
          missing = std::numeric_limits<Key>::min();
        }
        to[f * copies * kForestLanes] = key;
        if (copies == 2) to[(f * copies + 1) * kForestLanes] = missing;
      }
    }
  }

  void add_leaf(const typename PackedForest<Key>::Tree& tree, uint32_t leaf, double* sums) const {
    if (tree.target >= 0) {
      vote(result_.aggregate, sums[tree.target], forest_.value[leaf]);
      return;
    }
    for (uint32_t v = forest_.votes_begin[leaf]; v < forest_.votes_begin[leaf + 1]; ++v) {
      vote(result_.aggregate, sums[forest_.votes[v].target], forest_.votes[v].weight);
    }
  }

  void sum_rows(const ForestCall& call, const Key* keys, int64_t rows, double* sums) const {
    const int64_t group = call.features * copies() * kForestLanes;
    for (const auto& tree : forest_.trees) {
      for (int64_t first = 0; first < rows; first += kForestLanes) {
        const Key* x[kForestLanes];
        uint32_t at[kForestLanes];
        for (int64_t lane = 0; lane < kForestLanes; ++lane) {
          x[lane] = keys + first / kForestLanes * group + lane;
          at[lane] = tree.root;
        }
        descend<Key>(forest_.entries.data(), x, at);
        const int64_t count = std::min(kForestLanes, rows - first);
        for (int64_t lane = 0; lane < count; ++lane) {
          add_leaf(tree, at[lane], sums + (first + lane) * result_.targets);
        }
      }
    }
  }

  // One row descends several trees together.
  void sum_row(const Key* keys, double* sums) const {
    const auto count = static_cast<int64_t>(forest_.trees.size());
    const Key* x[kForestLanes];
    std::fill(std::begin(x), std::end(x), keys);
    for (int64_t first = 0; first < count; first += kForestLanes) {
      uint32_t at[kForestLanes];
      for (int64_t lane = 0; lane < kForestLanes; ++lane) {
        at[lane] = forest_.trees[static_cast<size_t>(std::min(first + lane, count - 1))].root;
      }
      descend<Key>(forest_.entries.data(), x, at);
      const int64_t trees = std::min(kForestLanes, count - first);
      for (int64_t lane = 0; lane < trees; ++lane) {
        add_leaf(forest_.trees[static_cast<size_t>(first + lane)], at[lane], sums);
      }
    }
  }

  // Row r of the task, which is row `row` of the call. Rows are finished from the last on: a binary classifier's scores
  // take more room than its sums.
  void finish(double* all_sums, int64_t r, int64_t row, std::byte* const* args) const {
    double* sums = all_sums + r * result_.targets;
    for (int64_t t = 0; t < result_.targets; ++t) {
      if (result_.aggregate == Aggregate::Average) sums[t] /= static_cast<double>(std::max<int64_t>(1, result_.trees));
      if (!result_.base.empty()) sums[t] += result_.base[result_.base.size() == 1 ? 0 : static_cast<size_t>(t)];
    }
    double* scores = all_sums + r * result_.scores;
    if (result_.binary_class >= 0) {
      const double score = sums[result_.binary_class];
      const bool is_chance = result_.transform == PostTransform::None || result_.transform == PostTransform::Probit;
      scores[0] = is_chance ? 1 - score : -score;
      scores[1] = score;
    }
    apply_post_transform(result_.transform, {scores, static_cast<size_t>(result_.scores)});
    if (result_.labels_at >= 0) {
      const auto best = static_cast<size_t>(std::max_element(scores, scores + result_.scores) - scores);
      reinterpret_cast<int64_t*>(args[result_.labels_at])[row] = result_.labels[best];
    }
    if (result_.scores_at < 0) return;
    if (std::is_same_v<Element, double> && result_.keeps_dtype) {
      std::copy(scores, scores + result_.scores,
                reinterpret_cast<double*>(args[result_.scores_at]) + row * result_.scores);
    } else {
      auto* to = reinterpret_cast<float*>(args[result_.scores_at]) + row * result_.scores;
      for (int64_t t = 0; t < result_.scores; ++t) to[t] = static_cast<float>(scores[t]);
    }
  }

  PackedForest<Key> forest_;
  ForestResult result_;
  std::string place_;
};

class TreesRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu/trees"; }
  std::vector<std::string_view> roots() const override {
    return {"ai.onnx.ml.TreeEnsemble", "ai.onnx.ml.TreeEnsembleRegressor", "ai.onnx.ml.TreeEnsembleClassifier"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank()) return "the rank of the input is not known";
    const DType dtype = input->dtype();
    if (dtype != DType::Float32 && dtype != DType::Float64 && dtype != DType::Int32 && dtype != DType::Int64) {
      return "the features are not float32, float64, int32 or int64";
    }
    if (node.op == "ai.onnx.ml.TreeEnsemble" && dtype != DType::Float32 && dtype != DType::Float64)
      return "the results are not floats";
    if (!node.symbols.empty()) return "the number of rows is only known when it runs";
    if (!node.strings_attr("classlabels_strings").empty()) return "the class labels are strings";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target&, const OpRegistry& ops) const override {
    constexpr double kOperationUs = 0.0008, kKeyUs = 0.0015, kCallUs = 0.5;
    Candidate c;
    for (const Value* v : workload.inputs) c.inputs.emplace_back(plain_schema(v->type));
    for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
    const auto keys = static_cast<double>(workload.root().inputs.front()->shape().element_count().hint());
    c.cost.time_us = kCallUs + static_cast<double>(workload.work(ops).flops.hint()) * kOperationUs + keys * kKeyUs;
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    switch (node.inputs.front()->dtype()) {
      case DType::Float32:
        return step<float, int32_t>(node);
      case DType::Int32:
        return step<int32_t, int64_t>(node);
      case DType::Int64:
        return step<int64_t, int64_t>(node);
      default:
        return step<double, int64_t>(node);
    }
  }

 private:
  template <class Element, class Key>
  static std::unique_ptr<Step> step(const Node& node) {
    const Forest forest = read_forest(node);
    ForestResult result;
    result.aggregate = forest.aggregate;
    result.transform = tree_post_transform(node);
    result.base = forest.base;
    result.trees = static_cast<int64_t>(forest.roots.size());
    result.targets = result.scores = forest.targets;
    result.keeps_dtype = node.op == "ai.onnx.ml.TreeEnsemble";
    if (node.op == "ai.onnx.ml.TreeEnsembleClassifier") {
      const ClassLabels labels(node, "classlabels_int64s");
      if (is_binary_classifier(node)) {
        result.binary_class = node.ints_attr("class_ids").front();
        result.scores = 2;
      }
      for (int64_t i = 0; i < result.scores; ++i) {
        const auto at = static_cast<size_t>(i);
        const bool one = labels.size() == 1;
        result.labels.push_back(labels.size() > 1 ? labels.ints[at] : one && i == 1 ? labels.ints[0] : 0);
      }
      result.labels_at = node.output(0) ? 1 : -1;
      result.scores_at = node.output(1) ? (node.output(0) ? 2 : 1) : -1;
    } else {
      result.scores_at = 1;
    }
    return std::make_unique<ForestStep<Element, Key>>(forest, std::move(result), node.place());
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(trees, TreesRoutine)

}  // namespace neo
