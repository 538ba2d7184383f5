#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "select/factor.h"

namespace neo::select {

// An elimination order; `rest`: the variables whose joined tables would exceed a limit.
struct Order {
  std::vector<int> eliminated;
  std::vector<int> rest;
  double cells = 0;  // of all joined tables
};

// The same tables, few of which wait at a time: what a variable's table is joined from comes right before it. `scopes`:
// the neighbours of each when it was eliminated.
std::vector<int> depth_first(const std::vector<int>& eliminated, const std::vector<std::vector<int>>& scopes,
                             int count);

// How the next variable is chosen: by the joined table's cells, or by the cells of the pairs that become neighbours.
enum class Rule { Weight, Fill };

// Takes the cheapest variable first, as long as its joined table has at most `limit` cells. `allowed`: those that may
// be eliminated.
Order greedy_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs, double limit,
                   Rule rule, const std::vector<char>& allowed);

// An order that sweeps each connected part from one end and keeps the variables on the boundary few: partial choices of
// a search that assigns variables in the reverse order agree on a small boundary, and only the best of them are needed.
std::vector<int> linear_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs);

// The row of each choice along an axis of a table. Choices that the table does not tell apart may share one; empty:
// each choice has its own.
using Rows = std::vector<int>;

// A factor whose axes have so many rows.
struct FoldedFactor {
  Factor factor;
  std::vector<Rows> rows;  // by axis
};

// The best choice of an eliminated variable for each combination of choices of the variables that its table was joined
// with. A choice takes one byte where the variable has fewer than 256: there is one for every cell of every table.
class Decision {
 public:
  // `rows` and `shape`: of the axes; `size`: choices of the variable.
  Decision(std::vector<int> scope, std::vector<Rows> rows, std::vector<size_t> shape, int size);

  // `choices` of the cells from `cell` on; the number of choices where all are forbidden.
  void set(size_t cell, const std::vector<int>& choices);
  // None where every choice is forbidden.
  std::optional<int> best(const std::vector<int>& choice) const;

 private:
  std::vector<int> scope_;
  std::vector<Rows> rows_;
  std::vector<size_t> shape_;
  int size_;
  std::vector<uint8_t> narrow_;
  std::vector<int> wide_;
};

// Exact bucket elimination of the variables 0 .. count - 1 in this order.
class Elimination {
 public:
  Elimination(std::vector<int> sizes, int count, std::vector<FoldedFactor> factors);
  Elimination(std::vector<int> sizes, int count, std::vector<Factor> factors);

  // The part that does not depend on a variable that is left.
  double constant() const { return constant_; }
  // On the variables that are left, one per scope.
  const std::vector<Factor>& rest() const { return rest_; }
  // Fills in the eliminated variables with a best completion of the others; false where every one is forbidden.
  bool decode(std::vector<int>& choice) const;

 private:
  void eliminate(int v);
  void place(FoldedFactor factor);

  std::vector<int> sizes_;
  std::vector<int> counts_;  // rows of each variable in the table that is made; else its choices
  int count_;
  double constant_ = 0;
  std::vector<std::vector<FoldedFactor>>
      buckets_;                      // by the first variable of the scope; empty where that is eliminated
  std::vector<Decision> decisions_;  // of the eliminated variables
  std::vector<Factor> rest_;
};

}  // namespace neo::select
