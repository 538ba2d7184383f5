#pragma once

#include <string_view>
#include <vector>

#include "select/problem.h"
#include "select/search.h"

namespace neo::select {

// The proof of a lower bound (docs/selection.md).
struct Certificate {
  std::vector<int> steps;     // see ProofStep
  bool uses_limits = false;   // whether the steps heed the limits
  std::vector<int> limited;   // resources of the search, by their index in the problem
  std::vector<int> searched;  // the variables of the search's order, by their number in the problem
  SearchProof search;         // of what the steps leave; without relaxations where that is nothing
};

// Why nothing was found.
enum class Obstacle {
  None,
  Variable,      // none of a variable's choices fits
  Pairs,         // forbidden pairs leave nothing
  Limit,         // one limit cannot be met alone
  Limits,        // each limit can be met, but not all together
  LimitsEffort,  // no choice within the limits was found, and none is ruled out
  Effort,        // no allowed choice was found, and none is ruled out
};

struct Solution {
  std::vector<int> choice;
  double bound = 0;     // no choice within the limits costs less; of no meaning where it is proven
  bool proven = false;  // no choice is better
  std::string_view method;
  Certificate certificate;
  Obstacle obstacle = Obstacle::None;
  int which = -1;                // the variable, or the resource, of the obstacle
  double smallest = 0;           // usage of that resource that every allowed choice reaches
  bool smallest_proven = false;  // and that some choice has
};

struct SolveOptions {
  WorkLimits work;
  Deadline deadline = Deadline::max();  // for a search; the first narrow one always ends
  bool certify = false;                 // gives the proof, too
  bool search_alone = false;            // without reductions and elimination, to compare with; limits are not looked at
};

// The best choice of a problem within its limits with a proof, or a good one with a bound: reductions, elimination,
// then a search of what they leave. Without a deadline the same problem has the same solution.
Solution solve(const Problem& problem, const SolveOptions& options);

}  // namespace neo::select
