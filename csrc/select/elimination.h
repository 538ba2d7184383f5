#pragma once

#include <cstdint>
#include <vector>

namespace neo::select {

// An elimination order; `rest`: the variables whose joined tables would exceed a limit.
struct Order {
  std::vector<int> eliminated;
  std::vector<int> rest;
  double cells = 0;  // of all joined tables
};

// By which the next variable is taken: the joined table's cells, or the cells of the pairs that become neighbours.
enum class Rule { Weight, Fill };

// Takes the cheapest variable first, as long as its joined table has at most `limit` cells. `allowed`: those that may
// be eliminated.
Order greedy_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs, double limit,
                   Rule rule, const std::vector<char>& allowed);

// A table with an axis per variable of its scope, which increases; row-major.
struct Factor {
  std::vector<int> scope;
  std::vector<double> values;
};

// Exact bucket elimination of the variables 0 .. count - 1 in this order.
class Elimination {
 public:
  Elimination(std::vector<int> sizes, int count, std::vector<Factor> factors);

  // What does not depend on a variable that is left.
  double constant() const { return constant_; }
  // On the variables that are left, one per scope.
  const std::vector<Factor>& rest() const { return rest_; }
  // Fills in the eliminated variables with a best completion of the others; false where every one is forbidden.
  bool decode(std::vector<int>& choice) const;

 private:
  void eliminate(int v);
  void place(Factor factor);

  std::vector<int> sizes_;
  int count_;
  double constant_ = 0;
  std::vector<std::vector<Factor>> buckets_;  // by the first variable of the scope
  std::vector<Factor> rest_;
};

}  // namespace neo::select
