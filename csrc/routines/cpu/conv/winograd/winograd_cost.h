#pragma once

#include <vector>

#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/winograd/winograd.h"
#include "routines/cpu/tasks.h"
#include "routines/space.h"

namespace neo {

// The two instruction set dependent parts.
struct WinogradTiles {
  const WinogradKernels& transforms;
  const TileKernels& tiles;

  static WinogradTiles of(const Target& target);
};

// The schedules:
//   tile    outputs along an axis of a tile
//   panels  of output channels; a register block has the vectors of one
//   block   tiles per task
//   parts   tasks that share a block's panels
//   run     neighbouring tiles that are transformed together
//   raw     1: weights are packed as taps and transformed beside the products, where there are few tiles
WinogradSchedule winograd_schedule(const Schedule& schedule);
Space winograd_space(const ConvShape& shape, const WinogradTiles& kernels, const Target& target);

// The schedules worth offering, by estimate, with their plans.
struct WinogradChoice {
  Schedule schedule;
  WinogradPlan plan;
};
std::vector<WinogradChoice> winograd_choices(const ConvShape& shape, const WinogradTiles& kernels,
                                             const Target& target);

TaskSplit winograd_split(const WinogradPlan& plan, int threads);
// `data_bytes`: of input, results and residual.
LoopNest winograd_loops(const WinogradPlan& plan, double data_bytes, const TileKernels& kernels);
double winograd_us(const WinogradPlan& plan, double data_bytes, const TileKernels& kernels, const Target& target);

}  // namespace neo
