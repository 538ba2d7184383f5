#pragma once

#include <vector>

#include "select/factor.h"

namespace neo::select {

// Bucket elimination of all variables in their order, with large buckets in parts: a lower bound of a sum of factors
// (Dechter and Rish, Mini-buckets: a general scheme for bounded inference, 2003). Costs of the eliminated variable are
// first evened out between the parts of its bucket.
class MiniBuckets {
 public:
  struct Part {
    Factor joined;                // the eliminated variable is its first axis
    std::vector<double> message;  // its minimum over that axis
  };
  // A part of a split bucket for a proof: the scopes that it has, and what was added along the variable.
  struct Split {
    std::vector<std::vector<int>> scopes;
    std::vector<double> added;
  };

  // A bucket whose joined table would have more than `limit` cells is split; also one that would take more than a 64th
  // of what the tables before it leave of `most` cells.
  MiniBuckets(std::vector<int> sizes, std::vector<Factor> factors, double limit, double most);

  // The minimum of the sum where no bucket was split.
  double bound() const { return bound_; }
  bool is_exact() const { return exact_; }
  const std::vector<std::vector<Part>>& parts() const { return parts_; }
  // Per variable; empty where its bucket is whole.
  const std::vector<std::vector<Split>>& splits() const { return splits_; }
  // A choice of every variable, the best one where no bucket was split; empty where what is found is forbidden.
  std::vector<int> decode() const;
  // The bound of a choice of v and all later variables, less what no choice of these adds.
  double bound_of(size_t v, const std::vector<int>& choice) const;

 private:
  void eliminate(std::vector<Factor> bucket, int v, double limit);
  void place(Factor factor);

  std::vector<int> sizes_;
  double bound_ = 0;
  bool exact_ = true;
  std::vector<std::vector<Factor>> waiting_;  // by the first variable of the scope
  std::vector<std::vector<Part>> parts_;
  std::vector<std::vector<Split>> splits_;
};

}  // namespace neo::select
