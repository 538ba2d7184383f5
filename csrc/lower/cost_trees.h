#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routines/routine.h"

namespace neo {

// Boosted regression trees that correct the estimates of routines by what their schedules make of the loops: by which
// power of two a time differs from the estimate (docs/tuning.md). The arrays are those of neo.tune.trees.Trees.
class CostTrees {
 public:
  struct Arrays {
    std::vector<int32_t> roots;
    std::vector<int16_t> feature;  // of a node; -1: a leaf, whose value is the threshold
    std::vector<float> threshold;  // a row goes left where its feature is below
    std::vector<int32_t> left;     // child; the right one follows it
    std::vector<std::string> names;
    std::vector<int64_t> lanes;  // of the vectors of the machines that it was trained on
  };
  // Arrays that lead outside, or names of other features, are an error.
  explicit CostTrees(Arrays arrays);

  // What a time is expected to be; none where no such candidates, or no such machine, were among the measured ones.
  std::optional<double> time_us(const Candidate& candidate, const Target& target) const;

 private:
  float sum(std::span<const float> row) const;

  Arrays a_;
  std::map<std::string, size_t, std::less<>> routines_;  // columns
};

}  // namespace neo
