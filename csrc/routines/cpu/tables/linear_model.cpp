#include "base/check.h"
#include "routines/cpu/tables/table_rows.h"
#include "routines/families.h"

namespace neo {
namespace {

constexpr std::string_view kLinearClassifier = "ai.onnx.ml.LinearClassifier";

// A LinearClassifier, or a LinearRegressor, whose targets are scores without classes.
class LinearStep final : public KernelStep {
 public:
  LinearStep(const Node& node, const Target& target)
      : is_classifier_(node.op == kLinearClassifier),
        outputs_(node),
        labels_(is_classifier_ ? node.ints_attr("classlabels_ints") : std::vector<int64_t>{}),
        classes_{post_transform_attr(node), sets(node), labels_.size()},
        transform_(classes_.transform, target.isa),
        weights_(node.floats_attr("coefficients"), node.floats_attr("intercepts"), classes_.sets, feature_count(node),
                 target.lanes(), false),
        multiply_(weights_.is_few() ? NEO_PICK_TIER(target.isa, table_dots)
                                    : NEO_PICK_TIER(target.isa, table_products)) {}

  // Whether the kernel's conditions hold, as they do for every model that the reference takes.
  static bool fits(const Node& node) {
    const int64_t features = feature_count(node);
    const int64_t count = std::ssize(node.floats_attr("coefficients"));
    const int64_t intercepts = std::ssize(node.floats_attr("intercepts"));
    if (features <= 0 || count <= 0 || count % features != 0) return false;
    const int64_t sets = count / features;
    if (intercepts != 0 && intercepts != sets) return false;
    if (node.op != kLinearClassifier) return node.int_attr("targets", 1) == sets;
    const int64_t labels = std::ssize(node.ints_attr("classlabels_ints"));
    return sets == 1 || labels == 0 || labels >= sets;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const int64_t operations = 2 * args[0].dims.back() * weights_.columns() + 100 * classes_.width();
    const auto table =
        TableRows::of(args[0], operations, static_cast<int64_t>(sizeof(float)) * weights_.columns(), row_bytes());
    return Prepared::of(table, table.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& table = *reinterpret_cast<const TableRows*>(prepared);
    table.run(scratch, team, [&](int64_t first, int64_t rows, std::byte* workspace) {
      auto* row = reinterpret_cast<double*>(workspace);
      auto* products = reinterpret_cast<float*>(workspace + row_bytes());
      multiply_(weights_.args(reinterpret_cast<const float*>(args[0]) + first * table.features, rows, products));
      for (int64_t r = 0; r < rows; ++r) finish(products + r * weights_.columns(), row, first + r, args);
      const int to = is_classifier_ ? outputs_.scores : 1;
      if (by_kernel() && to >= 0) transform_(reinterpret_cast<float*>(args[to]) + first * width(), rows, width());
    });
  }

 private:
  // The label of a single class depends on its transformed score.
  bool by_kernel() const { return transform_.is_kernel() && !(is_classifier_ && classes_.is_single()); }
  int64_t width() const { return is_classifier_ ? classes_.width() : classes_.sets; }
  int64_t row_bytes() const { return static_cast<int64_t>(sizeof(double)) * classes_.width(); }

  static int64_t sets(const Node& node) { return std::ssize(node.floats_attr("coefficients")) / feature_count(node); }

  void finish(const float* products, double* row, int64_t at, std::byte* const* args) const {
    std::copy(products, products + classes_.sets, row);
    const std::span<double> scores(row, static_cast<size_t>(width()));
    if (is_classifier_) {
      int64_t position;
      if (by_kernel()) {
        classes_.lay_out(scores);
        position = std::max_element(scores.begin(), scores.end()) - scores.begin();
      } else {
        position = classes_.finish(scores);
      }
      if (outputs_.labels >= 0) reinterpret_cast<int64_t*>(args[outputs_.labels])[at] = label(position);
    } else if (!by_kernel()) {
      apply_post_transform(classes_.transform, scores);
    }
    const int to = is_classifier_ ? outputs_.scores : 1;
    if (to < 0) return;
    auto* y = reinterpret_cast<float*>(args[to]) + at * std::ssize(scores);
    for (size_t i = 0; i < scores.size(); ++i) y[i] = static_cast<float>(scores[i]);
  }

  int64_t label(int64_t position) const {
    if (classes_.is_single()) return position != 0 && !labels_.empty() ? labels_[0] : position;
    return label_of(labels_, position);
  }

  bool is_classifier_;
  ClassifierOutputs outputs_;
  std::vector<int64_t> labels_;
  LinearClasses classes_;
  ScoreTransform transform_;
  TableWeights weights_;
  decltype(&scalar::table_dots) multiply_;
};

class LinearModelRoutine final : public RoutineOf<LinearModelRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/linear_model"; }
  std::vector<std::string_view> roots() const override { return {kLinearClassifier, "ai.onnx.ml.LinearRegressor"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    if (auto reason = rejects_table(node)) return reason;
    if (!node.strings_attr("classlabels_strings").empty()) return "the class labels are strings";
    if (!LinearStep::fits(node)) return "the coefficients do not fit the features";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return table_candidates(workload, target, ops);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<LinearStep>(candidate.workload->root(), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(linear_model, LinearModelRoutine)

}  // namespace neo
