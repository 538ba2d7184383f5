#pragma once

#include <cstdint>
#include <vector>

#include "select/bounds.h"
#include "select/mini_buckets.h"

namespace neo::select {

inline constexpr double kSearchTolerance = 1e-9;  // a choice must be better by this share to count as better

// Bounds of one sum at partial choices.
struct Objective {
  MiniBuckets tables;
  double most = kInfinity;  // beyond which a partial choice goes
  double offset = 0;        // added to the bound of the cost
  bool is_limit = false;    // of a resource's usage, not of the cost
};

// One run of a search, which keeps `width` partial choices of each level.
class Levels {
 public:
  // Whole choices, cheapest first; the least bound of what was dropped, and whether anything was.
  struct Found {
    std::vector<std::vector<int>> choices;
    double floor = kInfinity;
    bool dropped = false;
  };

  // `objectives`: those of the cost, then one per limit.
  Levels(std::vector<int> sizes, const std::vector<std::vector<int>>& scopes, std::vector<Objective> objectives);

  // Choices that cost less than `value`.
  Found run(double value, size_t width, Deadline deadline);

 private:
  // For every state of a level its parent in the level before, and its choice.
  struct Level {
    std::vector<int> parents;
    std::vector<int> values;
  };

  // Every state with every choice of v that keeps to the limits and whose cost is below `beat`.
  Level extend(int v, double beat);
  // The same for states that agree on all variables that are still needed.
  std::vector<int64_t> keys() const;
  // The bound of every state's cost.
  std::vector<double> ranks() const;
  // The states for which no other one is known that agrees with them, costs no more and uses no more.
  std::vector<int> undominated() const;
  std::vector<int> trace(const std::vector<Level>& levels, int end) const;

  std::vector<int> sizes_;
  std::vector<Objective> objectives_;
  size_t limits_ = 0;              // objectives of limits, which come last
  std::vector<int> needed_until_;  // the last variable, counting down, whose costs depend on this one
  // The states of the level at hand.
  std::vector<std::vector<double>> bounds_;  // per objective
  std::vector<std::vector<int>> columns_;    // per variable its choice in every state; empty where it is not needed
};

}  // namespace neo::select
