#include <algorithm>
#include <vector>

#include "exec/plan.h"

namespace neo {
namespace {

// The packed weights of an item whose step multiplies a row or two by them; else none. Steps with less arithmetic read
// only a part of them, as a table of embeddings.
std::span<const float> weights_read_once(const Item& item) {
  constexpr int64_t kMinWeights = 1 << 16, kFlopsPerWeight = 4;
  const auto* call = std::get_if<StepItem>(&item.what);
  if (!call || !call->spec || call->step->kind() != Step::Kind::Kernel || !item.flops.is_constant()) return {};
  std::span<const float> most;
  for (const Tensor& blob : call->spec->packed) {
    if (blob.dtype() == DType::Float32 && blob.size() > std::ssize(most))
      most = {blob.as<float>(), static_cast<size_t>(blob.size())};
  }
  const int64_t flops = item.flops.value();
  const bool is_once =
      std::ssize(most) >= kMinWeights && flops >= std::ssize(most) && flops <= kFlopsPerWeight * std::ssize(most);
  return is_once ? most : std::span<const float>();
}

bool fetches(const Item& item) {
  const auto* call = std::get_if<StepItem>(&item.what);
  return call && call->step->kind() == Step::Kind::Kernel &&
         static_cast<const KernelStep&>(*call->step).prefetches_later();
}

}  // namespace

void plan_prefetch(Block& block, double memory_gbps) {
  constexpr int64_t kMax = 3 << 20;  // floats that the shared cache keeps until they are read
  const double floats_per_us = memory_gbps * 1e3 / sizeof(float);
  for (Region& region : block.regions) {
    std::vector<std::span<const float>> wanted;  // the soonest last
    int64_t left = kMax;
    for (size_t i = region.items.size(); i-- > 0;) {
      Item& item = region.items[i];
      if (const auto weights = weights_read_once(item); !weights.empty()) {
        left = kMax;
        wanted.push_back(weights);
      } else if (!wanted.empty() && fetches(item)) {
        std::span<const float>& soonest = wanted.back();
        const auto most = static_cast<double>(std::min(left, std::ssize(soonest)));
        const double given = item.estimate_us * floats_per_us;
        item.later = soonest.first(static_cast<size_t>(given < most ? std::max(given, 0.0) : most));
        soonest = soonest.subspan(item.later.size());
        left -= std::ssize(item.later);
        if (soonest.empty()) wanted.pop_back();
        if (left == 0) wanted.clear();
      }
    }
  }
}

}  // namespace neo
