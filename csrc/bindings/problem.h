#pragma once

#include <functional>
#include <memory>

#include "candidates/problem.h"

namespace neo::python {

// A problem with the graph it speaks of.
struct BoundProblem {
  std::shared_ptr<Graph> graph;
  Target target;
  std::unique_ptr<SelectionProblem> problem;
  // Set where constants of the graph were released: makes the graph once more.
  std::function<std::shared_ptr<Graph>()> remake;
};

}  // namespace neo::python
