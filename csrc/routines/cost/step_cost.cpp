#include "routines/cost/step_cost.h"

#include <algorithm>
#include <cmath>

namespace neo {

double step_us(const StepLoad& load, const Target& target) {
  constexpr double kStepUs = 0.1;
  constexpr double kForkUs = 2.0;
  constexpr double kCacheBytes = 12e6;
  // Of the target's figure, which stands for mixed traffic: one thread, and all of them.
  constexpr double kAlone = 0.75, kTogether = 1.45;
  // The share of the time of constants from memory that arithmetic does not hide.
  constexpr double kExposed = 0.6;
  double speedup = 1;
  if (target.threads > 1 && load.tasks > 1) speedup = load.tasks / std::ceil(load.tasks / target.threads);
  const double cache = target.l2_gbps * speedup * 1e3;
  const double memory = target.memory_gbps * std::min(kAlone * speedup, kTogether) * 1e3;
  const double data_us = std::min(load.bytes, kCacheBytes) / cache + std::max(load.bytes - kCacheBytes, 0.0) / memory;
  const double arithmetic_us = load.arithmetic_us / speedup;
  const double fixed_us = kStepUs + (speedup > 1 ? kForkUs : 0) + load.also_us / speedup;
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
