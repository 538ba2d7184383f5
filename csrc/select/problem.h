#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

namespace neo::select {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An int as the index of a vector.
inline size_t at(int i) {
  return static_cast<size_t>(i);
}

// A sum of many numbers that is rounded once: Neumaier's variant of compensated summation (1974).
class Sum {
 public:
  void add(double x);
  double value() const { return total_ == kInfinity ? total_ : total_ + lost_; }

 private:
  double total_ = 0;
  double lost_ = 0;
};

// A selection problem for the solvers. A table has one plane per quantity: the cost, then the usage of each limited
// resource. Infinite cost: forbidden; usage is finite.
struct Problem {
  struct Pair {
    int u = 0;
    int v = 0;  // u < v, each pair once
    int planes = 1;
    std::vector<double> values;  // planes x choices(u) x choices(v)
  };

  int planes = 1;
  std::vector<std::vector<double>> unary;  // per variable, planes x choices
  std::vector<Pair> pairs;
  std::vector<double> limits;  // planes - 1

  int count() const { return static_cast<int>(unary.size()); }
  int size(int v) const { return static_cast<int>(unary[at(v)].size()) / planes; }
  // The sum of a plane at a choice per variable.
  double value(const std::vector<int>& choice, int plane) const;
  // Whether every limit is met.
  bool is_within_limits(const std::vector<int>& choice) const;
  // The costs alone.
  Problem without_limits() const;
  // The usage of a limited resource as the costs, and forbidden what is forbidden here.
  Problem of_usage(int resource) const;
};

// Limits are met up to rounding: this share of them.
inline constexpr double kLimitTolerance = 1e-12;
double rounding_of(double limit);

// Sizes that bound the work, by which the same problem has the same solution on every machine.
struct WorkLimits {
  double largest = 1 << 20;             // cells of one joined table of the exact elimination
  double most = 1 << 23;                // cells of all of them; beyond, only tables within `small` are made
  double small = 1 << 16;               // cells
  double enough = 1 << 16;              // cells of all tables up to which no other order is tried
  double distinct = 1 << 20;            // cells of all tables up to which equal rows are not looked for
  double distinct_largest = 1 << 22;    // cells of one joined table whose equal rows are one
  double distinct_most = 1 << 25;       // cells of all of them
  double table = 1 << 16;               // cells of a table of a search's bounds, beyond which its bucket is split
  double quick_table = 1 << 13;         // the same in the search that comes first
  double quick_gap = 0.1;               // share of its choice by which that may lie above the bound
  double tables = 1 << 25;              // cells of all of these tables, as far as splitting achieves it
  double first_width = 1 << 6;          // partial choices that a level of the first search keeps
  double last_width = 1 << 11;          // of the last search
  double last_width_limited = 1 << 13;  // of the last search within limits
  double last_width_timed = 1 << 19;    // of the last search that a time budget ends

  // The member of this name; null where there is none.
  double* find(std::string_view name);
};

// The steps of a proof as numbers, in order; choices by their index in the whole problem. The claim of each
// can be checked on what the steps before it leave (docs/selection.md).
enum ProofStep : int {
  kDrop,    // v, a, b: choice b of v is never worse than a; b = -1: a is forbidden beside every choice of a neighbour
  kBeyond,  // v, a, k: a exceeds limit k whatever else is chosen
  kForget,  // k, 0, 0: no choice exceeds limit k
  kFlat,    // v, other: the pair's costs depend on v alone
  kFix,     // v, a: v has the one choice a
  kFollow,  // v, u, n, then n numbers: each choice of u allows one choice of v (-1 where u's is gone)
  kEliminate,  // v: minimised over, for every choice of its neighbours
};

}  // namespace neo::select
