#pragma once

#include <vector>

#include "routines/cpu/gemm/strassen.h"
#include "routines/cpu/tasks.h"
#include "routines/space.h"

namespace neo {

// A call of fewer pixels or rows is multiplied without the algorithm, whose weights are 7/4 or 49/16 times as large.
inline constexpr int64_t kMinStrassenPixels = 32;

// Pixels of some images, or rows of some matrices, of equal numbers.
struct StrassenWork {
  int64_t images = 0;
  int64_t pixels = 0;  // of each
};

// How a layer is cut into tasks that use Strassen's algorithm. The parameters of a schedule:
//   tasks   as many parts of the images, where they have them; the runs of these are shared
//   levels  of the algorithm; where it is not there: one
//   groups  of output channels, each with tasks of its own: these make more sums of pixels, and read fewer weights
struct StrassenForm {
  StrassenPlan plan;  // of one group
  int64_t tasks = 1;
  int64_t groups = 1;

  static bool takes(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target);
  static StrassenForm of(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target);
  // The schedules that are worth a candidate.
  static std::vector<Schedule> schedules(int64_t ic, int64_t oc, const Target& target);

  int64_t vectors() const { return plan.parts() * plan.vectors; }  // of output channels of a group
  int64_t weight_size() const { return groups * strassen_weight_size(plan); }
  // Packs the weights of all groups, which are OI.
  void pack(const float* weight, float* packed) const;

  // Parts of an image's pixels, none of less than a run of a few register blocks.
  int64_t parts(const StrassenWork& work) const;
  // The number of runs of each part.
  int64_t runs(const StrassenWork& work) const;
  TaskSplit split(const StrassenWork& work, int64_t flops, int64_t workspace_size, int threads) const;

  // Floats from block to block of the pixels of a run that are copied: an odd number of vectors.
  int64_t copied_stride(const StrassenWork& work) const;
};

// The work of one task.
struct StrassenTask {
  int64_t image = 0, group = 0;
  IndexRange pixels;           // of the image: a part of it
  int64_t run = 0, runs = 0;   // of the part
  int64_t index = 0, all = 0;  // of the part among all parts, images and groups

  static StrassenTask of(const StrassenForm& form, const StrassenWork& work, int64_t task);
};

// Memory traffic of a layer besides its products.
struct StrassenTraffic {
  double copied = 0;  // vectors, once for each group
  double bytes = 0;   // that are read and written once
};

double strassen_us(const StrassenForm& form, const StrassenWork& work, const StrassenTraffic& traffic,
                   const TaskSplit& split, const Target& target);

}  // namespace neo
