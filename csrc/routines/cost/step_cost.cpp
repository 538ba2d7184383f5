#include "routines/cost/step_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace neo {
namespace {

// A family that was never fitted has the defaults of StepRow.
constexpr std::array<StepRow, kStepFamilies> kRows = [] {
  std::array<StepRow, kStepFamilies> rows{};
#define NEO_STEP_CONSTANTS(family, ...) rows[static_cast<size_t>(StepFamily::family)] = {__VA_ARGS__};
#include "routines/cost/step_constants.inc"
#undef NEO_STEP_CONSTANTS
  return rows;
}();

constexpr std::string_view kFamilyNames[] = {
#define NEO_STEP_ROW(family) #family,
#include "routines/cost/step_rows.inc"
#undef NEO_STEP_ROW
};

}  // namespace

std::string_view name(StepFamily family) {
  return kFamilyNames[static_cast<size_t>(family)];
}

const StepRow& step_row(StepFamily family) {
  return kRows[static_cast<size_t>(family)];
}

double traffic_us(double bytes, double speedup, const Machine& machine) {
  // The share of a cache that one step's operands find free.
  constexpr double kFree = 0.75;
  double left = bytes / speedup, us = 0;
  for (const CacheFigures& level : machine.cache) {
    const double here = std::min(left, kFree * static_cast<double>(level.bytes));
    if (here > 0) us += here / (level.gbps * 1e3);
    left -= here;
  }
  const double memory_gbps = std::min(machine.memory_gbps, machine.shared_memory_gbps / speedup);
  return us + left / (memory_gbps * 1e3);
}

double step_us(const StepLoad& load, const Target& target) {
  return step_us(load, target, step_row(load.family));
}

namespace {

// How many times as fast as one thread the target's team is.
double speedup_of(double tasks, double bytes, const Target& target) {
  if (tasks == 0) tasks = bytes > kSerialBytes ? target.threads : 1;
  return target.threads > 1 && tasks > 1 ? tasks / std::ceil(tasks / target.threads) : 1;
}

}  // namespace

double step_us(const StepLoad& load, const Target& target, const StepRow& row) {
  // The share of the shorter of arithmetic and traffic that the longer one does not hide.
  constexpr double kExposed = 0.3;
  const Machine& machine = target.machine;
  const double bytes = load.reads + load.writes;
  const double speedup = speedup_of(load.tasks, bytes, target);
  const double arithmetic_us = (row.cycles * load.cycles + row.run_cycles * load.runs) / (machine.ghz * 1e3) / speedup;
  const double data_us = row.traffic * traffic_us(bytes, speedup, machine);
  return machine.step_us + row.fixed_us + (speedup > 1 ? machine.wake_us : 0) + std::max(arithmetic_us, data_us) +
         kExposed * std::min(arithmetic_us, data_us);
}

double unfitted_us(const UnfittedLoad& load, const Target& target) {
  constexpr double kStepUs = 0.1;
  constexpr double kForkUs = 2.0;
  constexpr double kCacheBytes = 12e6;
  // Shares of the target's figure, which stands for mixed traffic, of one thread and of all threads.
  constexpr double kAlone = 0.75, kTogether = 1.45;
  // The share of the time of constants from memory that arithmetic does not hide.
  constexpr double kExposed = 0.6;
  const double speedup = speedup_of(load.tasks, load.bytes, target);
  const double cache = target.l2_gbps * speedup * 1e3;
  const double memory = target.memory_gbps * std::min(kAlone * speedup, kTogether) * 1e3;
  const double data_us = std::min(load.bytes, kCacheBytes) / cache + std::max(load.bytes - kCacheBytes, 0.0) / memory;
  const double arithmetic_us = load.arithmetic_us / speedup;
  const double fixed_us = kStepUs + (speedup > 1 ? kForkUs : 0);
  if (!target.cold_constants || load.constant_bytes == 0) {
    return fixed_us + std::max(arithmetic_us, data_us + load.constant_bytes / cache);
  }
  const double constants_us = load.constant_bytes / memory;
  return fixed_us + std::max(arithmetic_us + kExposed * constants_us, data_us + constants_us);
}

bool is_cache_resident(double bytes, const Target& target) {
  return bytes <= 0.75 * static_cast<double>(private_caches(target).l2_bytes);
}

double stream_us(double bytes) {
  constexpr double kGbps = 86;
  return bytes / (kGbps * 1e3);
}

double far_us(double bytes, double times, const Target& target) {
  const double reads = is_cache_resident(bytes, target) ? std::min(times, 1.0) : times;
  return bytes * std::max(0.0, reads - 1.0 / target.threads) * far_byte_us(target);
}

double far_byte_us(const Target& target) {
  return std::max(0.0, 1 / private_caches(target).far_gbps - 1 / PrivateCaches::kNearGbps) / 1e3;
}

double cycles_us(double cycles, const Target& target) {
  return cycles * 2 * target.lanes() / (target.gflops_per_thread * 1e3);
}

}  // namespace neo
