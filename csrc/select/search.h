#pragma once

#include <functional>
#include <vector>

#include "select/bounds.h"
#include "select/mini_buckets.h"

namespace neo::select {

// A lower bound for every partial choice of a core, as a proof: bucket elimination with its large buckets in parts.
struct Relaxation {
  std::vector<double> prices;  // of the core's resources
  int resource = -1;           // whose usage this bounds; -1: the cost, with the prices
  std::vector<Shift> shifts;
  std::vector<std::vector<MiniBuckets::Split>> splits;  // per variable; empty where its bucket is whole
};

// How to see that no choice of a core costs less than a bound (docs/selection.md). Scopes are in the order of the
// search.
struct SearchProof {
  std::vector<int> order;  // the core's variables
  std::vector<Relaxation> relaxations;
};

struct Outcome {
  std::vector<int> choice;  // the best one found
  bool found = false;
  bool complete = false;  // nothing was dropped: the choice is the best, and where there is none, none exists
  double value = kInfinity;
  double bound = kInfinity;  // no choice within the limits costs less
};

// Finds the best choice of a core within its limits, or the best found with a bound: branch and bound, level by level.
//
// Variables are assigned in the reverse of an elimination order. All partial choices of a level are extended at once;
// each carries lower bounds of its completions' cost, read from the tables of an elimination (Kask and Dechter,
// Mini-bucket heuristics for improved search, 1999), and of their usage. Those that cannot beat the best known choice
// or cannot meet a limit go; among those that agree on all variables that later costs depend on only the best stay. A
// level that is wider than allowed drops its worst: then what was dropped bounds the optimum, and the search runs again
// wider.
//
// `accept` says whether a choice really is within the limits, since bounds carry rounding errors. `proof` may be null.
Outcome search_core(const Core& core, const std::function<bool(const std::vector<int>&)>& accept,
                    const WorkLimits& limits, Deadline deadline, SearchProof* proof);

}  // namespace neo::select
