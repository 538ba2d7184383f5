#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "routines/routine.h"

namespace neo {

inline constexpr double kForbidden = std::numeric_limits<double>::infinity();

// The selection problem of a graph (docs/selection.md), bodies included. To a solver it is the arrays at the end; the
// rest says what they mean.
struct SelectionProblem {
  // One way for a node: executed by a candidate that ends in it, absorbed by the group of a later node, or fixed
  // (control flow).
  struct Choice {
    std::optional<Candidate> candidate;
    int absorbed_by = -1;  // group
  };
  // Why a routine was not offered for a node.
  struct Rejection {
    const Routine* routine = nullptr;
    std::string reason;
  };
  struct NodeVariable {
    const Node* node = nullptr;
    double trips = 1;  // expected executions per call
    std::vector<Choice> choices;
    std::vector<Rejection> rejections;
  };
  // On: the value is converted to this schema (or produced in it), once for all consumers that want it.
  struct SchemaVariable {
    const Value* value = nullptr;
    Schema schema;
  };
  struct Group {
    std::vector<const Node*> nodes;  // root last
  };

  std::vector<NodeVariable> nodes;      // variables 0 .. nodes.size()-1
  std::vector<SchemaVariable> schemas;  // then these; choice 0 is off, 1 is on
  std::vector<Group> groups;

  // Arrays. Times in microseconds; kForbidden where a choice or a pair is impossible.
  struct Edge {
    int u = 0;
    int v = 0;                  // u < v
    std::vector<double> costs;  // row-major, choices(u) x choices(v)
  };
  std::vector<std::vector<double>> costs;
  std::vector<Edge> edges;
  std::map<std::string, std::vector<std::vector<double>>> resources;  // "packed_bytes", "workspace_bytes", "error"

  std::map<const Node*, int> index;
};

// `pin` may forbid routines by node name: returns false for a candidate that must not be chosen.
struct ProblemOptions {
  std::function<bool(const Node&, const Candidate&)> allow;
};

std::unique_ptr<SelectionProblem> build_problem(const Graph& graph, const OpRegistry& ops, const RoutineTable& routines,
                                                const Target& target, const ProblemOptions& options = {});

}  // namespace neo
