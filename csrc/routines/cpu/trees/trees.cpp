#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "routines/cpu/tables/table_rows.h"
#include "routines/cpu/trees/packed_forest.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void forest_keys(const ForestKeysArgs&);
                  void forest_leaves(const ForestView&, const ForestTree*, int64_t, const int32_t*, int64_t, uint32_t*);
                  void forest_sum_one(const ForestView&, const ForestTree*, int64_t, const uint32_t*, int64_t, double*);
                  void forest_sum_all(const ForestView&, int64_t, const uint32_t*, int64_t, double*))

namespace neo {
namespace {

struct ForestCall {
  int64_t rows = 0;
  int64_t features = 0;
  int64_t task_rows = 0;
  int64_t key_bytes = 0;  // of the rows of a task, at the beginning of its workspace
  TaskSplit split;        // of the rows, or of the trees where few rows descend many of them
  bool by_trees = false;
};

// The use of the sums of a row.
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

struct ForestKernels {
  decltype(&scalar::forest_keys) keys;
  decltype(&scalar::forest_leaves) leaves;
  decltype(&scalar::forest_sum_one) sum_one;
  decltype(&scalar::forest_sum_all) sum_all;
};

// Element: of the features.
template <class Element>
class ForestStep final : public KernelStep {
 public:
  static constexpr bool kRanked = !std::is_same_v<Element, float>;

  ForestStep(const Forest& forest, ForestResult result, const Target& target, const std::string& place)
      : forest_(PackedForest::of(forest, {kRanked, target.lanes()}, place)),
        result_(std::move(result)),
        transform_(result_.transform, target.isa),
        threads_(target.threads),
        kernels_{NEO_PICK_TIER(target.isa, forest_keys), NEO_PICK_TIER(target.isa, forest_leaves),
                 NEO_PICK_TIER(target.isa, forest_sum_one), NEO_PICK_TIER(target.isa, forest_sum_all)},
        place_(place) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole rows");
    const Dims& dims = args[0].dims;
    ForestCall call;
    call.rows = dims.size() == 2 ? dims[0] : 1;
    call.features = dims.back();
    NEO_CHECK(call.features >= forest_.features, Shape, "TreeEnsemble", "a branch must look at a feature. Got ",
              forest_.features - 1, ", expected less than ", call.features, " - at ", place_);
    call.by_trees = call.rows < kForestFewRows;
    if (call.by_trees) {
      call.task_rows = kForestRows;
      call.key_bytes = group_keys() * static_cast<int64_t>(sizeof(int32_t));
      call.split = TaskSplit::of(ceil_div(std::ssize(forest_.trees), kForestBlockTrees), 2 * operations(call.rows));
      return Prepared::of(call, call.key_bytes + all_leaves_bytes() + sum_bytes(kForestFewRows));
    }
    // A forest that is read from afar is read for many rows at once, the keys of which stay near.
    const int64_t row_bytes = group_keys() / kForestRows * static_cast<int64_t>(sizeof(int32_t)) + sum_bytes(1);
    const int64_t near = std::clamp<int64_t>(kNearBytes / row_bytes, 1, kMaxTaskRows);
    const int64_t parts = (forest_.bytes > kNearBytes ? 2 : 8) * std::max(1, threads_);
    const int64_t rows = std::min(near, ceil_div(call.rows, parts));
    call.task_rows = std::max<int64_t>(1, ceil_div(rows, kForestRows)) * kForestRows;
    call.key_bytes = call.task_rows / kForestRows * group_keys() * static_cast<int64_t>(sizeof(int32_t));
    call.split = TaskSplit::of(ceil_div(call.rows, call.task_rows), operations(call.rows),
                               call.key_bytes + kLeavesBytes + sum_bytes(call.task_rows), threads_);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const ForestCall*>(prepared);
    if (call.by_trees) return run_trees(call, args, scratch, team);
    run_tasks_with<std::byte>(team, call.split, scratch, [&](int64_t begin, int64_t end, std::byte* workspace) {
      auto* keys = reinterpret_cast<int32_t*>(workspace);
      auto* leaves = reinterpret_cast<uint32_t*>(workspace + call.key_bytes);
      auto* sums = reinterpret_cast<double*>(workspace + call.key_bytes + kLeavesBytes);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task * call.task_rows;
        const int64_t rows = std::min(call.task_rows, call.rows - first);
        write_keys(call, reinterpret_cast<const Element*>(args[0]) + first * call.features, rows, keys);
        std::fill(sums, sums + rows * result_.targets, first_sum(result_.aggregate));
        // Data that one group alone reads need not stay in the cache.
        const int64_t count = std::ssize(forest_.trees);
        for (int64_t t = 0; rows <= kForestRows && t < count; t += kForestBlockTrees)
          sum_block(t, std::min(t + kForestBlockTrees, count), keys, rows, leaves, sums);
        for (size_t block = 0; rows > kForestRows && block + 1 < forest_.block_begin.size(); ++block)
          sum_block(forest_.block_begin[block], forest_.block_begin[block + 1], keys, rows, leaves, sums);
        finish_rows(sums, rows, first, args);
      }
    });
  }

