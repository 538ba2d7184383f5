#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "select/elimination.h"
#include "select/reduction.h"

namespace neo::select {

// A problem after everything that can be decided exactly and cheaply: reductions, then elimination. The rest,
// the core, is for a search; where nothing is left the problem is solved.
class Collapse {
 public:
  Collapse(Problem problem, const WorkLimits& limits);

  bool allowed() const { return allowed_; }
  const Reduction& reduction() const { return reduction_; }
  const std::vector<int>& steps() const { return steps_; }
  // Variables of the core by their number in the whole problem, and their choices.
  const std::vector<int>& core() const { return core_; }
  const std::vector<int>& sizes() const { return sizes_; }
  size_t eliminated() const { return order_.eliminated.size(); }
  // Cost and usage of what is decided.
  const std::vector<double>& constant() const { return constant_; }
  // Per plane, factors on the core's variables, numbered from 0.
  const std::vector<std::vector<Factor>>& factors() const { return factors_; }
  // Choices of the core to a choice of the whole problem; empty where every completion is forbidden.
  std::vector<int> complete(const std::vector<int>& core_choice) const;

 private:
  void eliminate(const WorkLimits& limits);
  bool use_distinct_rows(const std::vector<int>& sizes, const std::vector<int>& number, const WorkLimits& limits,
                         const std::vector<char>& by_cost);

  Reduction reduction_;
  bool allowed_ = false;
  std::vector<int> steps_;
  Order order_;
  std::vector<int> left_;      // variables of the whole problem that reductions leave
  std::vector<int> position_;  // of each, in elimination
  std::unique_ptr<Elimination> elimination_;
  std::vector<int> core_;
  std::vector<int> sizes_;
  std::vector<double> constant_;
  std::vector<std::vector<Factor>> factors_;
};

}  // namespace neo::select
