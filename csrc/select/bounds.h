#pragma once

#include <chrono>
#include <vector>

#include "select/factor.h"

namespace neo::select {

using Deadline = std::chrono::steady_clock::time_point;

// Some seconds from now; no end where they are more than a clock can count.
Deadline deadline_in(double seconds);

inline bool is_over(Deadline deadline) {
  return deadline != Deadline::max() && std::chrono::steady_clock::now() > deadline;
}

// A problem to search: variables, factors that sum to the cost, and for each limited resource those of its usage.
struct Core {
  std::vector<int> sizes;
  std::vector<Factor> costs;
  std::vector<std::vector<Factor>> usage;
  std::vector<double> limits;
};

// A vector that was added to a factor along one axis and taken from the axis's variable alone.
struct Shift {
  std::vector<int> scope;
  int axis = 0;
  std::vector<double> added;
};

struct Messages {
  std::vector<Factor> factors;  // of the same sum; one per variable first
  std::vector<Shift> shifts;
};

// Equivalent factors whose separate minima sum to a better bound. Sequential sweeps there and back: each variable
// collects the minima of its factors and hands equal shares of them to the factors ahead (TRW-S: Kolmogorov, Convergent
// tree-reweighted message passing, 2006; longer scopes: Kolmogorov, A new look at reweighted message passing, 2015).
Messages pass_messages(const std::vector<int>& sizes, std::vector<Factor> factors, int rounds, Deadline deadline);

// A lower bound of the cost of every choice within the limits, from prices on the resources.
struct Priced {
  std::vector<double> prices;  // at least 0
  double bound = -kInfinity;
  std::vector<std::vector<int>> choices;  // met on the way; they may exceed limits
};

// Maximises the Lagrangian bound, the minimum over choices of cost + prices x (usage - limits), over prices >= 0. One
// price at a time is followed exactly: the bound is concave and piecewise linear in it, and the crossing of two
// tangents converges in a few steps. With several resources, subgradient steps come last.
Priced price_resources(const Core& core, const WorkLimits& limits, Deadline deadline);

// Looks at the limits alone: a bound above 0 proves that they cannot be met together. Weights on the resources follow
// their violations (Plotkin, Shmoys and Tardos, Fast approximation algorithms for fractional packing and covering
// problems, 1995); the bound is of the weighted sum of the violations.
Priced price_violations(const Core& core, const WorkLimits& limits, Deadline deadline);

// The forbidden combinations of factors, as costs of 0 and infinity.
std::vector<Factor> forbidden_of(const std::vector<Factor>& factors);
// A price on each resource, added to factors.
void add_priced(std::vector<Factor>& factors, const Core& core, const std::vector<double>& prices);
double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace neo::select
