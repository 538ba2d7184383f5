#pragma once

#include <vector>

#include "select/bounds.h"

namespace neo::select {

// Improves a choice of every variable: all but a window of neighbouring variables are held, and the window's best
// choice is found exactly, window by window until a sweep over all of them finds nothing better (Shaw, Using constraint
// programming and local search methods to solve vehicle routing problems, 1998). A window whose elimination would take
// a table of more than `table` cells is halved.
std::vector<int> improved(const std::vector<int>& sizes, const std::vector<Factor>& costs, std::vector<int> choice,
                          double table, Deadline deadline);

}  // namespace neo::select
