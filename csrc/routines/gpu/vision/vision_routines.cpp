#include <algorithm>

#include "base/check.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {
namespace {

bool is_left_out(const Value* value) {
  return !value || (value->constant && value->constant->size() == 0);
}

// An input that is left out or a constant.
bool is_settled(const Value* value) {
  return !value || value->constant;
}

std::optional<std::string> rejects_all_but_float32(const Workload& workload) {
  if (auto reason = cannot_hold(workload)) return reason;
  for (const Value* v : workload.inputs) {
    if (v->dtype() != DType::Float32) return "the operands are not float32";
  }
  return std::nullopt;
}

// All operands on the device.
std::vector<Candidate> held_candidates(const Workload& workload, const Target& target, const OpRegistry& ops,
                                       double efficiency, int launches = 1) {
  Candidate c = plain_candidate(workload, target);
  c.cost.time_us = device_us(workload.work(ops), target, efficiency, launches);
  return {std::move(c)};
}

class NonMaxSuppressionRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/non_max_suppression"; }
  std::vector<std::string_view> roots() const override { return {"NonMaxSuppression"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const Node& node = workload.root();
    if (node.inputs[0]->dtype() != DType::Float32 || node.inputs[1]->dtype() != DType::Float32) {
      return "boxes and scores are not float32";
    }
    if (node.inputs[0] == node.inputs[1]) return "boxes are their own scores";
    for (const size_t i : {2, 3, 4}) {
      if (!is_settled(node.input(i))) return "the limit and the thresholds are not constants";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const Node& node = workload.root();
    Candidate c = plain_candidate(workload, target);
    c.kind = Candidate::Kind::DataDependent;
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      const Value* v = workload.inputs[i];
      if (v != node.inputs[0] && v != node.inputs[1]) c.inputs[i] = std::nullopt;
    }
    c.cost.time_us = device_us(workload.work(ops), target, 0.05, 16);
    return {std::move(c)};
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    NonMaxSuppressionChoice choice;
    const auto number = [&](size_t input) {
      return static_cast<float>(load_doubles(*node.input(input)->constant).front());
    };
    if (!is_left_out(node.input(2))) choice.limit = load_ints(*node.input(2)->constant).front();
    if (!is_left_out(node.input(3))) choice.iou_threshold = number(3);
    if (!is_left_out(node.input(4))) choice.score_threshold = number(4);
    choice.centered = node.int_attr("center_point_box", 0) != 0;
    return make_non_max_suppression(choice);
  }
};

class RoiAlignRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/roi_align"; }
  std::vector<std::string_view> roots() const override { return {"RoiAlign"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const Node& node = workload.root();
    if (node.inputs[0]->dtype() != DType::Float32 || node.inputs[1]->dtype() != DType::Float32) {
      return "x and the regions are not float32";
    }
    if (node.inputs[2]->dtype() != DType::Int64) return "the images of the regions are not int64";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return held_candidates(workload, target, ops, 0.1);
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    return make_roi_align(
        {.max = node.string_attr("mode", "avg") == "max",
         .half_pixel = node.string_attr("coordinate_transformation_mode", "half_pixel") == "half_pixel",
         .sampling = node.int_attr("sampling_ratio", 0),
         .scale = static_cast<float>(node.float_attr("spatial_scale", 1))});
  }
};

class BoxNmsRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/box_nms"; }
  std::vector<std::string_view> roots() const override { return {"neo.BoxNms"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    return rejects_all_but_float32(workload);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return held_candidates(workload, target, ops, 0.05, 16);
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    BoxNmsChoice choice;
    choice.overlap_threshold = static_cast<float>(node.float_attr("overlap_thresh", 0.5));
    choice.valid_threshold = static_cast<float>(node.float_attr("valid_thresh", 0));
    choice.top_k = node.int_attr("topk", -1);
    choice.coordinates = node.int_attr("coord_start", 2);
    choice.score = node.int_attr("score_index", 1);
    choice.id = node.int_attr("id_index", -1);
    choice.background = static_cast<float>(node.int_attr("background_id", -1));
    choice.by_class = choice.id >= 0 && node.int_attr("force_suppress", 0) == 0;
    choice.centered = node.string_attr("in_format", "corner") == "center";
    return make_box_nms(choice);
  }
};

class MultiboxPriorRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/multibox_prior"; }
  std::vector<std::string_view> roots() const override { return {"neo.MultiboxPrior"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = rejects_all_but_float32(workload)) return reason;
    const Node& node = workload.root();
    if (node.floats_attr("sizes").size() + node.floats_attr("ratios").size() > kMaxShapes) {
      return "a place has too many boxes";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return held_candidates(workload, target, ops, 0.1);
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    MultiboxPriorChoice choice;
    choice.sizes = node.floats_attr("sizes", choice.sizes);
    choice.ratios = node.floats_attr("ratios", choice.ratios);
    const auto pair = [&](std::string_view key, std::array<double, 2> otherwise) -> std::array<double, 2> {
      const auto given = node.floats_attr(key, {otherwise[0], otherwise[1]});
      return {given[0], given[1]};
    };
    choice.steps = pair("steps", choice.steps);
    choice.offsets = pair("offsets", choice.offsets);
    choice.clip = node.int_attr("clip", 0) != 0;
    return make_multibox_prior(choice);
  }

 private:
  static constexpr size_t kMaxShapes = 32;  // each is two arguments of the kernel
};

class MultiboxDetectionRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/multibox_detection"; }
  std::vector<std::string_view> roots() const override { return {"neo.MultiboxDetection"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (workload.inputs.size() != 3) return "two operands are the same";
    return rejects_all_but_float32(workload);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return held_candidates(workload, target, ops, 0.05, 16);
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    MultiboxDetectionChoice choice;
    choice.threshold = static_cast<float>(node.float_attr("threshold", 0.01));
    choice.nms_threshold = static_cast<float>(node.float_attr("nms_threshold", 0.5));
    choice.background = std::max<int64_t>(node.int_attr("background_id", 0), -1);
    choice.top_k = node.int_attr("nms_topk", -1);
    choice.by_class = node.int_attr("force_suppress", 0) == 0;
    choice.clip = node.int_attr("clip", 1) != 0;
    const auto variances = node.floats_attr("variances", {0.1, 0.1, 0.2, 0.2});
    for (size_t i = 0; i < 4; ++i) choice.variances[i] = static_cast<float>(variances[i]);
    return make_multibox_detection(choice);
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_non_max_suppression, gpu::NonMaxSuppressionRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_roi_align, gpu::RoiAlignRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_box_nms, gpu::BoxNmsRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_multibox_prior, gpu::MultiboxPriorRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_multibox_detection, gpu::MultiboxDetectionRoutine)

}  // namespace neo
