#pragma once

#include <memory>

#include "lower/problem.h"

namespace neo::python {

// A problem with the graph it speaks of.
struct BoundProblem {
  std::shared_ptr<Graph> graph;
  Target target;
  std::unique_ptr<SelectionProblem> problem;
};

}  // namespace neo::python