 private:
  // The leaves of all trees by tasks of trees, then the votes in the trees' order.
  void run_trees(const ForestCall& call, std::byte* const* args, std::byte* scratch, Team& team) const {
    auto* keys = reinterpret_cast<int32_t*>(scratch);
    auto* leaves = reinterpret_cast<uint32_t*>(scratch + call.key_bytes);
    auto* sums = reinterpret_cast<double*>(scratch + call.key_bytes + all_leaves_bytes());
    const ForestView view = forest_.view();
    const int64_t count = std::ssize(forest_.trees);
    write_keys(call, reinterpret_cast<const Element*>(args[0]), call.rows, keys);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      const int64_t first = begin * kForestBlockTrees, last = std::min(count, end * kForestBlockTrees);
      kernels_.leaves(view, view.trees + first, last - first, keys, call.rows, leaves + first * kForestFewRows);
    });
    std::fill(sums, sums + call.rows * result_.targets, first_sum(result_.aggregate));
    sum_leaves(0, count, leaves, call.rows, sums);
    finish_rows(sums, call.rows, 0, args);
  }

  int64_t sum_bytes(int64_t rows) const {
    return rows * std::max(result_.targets, result_.scores) * static_cast<int64_t>(sizeof(double));
  }
  int64_t all_leaves_bytes() const {
    const int64_t leaves = std::ssize(forest_.trees) * kForestFewRows;
    return ceil_div(leaves * static_cast<int64_t>(sizeof(uint32_t)), int64_t{64}) * 64;
  }

  static constexpr int64_t kLeavesBytes = kForestBlockTrees * kForestRows * static_cast<int64_t>(sizeof(uint32_t));
  static constexpr int64_t kNearBytes = 256 << 10;
  static constexpr int64_t kMaxTaskRows = 2048;

  int64_t group_keys() const { return (std::ssize(forest_.slots) + 1) * kForestRows; }
  int64_t operations(int64_t rows) const {
    return static_cast<int64_t>(static_cast<double>(rows) *
                                (32 * forest_.steps + 16 * static_cast<double>(forest_.slots.size())));
  }

  void write_keys(const ForestCall& call, const Element* x, int64_t rows, int32_t* keys) const {
    if constexpr (!kRanked) {
      kernels_.keys({x, rows, call.features, forest_.slots.data(), std::ssize(forest_.slots), keys});
    } else {
      for (int64_t first = 0; first < rows; first += kForestRows, keys += group_keys()) {
        std::fill(keys, keys + kForestRows, std::numeric_limits<int32_t>::min());
        const int64_t count = std::min(kForestRows, rows - first);
        for (size_t s = 0; s < forest_.slots.size(); ++s) {
          const Element* column = x + first * call.features + forest_.slots[s].feature;
          int32_t* to = keys + static_cast<int64_t>(s + 1) * kForestRows;
          for (int64_t r = 0; r < count; ++r) to[r] = rank(s, static_cast<double>(column[r * call.features]));
          // Lanes that have no row have keys, too.
          std::fill(to + count, to + kForestRows, 0);
        }
      }
    }
  }

  // The number of thresholds below x. The steps do not depend on x, so that the searches of rows overlap.
  int32_t rank(size_t slot, double x) const {
    if (x != x) return forest_.slots[slot].nan_key;
    const int64_t* const begin = forest_.rank_keys.data() + forest_.rank_begin[slot];
    const int64_t key = order_key(x);
    const int64_t* at = begin;
    int64_t left = forest_.rank_begin[slot + 1] - forest_.rank_begin[slot];
    for (int64_t half = left / 2; left > 1; left -= half, half = left / 2) at += half & -int64_t{at[half - 1] < key};
    return static_cast<int32_t>(at - begin + (*at < key ? 1 : 0));
  }

  void sum_block(int64_t begin, int64_t end, const int32_t* keys, int64_t rows, uint32_t* leaves, double* sums) const {
    const ForestView view = forest_.view();
    for (int64_t first = 0; first < rows; first += kForestRows, keys += group_keys()) {
      const int64_t count = std::min(kForestRows, rows - first);
      kernels_.leaves(view, view.trees + begin, end - begin, keys, count, leaves);
      sum_leaves(begin, end, leaves, count, sums + first * result_.targets);
    }
  }

  // Adds the votes of trees [begin, end) for rows of one group.
  void sum_leaves(int64_t begin, int64_t end, const uint32_t* leaves, int64_t rows, double* sums) const {
    const ForestView view = forest_.view();
    switch (forest_.form) {
      case PackedForest::Votes::One:
        return kernels_.sum_one(view, view.trees + begin, end - begin, leaves, rows, sums);
      case PackedForest::Votes::All:
        return kernels_.sum_all(view, end - begin, leaves, rows, sums);
      case PackedForest::Votes::List:
        return sum_lists(end - begin, leaves, rows, sums);
    }
  }

  void sum_lists(int64_t trees, const uint32_t* leaves, int64_t rows, double* sums) const {
    const int64_t stride = leaf_stride(rows);
    for (int64_t i = 0; i < trees; ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        const uint32_t leaf = leaves[i * stride + r];
        for (uint32_t v = forest_.votes_begin[leaf]; v < forest_.votes_begin[leaf + 1]; ++v) {
          vote(result_.aggregate, sums[r * result_.targets + forest_.votes[v].target], forest_.votes[v].weight);
        }
      }
    }
  }

  void finish_rows(double* sums, int64_t rows, int64_t first, std::byte* const* args) const {
    for (int64_t r = rows - 1; r >= 0; --r) finish(sums, r, first + r, args);
    if (by_kernel() && result_.scores_at >= 0)
      transform_(reinterpret_cast<float*>(args[result_.scores_at]) + first * result_.scores, rows, result_.scores);
  }

  bool gives_doubles() const { return std::is_same_v<Element, double> && result_.keeps_dtype; }
  bool by_kernel() const { return transform_.is_kernel() && !gives_doubles(); }

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
    const std::span<double> row_scores(scores, static_cast<size_t>(result_.scores));
    if (result_.labels_at >= 0) {
      const int64_t best = by_kernel() ? std::max_element(row_scores.begin(), row_scores.end()) - row_scores.begin()
                                       : apply_to_classes(result_.transform, row_scores);
      reinterpret_cast<int64_t*>(args[result_.labels_at])[row] = result_.labels[static_cast<size_t>(best)];
    } else if (!by_kernel()) {
      apply_post_transform(result_.transform, row_scores);
    }
    if (result_.scores_at < 0) return;
    if (gives_doubles()) {
      std::copy(scores, scores + result_.scores,
                reinterpret_cast<double*>(args[result_.scores_at]) + row * result_.scores);
    } else {
      auto* to = reinterpret_cast<float*>(args[result_.scores_at]) + row * result_.scores;
      for (int64_t t = 0; t < result_.scores; ++t) to[t] = static_cast<float>(scores[t]);
    }
  }

  PackedForest forest_;
  ForestResult result_;
  ScoreTransform transform_;
  int threads_;
  ForestKernels kernels_;
  std::string place_;
};

class TreesRoutine final : public RoutineOf<TreesRoutine> {
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
    Candidate c = Candidate::plain(workload);
    const auto keys = static_cast<double>(workload.root().inputs.front()->shape().element_count().hint());
    c.cost.time_us = kCallUs + static_cast<double>(workload.work(ops).flops.hint()) * kOperationUs + keys * kKeyUs;
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    switch (node.inputs.front()->dtype()) {
      case DType::Float32:
        return step<float>(node, target);
      case DType::Int32:
        return step<int32_t>(node, target);
      case DType::Int64:
        return step<int64_t>(node, target);
      default:
        return step<double>(node, target);
    }
  }

 private:
  template <class Element>
  static std::unique_ptr<Step> step(const Node& node, const Target& target) {
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
    return std::make_unique<ForestStep<Element>>(forest, std::move(result), target, node.place());
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(trees, TreesRoutine)

}  // namespace neo
