#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/int_math.h"
#include "ops/scores.h"
#include "routines/cpu/tables/tables.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/routine.h"

NEO_DECLARE_TIERS(void table_dots(const TableProductArgs&); void table_products(const TableProductArgs&);
                  void table_distances(const TableProductArgs&); void table_kernel(const TableKernelArgs&);
                  void table_scores(const TableScoresArgs&); void table_normalize(const TableNormArgs&))

namespace neo {

// The rows of a table, cut into tasks.
struct TableRows {
  static constexpr int64_t kTaskRows = 64;

  int64_t rows = 0;
  int64_t features = 0;
  TaskSplit split;

  // `operations` and `row_bytes` are of a row; a task has `task_bytes` besides.
  static TableRows of(const Arg& x, int64_t operations, int64_t row_bytes, int64_t task_bytes) {
    NEO_ASSERT(x.is_dense(), "it takes whole rows");
    TableRows table;
    table.rows = x.dims.size() == 2 ? x.dims[0] : 1;
    table.features = x.dims.back();
    table.split = TaskSplit::of(ceil_div(table.rows, kTaskRows), table.rows * operations,
                                task_bytes + std::min(table.rows, kTaskRows) * row_bytes);
    return table;
  }

  // f(first, rows, workspace)
  template <class F>
  void run(std::byte* scratch, Team& team, F&& f) const {
    run_tasks_with<std::byte>(team, split, scratch, [&](int64_t begin, int64_t end, std::byte* workspace) {
      for (int64_t task = begin; task < end; ++task)
        f(task * kTaskRows, std::min(kTaskRows, rows - task * kTaskRows), workspace);
    });
  }
};

// The only candidate of a routine of tables.
inline std::vector<Candidate> table_candidates(const Workload& workload, const Target& target, const OpRegistry& ops) {
  Candidate c = Candidate::plain(workload);
  price(c, workload, {StepFamily::Table, static_cast<double>(workload.work(ops).flops.hint()) / target.lanes(), 1},
        target);
  return {std::move(c)};
}

// Why the input of a node is not a table of float32 with a known number of features.
inline std::optional<std::string> rejects_table(const Node& node) {
  const Value* input = node.inputs.front();
  if (!input->type.is_tensor() || !input->shape().has_rank()) return "the rank of the input is not known";
  if (input->dtype() != DType::Float32) return "the features are not float32";
  if (input->shape().rank() < 1 || !input->shape().dims().back().is_constant())
    return "the number of features is not known";
  if (!node.symbols.empty()) return "the number of rows or scores is only known when it runs";
  return std::nullopt;
}

inline int64_t feature_count(const Node& node) {
  return node.inputs.front()->shape().dims().back().value();
}

// Weights of rows [columns][features] as the kernels of products take them.
class TableWeights {
 public:
  TableWeights(std::span<const double> weights, std::span<const double> bias, int64_t columns, int64_t features,
               int lanes, bool whole_vectors)
      : features_(features),
        is_few_(!whole_vectors && are_few(columns, features, lanes)),
        columns_(is_few_ ? columns : ceil_div(columns, int64_t{lanes}) * lanes),
        bias_(static_cast<size_t>(columns_)),
        weights_(static_cast<size_t>(columns_ * features)) {
    std::copy(bias.begin(), bias.end(), bias_.begin());
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t f = 0; f < features; ++f) {
        const int64_t to = is_few_ ? c * features + f : f * columns_ + c;
        weights_[static_cast<size_t>(to)] = static_cast<float>(weights[static_cast<size_t>(c * features + f)]);
      }
    }
  }

  bool is_few() const { return is_few_; }

  // Whether products along the features take less than those of whole vectors of columns: a dot product ends in some
  // steps between lanes.
  static bool are_few(int64_t columns, int64_t features, int lanes) {
    constexpr int64_t kEndSteps = 6;
    return columns * (ceil_div(features, int64_t{lanes}) + kEndSteps) < ceil_div(columns, int64_t{lanes}) * features;
  }

  int64_t columns() const { return columns_; }  // from one row of products to the next
  TableProductArgs args(const float* x, int64_t rows, float* y) const {
    return {x, rows, features_, weights_.data(), bias_.data(), columns_, y};
  }

 private:
  int64_t features_;
  bool is_few_;
  int64_t columns_;
  std::vector<float> bias_;
  std::vector<float> weights_;
};

// The transforms of scores that a kernel takes, whole blocks of rows at once.
class ScoreTransform {
 public:
  ScoreTransform(PostTransform transform, Isa isa) : transform_(transform), apply_(NEO_PICK_TIER(isa, table_scores)) {}

  bool is_kernel() const { return keeps_order(transform_); }
  void operator()(float* scores, int64_t rows, int64_t width) const {
    if (transform_ != PostTransform::None) apply_({transform_ == PostTransform::Softmax, rows, width, scores});
  }

 private:
  PostTransform transform_;
  decltype(&scalar::table_scores) apply_;
};

// Class labels of the positions that a classifier finds; none: the positions themselves.
inline int64_t label_of(const std::vector<int64_t>& labels, int64_t position) {
  return labels.empty() ? position : labels[static_cast<size_t>(position)];
}

// Indices of a classifier's arguments; -1: not wanted.
struct ClassifierOutputs {
  explicit ClassifierOutputs(const Node& node)
      : labels(node.output(0) ? 1 : -1), scores(node.output(1) ? (node.output(0) ? 2 : 1) : -1) {}
  int labels;
  int scores;
};

}  // namespace neo
