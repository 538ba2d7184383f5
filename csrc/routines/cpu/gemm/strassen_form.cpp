#include "routines/cpu/gemm/strassen_form.h"

#include <algorithm>

#include "routines/cost/step_cost.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"

namespace neo {
namespace {

int64_t levels_of(const Schedule& schedule) {
  return std::max<int64_t>(1, value_of(schedule, "levels"));
}

int64_t groups_of(const Schedule& schedule) {
  return std::max<int64_t>(1, value_of(schedule, "groups"));
}

}  // namespace

bool StrassenForm::takes(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target) {
  const int64_t groups = groups_of(schedule);
  return oc % groups == 0 &&
         !reject_strassen(ic, oc / groups, target.lanes(), strassen_kernels_of(target.isa), levels_of(schedule));
}

StrassenForm StrassenForm::of(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target) {
  StrassenForm form;
  form.tasks = schedule.at("tasks");
  form.groups = groups_of(schedule);
  form.plan = plan_strassen(ic, oc / form.groups, target.lanes(), strassen_kernels_of(target.isa), levels_of(schedule));
  return form;
}

std::vector<Schedule> StrassenForm::schedules(int64_t ic, int64_t oc, const Target& target) {
  std::vector<Schedule> schedules;
  const auto offer = [&](Schedule schedule, int64_t levels) {
    if (levels > 1) schedule["levels"] = levels;
    if (takes(ic, oc, schedule, target)) schedules.push_back(std::move(schedule));
  };
  const int64_t team = target.threads;
  for (int64_t levels = 1; levels <= kStrassenLevels; ++levels) {
    for (const int64_t tasks : {team, 4 * team}) offer({{"tasks", tasks}}, levels);
    if (team > 1) offer({{"tasks", team}, {"groups", 2}}, levels);
    if (team > 2) offer({{"tasks", team}, {"groups", team}}, levels);
  }
  return schedules;
}

void StrassenForm::pack(const float* weight, float* packed) const {
  for (int64_t i = 0; i < groups; ++i) {
    pack_strassen_weight(plan, weight, packed);
    weight += vectors() * plan.lanes * plan.input_blocks() * plan.lanes;
    packed += strassen_weight_size(plan);
  }
}

int64_t StrassenForm::parts(const StrassenWork& work) const {
  if (work.pixels == 0 || work.images == 0) return 0;
  const int64_t most =
      std::min(ceil_div(work.pixels, plan.run), std::max<int64_t>(1, work.pixels / fewest_strassen_pixels(plan)));
  return std::clamp<int64_t>(ceil_div(tasks, work.images * groups), 1, most);
}

int64_t StrassenForm::runs(const StrassenWork& work) const {
  return strassen_runs(plan, ceil_div(work.pixels, std::max<int64_t>(1, parts(work))));
}

TaskSplit StrassenForm::split(const StrassenWork& work, int64_t flops, int64_t workspace_size, int threads) const {
  return TaskSplit::of(groups * work.images * parts(work) * runs(work), flops, workspace_size * 4, threads);
}

int64_t StrassenForm::copied_stride(const StrassenWork& work) const {
  return (std::min(strassen_run_pixels(plan), work.pixels) | 1) * plan.lanes;
}

StrassenTask StrassenTask::of(const StrassenForm& form, const StrassenWork& work, int64_t task) {
  const int64_t parts = form.parts(work);
  StrassenTask t;
  t.runs = form.runs(work);
  t.run = task % t.runs;
  t.index = task / t.runs;
  t.all = form.groups * work.images * parts;
  t.image = t.index / parts % work.images;
  t.group = t.index / parts / work.images;
  t.pixels = even_part(work.pixels, parts, t.index % parts);
  return t;
}

double strassen_us(const StrassenForm& form, const StrassenWork& work, const StrassenTraffic& traffic,
                   const TaskSplit& split, const Target& target) {
  const StrassenPlan& plan = form.plan;
  // Images that no cache keeps are read and written in pieces of a run, which computing does not hide; and what a layer
  // of its own takes at its start, before its data are near.
  constexpr double kCacheBytes = 12e6, kStartUs = 8, kInNetwork = 1.06;
  // Share that remains of the estimated time for weights from memory: tiles fetch those of the tiles behind them.
  constexpr double kWaited = 0.75;
  // Cycles of a vector that is copied.
  constexpr double kCopyCycles = 8;
  const auto images = static_cast<double>(work.images), pixels = images * static_cast<double>(work.pixels);
  const auto lanes = static_cast<double>(plan.lanes);
  const auto parts = static_cast<double>(form.parts(work)) * images, part = pixels / std::max(parts, 1.0);
  const double operations = static_cast<double>(form.groups) *
                            (strassen_work(plan, pixels, part, target) + kCopyCycles * traffic.copied * 2 * lanes);
  const double pieces_us = std::max(traffic.bytes - kCacheBytes, 0.0) / (target.memory_gbps * 1e3);
  const double weights = static_cast<double>(form.weight_size()) * 4;
  // A member reads the weights of a group once for every run; estimates count one reading by the whole team.
  const auto groups = static_cast<double>(form.groups), team = split.serial ? 1.0 : static_cast<double>(target.threads);
  const double own_parts = std::max(1.0, parts * groups / team);
  const double runs = own_parts * static_cast<double>(strassen_runs(plan, static_cast<int64_t>(part)));
  const double readings = runs - groups / team + 1 / team;
  // Members of groups read what others have written, as parts of pixels mostly do not.
  constexpr double kOthers = 0.5, kBetweenCores = 20;  // GB/s
  const double others_us = form.groups > 1 && !split.serial ? kOthers * traffic.bytes / (kBetweenCores * 1e3) : 0;
  return kStartUs + pieces_us + others_us + far_us(weights / groups, readings, target) +
         kInNetwork * tasks_us(operations, 1, split.serial ? 1 : split.tasks, traffic.bytes, target, kWaited * weights);
}

}  // namespace neo
