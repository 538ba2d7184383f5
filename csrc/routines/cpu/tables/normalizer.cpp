#include "base/check.h"
#include "routines/cpu/tables/table_rows.h"
#include "routines/families.h"

namespace neo {
namespace {

class NormalizerStep final : public KernelStep {
 public:
  NormalizerStep(const Node& node, const Target& target) : normalize_(NEO_PICK_TIER(target.isa, table_normalize)) {
    const std::string norm = node.string_attr("norm", "MAX");
    norm_ = norm == "MAX" ? TableNorm::Max : norm == "L1" ? TableNorm::L1 : TableNorm::L2;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    return Prepared::of(TableRows::of(args[0], 8 * args[0].dims.back(), 0, 0));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& table = *reinterpret_cast<const TableRows*>(prepared);
    table.run(scratch, team, [&](int64_t first, int64_t rows, std::byte*) {
      normalize_({norm_, reinterpret_cast<const float*>(args[0]) + first * table.features, rows, table.features,
                  reinterpret_cast<float*>(args[1]) + first * table.features});
    });
  }

 private:
  TableNorm norm_;
  decltype(&scalar::table_normalize) normalize_;
};

class NormalizerRoutine final : public RoutineOf<NormalizerRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/normalizer"; }
  std::vector<std::string_view> roots() const override { return {"ai.onnx.ml.Normalizer"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank() || input->dtype() != DType::Float32)
      return "the input is not a float32 tensor of known rank";
    if (input->shape().rank() < 1 || input->shape().rank() > 2) return "the input is not [N,F] or [F]";
    const std::string norm = node.string_attr("norm", "MAX");
    if (norm != "MAX" && norm != "L1" && norm != "L2") return "the norm is not MAX, L1 or L2";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return table_candidates(workload, target, ops);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<NormalizerStep>(candidate.workload->root(), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(normalizer, NormalizerRoutine)

}  // namespace neo
