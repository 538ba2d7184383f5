#include "routines/cpu/epilogue.h"

#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(void apply_step(const EltwiseStep& step, float* values, int64_t rows, int64_t row, int64_t columns))

namespace neo {

Activation activation_of(const std::optional<EltwiseStep>& step, const Target& target) {
  if (!step) return {};
  return {*step, NEO_PICK_TIER(target.isa, apply_step)};
}

Activation activation_of(const Epilogue& epilogue, const Target& target) {
  if (!epilogue.activation) return {};
  return activation_of(activation_step(epilogue), target);
}

double activation_us(const Epilogue& epilogue, const Value& result, const Target& target) {
  if (!epilogue.activation) return 0;
  double elements = 1;
  for (int64_t size : result.shape().hint_dims()) elements *= static_cast<double>(size);
  return activation_flops(activation_step(epilogue)) * elements / (target.gflops_per_thread * target.threads * 1e3);
}

}  // namespace neo
