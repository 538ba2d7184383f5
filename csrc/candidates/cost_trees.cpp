#include "candidates/cost_trees.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/cost/loop_nest.h"

namespace neo {
namespace {

constexpr std::string_view kFamily = "cpu:float32/";     // before the names of routines
constexpr std::string_view kCacheLevel = "cache_level";  // the last column: of constants
constexpr float kShared = 1, kMemory = 2;

}  // namespace

RegressionTrees::RegressionTrees(Arrays arrays, size_t columns) : a_(std::move(arrays)), columns_(columns) {
  const auto count = static_cast<int64_t>(a_.feature.size());
  bool fits = a_.feature.size() == a_.threshold.size() && a_.feature.size() == a_.left.size();
  for (int64_t i = 0; i < count && fits; ++i) {
    const auto node = static_cast<size_t>(i);
    if (a_.feature[node] < 0) continue;
    // Every step leads further, so that it ends.
    fits = static_cast<size_t>(a_.feature[node]) < columns && a_.left[node] > i && a_.left[node] + 1 < count;
  }
  fits = fits && std::all_of(a_.roots.begin(), a_.roots.end(), [&](int32_t r) { return r >= 0 && r < count; });
  NEO_CHECK(fits, Model, "tune", "a cost model's trees must be whole. Got nodes that lead outside");
}

float RegressionTrees::value(std::span<const float> row) const {
  float total = 0;
  for (const int32_t root : a_.roots) {
    auto at = static_cast<size_t>(root);
    while (a_.feature[at] >= 0) {
      const bool right = !(row[static_cast<size_t>(a_.feature[at])] < a_.threshold[at]);
      at = static_cast<size_t>(a_.left[at]) + (right ? 1 : 0);
    }
    total += a_.threshold[at];
  }
  return total;
}

CostTrees::CostTrees(std::shared_ptr<const RegressionTrees> trees, const std::vector<std::string>& names,
                     std::vector<int64_t> lanes)
    : trees_(std::move(trees)), lanes_(std::move(lanes)) {
  const std::span<const std::string_view> loops = loop_feature_names();
  NEO_CHECK(names.size() == trees_->columns() && names.size() > loops.size() &&
                std::equal(loops.begin(), loops.end(), names.begin()) && names.back() == kCacheLevel,
            Model, "tune", "a cost model must be of the features of this neo");
  for (size_t i = loops.size(); i + 1 < names.size(); ++i) routines_[names[i]] = i;
}

std::optional<double> CostTrees::time_us(const Candidate& candidate, const Target& target) const {
  const std::string_view name = candidate.routine->name();
  if (!name.starts_with(kFamily) || std::find(lanes_.begin(), lanes_.end(), target.lanes()) == lanes_.end()) {
    return std::nullopt;
  }
  const auto column = routines_.find(name.substr(kFamily.size()));
  if (column == routines_.end()) return std::nullopt;
  std::vector<float> row = loop_features(candidate.routine->loops(candidate, target), candidate.cost.time_us, target);
  row.resize(trees_->columns());
  row[column->second] = 1;
  row.back() = target.cold_constants ? kMemory : kShared;
  return candidate.cost.time_us * std::exp2(trees_->value(row));
}

}  // namespace neo
