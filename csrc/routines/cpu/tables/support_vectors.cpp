#include "ops/support_vectors.h"

#include "base/check.h"
#include "routines/cpu/tables/table_rows.h"
#include "routines/families.h"

namespace neo {
namespace {

constexpr std::string_view kSvmClassifier = "ai.onnx.ml.SVMClassifier";

TableKernel kernel_of(SvmKernel::Type type) {
  switch (type) {
    case SvmKernel::Type::Poly:
      return TableKernel::Poly;
    case SvmKernel::Type::Rbf:
      return TableKernel::Rbf;
    case SvmKernel::Type::Sigmoid:
      return TableKernel::Sigmoid;
    case SvmKernel::Type::Linear:
      break;
  }
  return TableKernel::Linear;
}

// One sum of a score: weights of consecutive vectors.
struct SvmTerm {
  int64_t score;
  int64_t first, count;             // vectors
  std::vector<float> coefficients;  // of these
};

// The parts of a machine that depend on neither rows nor outputs.
struct SvmModel {
  SvmKernel kernel;
  int64_t supports = 0;  // 0: the vectors are the coefficients of classes
  std::vector<double> vectors;
  std::vector<double> bias;  // of the scores
  std::vector<SvmTerm> terms;
};

SvmModel svm_model(const SvmClassifier& svm) {
  SvmModel model{svm.kernel, static_cast<int64_t>(svm.total), svm.pairwise() ? svm.vectors : svm.coefficients, {}, {}};
  if (!svm.pairwise()) {
    model.bias.assign(svm.classes, svm.rho[0]);
    return model;
  }
  const auto part = [&](size_t row, size_t of, size_t score) {
    const auto begin = svm.coefficients.begin() + static_cast<int64_t>(row * svm.total + svm.first[of]);
    model.terms.push_back({static_cast<int64_t>(score), static_cast<int64_t>(svm.first[of]), svm.per_class[of],
                           std::vector<float>(begin, begin + svm.per_class[of])});
  };
  svm.for_pairs([&](size_t i, size_t j) {
    part(j - 1, i, model.bias.size());
    part(i, j, model.bias.size());
    model.bias.push_back(svm.rho[model.bias.size()]);
  });
  return model;
}

SvmModel svm_model(const Node& regressor) {
  const int64_t supports = std::max<int64_t>(0, regressor.int_attr("n_supports", 0));
  const auto coefficients = regressor.floats_attr("coefficients");
  SvmModel model{SvmKernel(regressor), supports, coefficients, {regressor.floats_attr("rho", {0.0}).front()}, {}};
  if (supports == 0) return model;
  model.vectors = regressor.floats_attr("support_vectors");
  model.terms.push_back({0, 0, supports, std::vector<float>(coefficients.begin(), coefficients.begin() + supports)});
  return model;
}

class SvmStep final : public KernelStep {
 public:
  SvmStep(const Node& node, const Target& target) : outputs_(node), transform_(post_transform_attr(node)) {
    if (node.op == kSvmClassifier) {
      classifier_.emplace(node);
      scores_ = static_cast<int64_t>(classifier_->score_room());
      scratch_ = static_cast<int64_t>(classifier_->scratch_room());
    } else {
      is_one_class_ = node.int_attr("one_class", 0) != 0;
    }
    SvmModel model = classifier_ ? svm_model(*classifier_) : svm_model(node);
    terms_ = std::move(model.terms);
    bias_ = std::move(model.bias);
    is_pairwise_ = model.supports > 0;
    const bool distances = is_pairwise_ && model.kernel.type == SvmKernel::Type::Rbf;
    const int64_t columns = is_pairwise_ ? model.supports : std::ssize(bias_);
    weights_.emplace(model.vectors, std::vector<double>{}, columns, feature_count(node), target.lanes(), is_pairwise_);
    kernel_ = {kernel_of(model.kernel.type),
               static_cast<float>(model.kernel.gamma),
               static_cast<float>(model.kernel.coef0),
               static_cast<float>(model.kernel.degree),
               0,
               nullptr};
    multiply_ = distances            ? NEO_PICK_TIER(target.isa, table_distances)
                : weights_->is_few() ? NEO_PICK_TIER(target.isa, table_dots)
                                     : NEO_PICK_TIER(target.isa, table_products);
    apply_ = NEO_PICK_TIER(target.isa, table_kernel);
    dots_ = NEO_PICK_TIER(target.isa, table_dots);
  }

