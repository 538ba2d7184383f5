#pragma once

#include <cstddef>
#include <vector>

namespace neo::select {

// An int as the index of a vector.
inline size_t at(int i) {
  return static_cast<size_t>(i);
}

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
  int size(int v) const { return static_cast<int>(unary[static_cast<size_t>(v)].size()) / planes; }
};

// Limits are met up to rounding: this share of them.
inline constexpr double kLimitTolerance = 1e-12;

// The steps of a proof as numbers, in order; choices by their index in the whole problem. What each claims can be
// checked on what the steps before it leave (docs/selection.md).
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
