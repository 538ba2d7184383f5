#include "routines/cpu/microkernel/tile_cost.h"

#include <algorithm>

#include "routines/cost/step_cost.h"

namespace neo {

double tile_efficiency(double rows, double vectors, double panel_bytes, const Target& target) {
  constexpr double kFmaLatency = 4;
  constexpr double kL2CyclesPerVector = 1.6;
  // Cycles of one k: two FMAs and two loads per cycle, and a chain of dependent FMAs per accumulator.
  const double ideal = rows * vectors / 2;
  double cycles = std::max({ideal, (rows + vectors) / 2, kFmaLatency});
  if (panel_bytes > static_cast<double>(target.l1_bytes) / 2) {
    cycles = std::max(cycles, vectors * kL2CyclesPerVector);
  }
  // Sixteen registers that are all taken leave none to load ahead.
  const double registers = target.lanes() == 8 ? 16 : 32;
  const double crowded = rows * vectors + std::min(rows, vectors) + 1 > registers - 0.5 ? 0.92 : 1;
  return crowded * ideal / cycles;
}

double blocked_efficiency(double rows, double vectors, double panel_bytes, int64_t ic_block, const Target& target) {
  const auto block = static_cast<double>(ic_block);
  return 0.97 * tile_efficiency(rows, vectors, panel_bytes, target) * (block / (block + 0.7)) * (0.96 + 0.01 * vectors);
}

double tasks_us(double flops, double efficiency, int64_t tasks, double bytes, const Target& target,
                double constant_bytes) {
  UnfittedLoad load;
  load.arithmetic_us = flops / (target.gflops_per_thread * std::max(efficiency, 0.01) * 1e3);
  load.bytes = bytes;
  load.constant_bytes = constant_bytes;
  load.tasks = static_cast<double>(tasks);
  return unfitted_us(load, target);
}

}  // namespace neo
