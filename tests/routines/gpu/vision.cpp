#include "programs.h"
#include "routines/gpu/sort/programs.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu::tests {
namespace {

// The two parts of a counting program as programs: the first alone, whose last operand are the counts; or both, the
// counts in a temporary, for outputs whose sizes are known.
class Part final : public Program {
 public:
  Part(std::unique_ptr<DataDependentProgram> whole, int inputs, bool counts)
      : whole_(std::move(whole)), inputs_(static_cast<size_t>(inputs)), counts_(counts) {}

  const std::vector<kernel::Kernel>& kernels() const override { return whole_->kernels(); }
  Launches launches(std::span<const Dims> shapes) const override {
    Launches first = whole_->count(shapes.first(inputs_));
    if (counts_) return first;
    const int place = static_cast<int>(first.temporaries.size());
    for (KernelLaunch& launch : first.launches) {
      for (LaunchArgument& a : launch.arguments) {
        if (const auto* o = std::get_if<Operand>(&a); o && o->index == static_cast<int>(inputs_)) a = Temporary{place};
      }
    }
    Launches rest = whole_->launches(shapes);
    rest.temporaries.push_back(whole_->counts() * int64_t{4});
    rest.launches.insert(rest.launches.begin(), first.launches.begin(), first.launches.end());
    return rest;
  }

 private:
  std::unique_ptr<DataDependentProgram> whole_;
  size_t inputs_;
  bool counts_;
};

std::unique_ptr<Program> part_of(const Choice& c, std::unique_ptr<DataDependentProgram> whole, int inputs) {
  return std::make_unique<Part>(std::move(whole), inputs, c.number("counts") != 0);
}

DType dtype_of(const Choice& c) {
  return find_dtype(c.word("dtype")).value();
}

SortSchedule sort_schedule_of(const Choice& c) {
  return {static_cast<int>(c.number("block", 512)), static_cast<int>(c.number("each", 16))};
}

const Registered kTopK("top_k", [](const Choice& c) {
  return make_top_k({dtype_of(c), static_cast<int>(c.number("axis")), c.number("largest", 1) != 0,
                     c.number("values", 1) != 0, c.number("indices", 1) != 0},
                    sort_schedule_of(c));
});
const Registered kSegmentedArgsort("segmented_argsort", [](const Choice& c) {
  return make_segmented_argsort(c.number("falling", 0) != 0, sort_schedule_of(c));
});
const Registered kCumSum("cum_sum", [](const Choice& c) {
  return make_cum_sum(
      {dtype_of(c), static_cast<int>(c.number("axis")), c.number("exclusive", 0) != 0, c.number("reverse", 0) != 0});
});
const Registered kNonZero("non_zero", [](const Choice& c) {
  return part_of(c, make_non_zero(dtype_of(c), static_cast<int>(c.number("rank"))), 1);
});
const Registered kCompress("compress", [](const Choice& c) {
  return part_of(c, make_compress(dtype_of(c), static_cast<int>(c.number("axis"))), 2);
});

NmsSchedule nms_schedule_of(const Choice& c) {
  return {sort_schedule_of(c), {static_cast<int>(c.number("chunk", 2048))}};
}

// A number in a word, as Python prints it.
float float_of(const Choice& c, const std::string& name, float otherwise) {
  const auto found = c.words.find(name);
  return found == c.words.end() ? otherwise : std::stof(found->second);
}

const Registered kNonMaxSuppression("non_max_suppression", [](const Choice& c) {
  NonMaxSuppressionChoice choice;
  choice.limit = c.number("limit");
  choice.iou_threshold = float_of(c, "iou_threshold", choice.iou_threshold);
  choice.score_threshold = float_of(c, "score_threshold", choice.score_threshold);
  choice.centered = c.number("centered", 0) != 0;
  return part_of(c, make_non_max_suppression(choice, nms_schedule_of(c)), 2);
});

const Registered kRoiAlign("roi_align", [](const Choice& c) {
  return make_roi_align(
      {c.number("max", 0) != 0, c.number("half_pixel", 1) != 0, c.number("sampling", 0), float_of(c, "scale", 1)});
});
const Registered kBoxNms("box_nms", [](const Choice& c) {
  BoxNmsChoice choice;
  choice.overlap_threshold = float_of(c, "overlap_threshold", choice.overlap_threshold);
  choice.valid_threshold = float_of(c, "valid_threshold", choice.valid_threshold);
  choice.top_k = c.number("top_k", -1);
  choice.id = c.number("id", -1);
  choice.background = float_of(c, "background", choice.background);
  choice.by_class = c.number("by_class", 0) != 0;
  choice.centered = c.number("centered", 0) != 0;
  return make_box_nms(choice, nms_schedule_of(c));
});
const Registered kMultiboxPrior("multibox_prior", [](const Choice& c) {
  MultiboxPriorChoice choice;
  choice.sizes = {0.25, 0.5};
  choice.ratios = {1, 2, 0.5};
  choice.clip = c.number("clip", 0) != 0;
  return make_multibox_prior(choice);
});
const Registered kMultiboxDetection("multibox_detection", [](const Choice& c) {
  MultiboxDetectionChoice choice;
  choice.threshold = float_of(c, "threshold", choice.threshold);
  choice.background = c.number("background", 0);
  choice.top_k = c.number("top_k", -1);
  choice.by_class = c.number("by_class", 1) != 0;
  choice.clip = c.number("clip", 1) != 0;
  return make_multibox_detection(choice, nms_schedule_of(c));
});

}  // namespace
}  // namespace neo::gpu::tests
