#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "select/problem.h"

namespace neo::select {

// Reductions that keep an optimum: forbidden and dominated choices go, decided variables fold into their neighbours,
// pairs that depend on one end dissolve. With limits each keeps a best choice for every limit: a choice dominates
// another only when it uses no more of anything either.
class Reduction {
 public:
  struct Variable {
    bool left = true;
    int size = 0;
    std::vector<double> unary;  // planes x size
    std::vector<int> alive;     // the choices that are left, by their index in the whole problem
    std::vector<int> pairs;
  };
  struct Pair {
    bool left = true;
    int u = 0;
    int v = 0;
    int planes = 1;
    std::vector<double> values;
  };

  explicit Reduction(Problem problem);

  // Runs every reduction until none applies. False: nothing is allowed; see `empty` and `exceeded`.
  bool run();

  // As a proof (ProofStep).
  const std::vector<int>& steps() const { return steps_; }
  // Without a choice left; -1 where there is none.
  int empty() const { return empty_; }
  // The limit that cannot be met alone; -1 where there is none.
  int exceeded() const { return exceeded_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Pair>& pairs() const { return pairs_; }
  // Cost and usage of what is decided.
  const std::vector<double>& constant() const { return constant_; }
  int planes() const { return planes_; }
  // The limits that are left, by their index in the whole problem.
  const std::vector<int>& limited() const { return limited_; }
  const std::vector<double>& limits() const { return limits_; }

  // Completes a choice of the variables that are left (index among those left in) to one of the whole problem.
  std::vector<int> restore(const std::vector<int>& choice) const;

 private:
  struct Decided {
    int v = 0;
    int by = -1;              // -1: nobody
    std::vector<int> choice;  // of v, for each choice of `by` in the whole problem; or the one
  };

  void note(int kind, int a, int b, int c);
  void push(int v);
  int other(const Pair& pair, int v) const { return pair.u == v ? pair.v : pair.u; }
  bool drop_forbidden();
  bool drop_beyond_limits();
  void forget(int k);
  bool tighten();
  bool drop_unsupported(int v);
  bool drop_dominated(int v);
  bool never_worse(int v, int b, int a) const;
  void drop_flat_pairs(int v);
  bool keep(int v, const std::vector<char>& stays);
  bool fold(int v);
  std::optional<std::pair<int, std::vector<int>>> decider(int v) const;
  void absorb(int v, int pair, const std::vector<int>& chosen);
  int find_pair(int a, int b) const;
  void add_pair(int a, int b, int planes, std::vector<double> values);
  void cut(int pair);

  int planes_ = 1;
  std::vector<Variable> variables_;
  std::vector<Pair> pairs_;
  std::vector<int> sizes_;
  std::vector<double> constant_;
  std::vector<int> limited_;
  std::vector<double> limits_;
  std::vector<int> steps_;
  std::vector<Decided> decided_;
  std::vector<int> queue_;
  size_t head_ = 0;
  std::vector<char> queued_;
  int empty_ = -1;
  int exceeded_ = -1;
};

}  // namespace neo::select
