#pragma once

#include <vector>

#include "select/mini_buckets.h"

namespace neo::select {

// A choice of every variable with nothing forbidden: variables are decided in the order of the search, the choice of
// the least bound first, and what no longer fits anything goes from all others (Sabin and Freuder, Contradicting
// conventional wisdom in constraint satisfaction, 1994). `tables` are those of the costs. Empty where there is none, or
// where none is found in some thousand attempts.
std::vector<int> dive(const std::vector<int>& sizes, const std::vector<Factor>& costs, const MiniBuckets& tables);

}  // namespace neo::select
