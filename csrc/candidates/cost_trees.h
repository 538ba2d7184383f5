#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routines/routine.h"

namespace neo {

// An ensemble of regression trees, whose value for a row of columns is the sum of one leaf per tree.
class RegressionTrees {
 public:
  struct Arrays {
    std::vector<int32_t> roots;
    std::vector<int16_t> feature;  // of a node, a column; -1: a leaf, whose value is the threshold
    std::vector<float> threshold;  // a row goes left where its feature is below
    std::vector<int32_t> left;     // child; the right one follows it
  };
  // Arrays that lead outside are an error.
  RegressionTrees(Arrays arrays, size_t columns);

  size_t columns() const { return columns_; }
  float value(std::span<const float> row) const;

 private:
  Arrays a_;
  size_t columns_;
};

// Trees that correct the estimates of routines by what their schedules make of the loops: by which power of two a time
// differs from the estimate (docs/tuning.md).
class CostTrees {
 public:
  // `names` of the columns; `lanes` of the vectors of the machines that the trees were trained on. Names of other
  // features than those of this neo are an error.
  CostTrees(std::shared_ptr<const RegressionTrees> trees, const std::vector<std::string>& names,
            std::vector<int64_t> lanes);

  // The expected time; none where no such candidates, or no such machine, were among the measured ones.
  std::optional<double> time_us(const Candidate& candidate, const Target& target) const;

 private:
  std::shared_ptr<const RegressionTrees> trees_;
  std::vector<int64_t> lanes_;
  std::map<std::string, size_t, std::less<>> routines_;  // columns
};

}  // namespace neo