  // Whether the kernels' conditions hold, as they do for every model that the reference takes.
  static bool fits(const Node& node) {
    const int64_t features = feature_count(node);
    if (features <= 0) return false;
    const int64_t vectors = std::ssize(node.floats_attr("support_vectors"));
    if (node.op == kSvmClassifier) {
      const SvmClassifier svm(node);
      const int64_t classes = static_cast<int64_t>(svm.classes);
      if (!svm.names_positions() && !svm.labels.ints.empty() &&
          std::ssize(svm.labels.ints) < std::max<int64_t>(2, classes))
        return false;
      return svm.pairwise() ? vectors == static_cast<int64_t>(svm.total) * features
                            : std::ssize(svm.coefficients) == classes * features;
    }
    const int64_t supports = node.int_attr("n_supports", 0);
    const int64_t coefficients = std::ssize(node.floats_attr("coefficients"));
    if (node.floats_attr("rho", {0.0}).empty() || coefficients < (supports > 0 ? supports : features)) return false;
    return supports <= 0 || vectors == supports * features;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    // A product, its kernel and its share of the sums take as long as a few more features.
    const int64_t operations = weights_->columns() * 2 * (args[0].dims.back() + 12 + 2 * std::ssize(terms_)) + 400;
    const auto table =
        TableRows::of(args[0], operations, static_cast<int64_t>(sizeof(float)) * weights_->columns(), row_bytes());
    return Prepared::of(table, table.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& table = *reinterpret_cast<const TableRows*>(prepared);
    table.run(scratch, team, [&](int64_t first, int64_t rows, std::byte* workspace) {
      auto* row = reinterpret_cast<double*>(workspace);
      auto* products = reinterpret_cast<float*>(workspace + row_bytes());
      multiply_(weights_->args(reinterpret_cast<const float*>(args[0]) + first * table.features, rows, products));
      if (is_pairwise_) {
        TableKernelArgs kernel = kernel_;
        kernel.count = rows * weights_->columns();
        kernel.x = products;
        apply_(kernel);
      }
      for (int64_t r = 0; r < rows; ++r) finish(products + r * weights_->columns(), row, first + r, args);
    });
  }

 private:
  int64_t row_bytes() const { return (scores_ + scratch_) * static_cast<int64_t>(sizeof(double)); }

  void finish(const float* products, double* row, int64_t at, std::byte* const* args) const {
    for (size_t s = 0; s < bias_.size(); ++s) row[s] = bias_[s] + (is_pairwise_ ? 0 : products[s]);
    for (const SvmTerm& term : terms_) {
      constexpr float kNoBias = 0;
      float sum;
      dots_({products + term.first, 1, term.count, term.coefficients.data(), &kNoBias, 1, &sum});
      row[term.score] += sum;
    }
    std::span<double> scores(row, static_cast<size_t>(scores_));
    if (classifier_) {
      const int64_t position = classifier_->finish(scores, {row + scores_, static_cast<size_t>(scratch_)});
      if (outputs_.labels >= 0) {
        const bool bare = classifier_->names_positions();
        reinterpret_cast<int64_t*>(args[outputs_.labels])[at] =
            bare ? position : label_of(classifier_->labels.ints, position);
      }
      scores = scores.subspan(0, classifier_->width());
    } else {
      if (is_one_class_) row[0] = row[0] > 0 ? 1 : -1;
      apply_post_transform(transform_, scores);
    }
    const int to = classifier_ ? outputs_.scores : 1;
    if (to < 0) return;
    auto* y = reinterpret_cast<float*>(args[to]) + at * std::ssize(scores);
    for (size_t i = 0; i < scores.size(); ++i) y[i] = static_cast<float>(scores[i]);
  }

  ClassifierOutputs outputs_;
  PostTransform transform_;
  std::optional<SvmClassifier> classifier_;
  bool is_one_class_ = false;
  bool is_pairwise_ = false;
  int64_t scores_ = 1;
  int64_t scratch_ = 0;
  std::vector<double> bias_;
  std::vector<SvmTerm> terms_;
  std::optional<TableWeights> weights_;
  TableKernelArgs kernel_{};
  decltype(&scalar::table_dots) multiply_ = nullptr;
  decltype(&scalar::table_dots) dots_ = nullptr;
  decltype(&scalar::table_kernel) apply_ = nullptr;
};

class SupportVectorsRoutine final : public RoutineOf<SupportVectorsRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/support_vectors"; }
  std::vector<std::string_view> roots() const override { return {kSvmClassifier, "ai.onnx.ml.SVMRegressor"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    if (auto reason = rejects_table(node)) return reason;
    if (!node.strings_attr("classlabels_strings").empty()) return "the class labels are strings";
    if (!SvmStep::fits(node)) return "the support vectors and coefficients do not fit the features";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return table_candidates(workload, target, ops);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<SvmStep>(candidate.workload->root(), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(support_vectors, SupportVectorsRoutine)

}  // namespace neo
