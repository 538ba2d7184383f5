#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "routines/gpu/program.h"
#include "routines/gpu/sort/argsort.h"
#include "routines/gpu/vision/suppression.h"

namespace neo::gpu {

struct NmsSchedule {
  SortSchedule sort;
  SuppressionSchedule suppression;
};

// NonMaxSuppression of ONNX. Operands boxes [images, n, 4] and scores [images, classes, n] (float32), selected (int64,
// memory for [images x classes x min(limit, n), 3], whose first rows are written), count (int32, one element: the
// number of rows). The order, and who hides whom, is the CPU's to the last bit.
struct NonMaxSuppressionChoice {
  int64_t limit = 0;  // max_output_boxes_per_class
  float iou_threshold = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  bool centered = false;
};
std::unique_ptr<DataDependentProgram> make_non_max_suppression(const NonMaxSuppressionChoice& choice,
                                                               const NmsSchedule& schedule = {});

// RoiAlign of ONNX on float32. Operands x [n, c, h, w], regions [r, 4], images [r] (int64), y. A region of an image
// that is not there gives zeros. `sampling` 0: as many samples as the CPU takes, told from exact sizes of the regions.
struct RoiAlignChoice {
  bool max = false;
  bool half_pixel = true;
  int64_t sampling = 0;
  float scale = 1;
};
std::unique_ptr<Program> make_roi_align(const RoiAlignChoice& choice);

// neo.BoxNms. Operands data [images, n, width], y of the same shape.
struct BoxNmsChoice {
  float overlap_threshold = 0.5F;
  float valid_threshold = 0;
  int64_t top_k = -1;
  int64_t coordinates = 2;  // where they start in a row
  int64_t score = 1;
  int64_t id = -1;
  float background = -1;
  bool by_class = false;
  bool centered = false;
};
std::unique_ptr<Program> make_box_nms(const BoxNmsChoice& choice, const NmsSchedule& schedule = {});

// neo.MultiboxPrior. Operands features [n, c, h, w] (of which only the shape matters), anchors.
struct MultiboxPriorChoice {
  std::vector<double> sizes{1}, ratios{1};
  std::array<double, 2> steps{-1, -1}, offsets{0.5, 0.5};  // y, x
  bool clip = false;
};
std::unique_ptr<Program> make_multibox_prior(const MultiboxPriorChoice& choice);

// neo.MultiboxDetection. Operands scores [images, classes, n], offsets [images, 4 n], anchors [1, n, 4], y [images, n,
// 6].
struct MultiboxDetectionChoice {
  float threshold = 0.01F;
  float nms_threshold = 0.5F;
  int64_t background = 0;
  int64_t top_k = -1;
  bool by_class = true;
  bool clip = true;
  std::array<float, 4> variances{0.1F, 0.1F, 0.2F, 0.2F};
};
std::unique_ptr<Program> make_multibox_detection(const MultiboxDetectionChoice& choice,
                                                 const NmsSchedule& schedule = {});

}  // namespace neo::gpu
