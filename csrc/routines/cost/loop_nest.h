#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "routines/cost/target.h"

namespace neo {

// A schedule's loops over a workload, in terms that all routines share; sizes in bytes. Figures that a routine does not
// know stay 0.
struct LoopNest {
  double flops = 0;        // that are executed, those of padding included
  double rows = 0;         // of a register block, on average
  double vectors = 0;      // of a register block, on average
  double full_rows = 0;    // of the register block that the schedule asks for
  double reduction = 0;    // products of an output per pass
  double inner = 0;        // trips of the innermost loop
  double passes = 1;       // over the outputs
  double block_bytes = 0;  // weights that a register block reads in a pass
  double pixel_bytes = 0;  // inputs that a register block reads in a pass
  double task_inputs = 0;  // that a task reads
  double task_weights = 0;
  double task_outputs = 0;
  double inputs = 0;  // of the whole workload, each once
  double weights = 0;
  double outputs = 0;       // with what is added to them
  double input_reads = 0;   // of all tasks together, in bytes
  double weight_reads = 0;  // the same of weights
  double sweep_bytes = 0;   // that lie between two uses of the same weights by a task
  double moved = 0;         // floats that are gathered, packed or transformed
  double workspace = 0;     // of one member of the team
  double tasks = 1;
  double order = 0;       // a choice of loops
  double prefetched = 0;  // 1: weights are prefetched
  double tile = 0;        // of a fast algorithm: outputs along an axis
};

// Names of what loop_features() gives, in its order.
std::span<const std::string_view> loop_feature_names();
// The features of a schedule for a cost model: logarithms of sizes, shares, and sizes beside the target's caches.
// `estimate_us` is the routine's own expectation.
std::vector<float> loop_features(const LoopNest& loops, double estimate_us, const Target& target);

}  // namespace neo
