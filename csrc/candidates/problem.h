#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "candidates/cost_trees.h"
#include "candidates/known_sizes.h"
#include "passes/expansion.h"
#include "routines/routine.h"

namespace neo {

inline constexpr double kForbidden = std::numeric_limits<double>::infinity();

// Choice::absorbed_by of a node that is not computed; of one that an inner graph computes; of a node of an inner graph
// that is not taken.
inline constexpr int kLeftOut = -2;
inline constexpr int kExpanded = -3;
inline constexpr int kNotTaken = -4;

// The selection problem of a graph (docs/selection.md), bodies included. To a solver it is the arrays at the end; the
// rest says what they mean.
struct SelectionProblem {
  // One way for a node: executed by a candidate that ends in it, absorbed by the group of a later node, computed by an
  // inner graph, left out since its result is a constant or every reader computes it for itself, or fixed (control
  // flow).
  struct Choice {
    std::optional<Candidate> candidate;
    int absorbed_by = -1;    // group, or one of the constants above
    double estimate_us = 0;  // what is expected; candidate->cost.time_us may be a measured time
    bool measured = false;
    int expansion = -1;  // where absorbed_by is kExpanded
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
    int expansion = -1;  // whose node it is; -1: the graph's
  };
  // An inner graph that would compute some nodes: its nodes are variables like others, and all of them are taken where
  // the root's choice is this expansion.
  struct Expanded {
    const NodeExpansion* expansion = nullptr;
    const Graph* around = nullptr;
    std::vector<const Node*> nodes;  // that it computes, root last
    std::unique_ptr<Graph> graph;
  };
  // On: the value is converted to this schema (or produced in it), once for all consumers that want it.
  struct SchemaVariable {
    const Value* value = nullptr;
    Schema schema;
  };
  struct Group {
    std::vector<const Node*> nodes;  // root last
  };
  // A conversion that some edge contains, once for all values of the same sizes (at the hints).
  struct Conversion {
    const Value* value = nullptr;
    Schema from;
    Schema to;
    double estimate_us = 0;
    double time_us = 0;  // what the edges are made of
    bool measured = false;
  };

  std::vector<std::pair<const Graph*, double>> graphs;  // the graph, bodies and inner graphs, with their trips
  std::vector<NodeVariable> nodes;                      // variables 0 .. nodes.size()-1
  std::vector<SchemaVariable> schemas;                  // then these; choice 0 is off, 1 is on
  std::vector<Group> groups;
  std::vector<Conversion> conversions;
  std::vector<Expanded> expansions;
  std::unordered_map<const Value*, const Value*> interfaces;  // of inner graphs: which value around them it is
  OpenNodes open;
  bool cold_constants = false;  // what estimates took them for

  // Arrays. Times in microseconds; kForbidden where a choice or a pair is impossible.
  struct Edge {
    int u = 0;
    int v = 0;                  // u < v
    std::vector<double> costs;  // row-major, choices(u) x choices(v)
  };
  std::vector<std::vector<double>> costs;
  std::vector<Edge> edges;
  // "constant_bytes" (packed, or read as they are), "workspace_bytes", "error", "rounding" (1 where operands are
  // rounded).
  std::map<std::string, std::vector<std::vector<double>>> resources;

  std::map<const Node*, int> index;
  std::map<std::string, size_t> conversion_index;  // by conversion_key

  // The conversion of a value; null where the problem has none.
  const Conversion* conversion(const Value& value, const Schema& from, const Schema& to) const;
  // The value around an inner graph that this one is; any other is itself.
  const Value* outer(const Value* value) const;
};

// The nodes of a group that nobody but it computes, the root last.
std::vector<const Node*> members_of(const Workload& workload);
// The kind of device that runs a candidate.
DeviceKind place_of(const Candidate& candidate);
// The places of every choice of every node, a bit each (1 << kind): that of its candidate, those of the groups that
// would absorb it; 0: control flow.
std::vector<std::vector<uint32_t>> places_of(const SelectionProblem& problem);

// The microseconds that a candidate adds to the arrays beside its time: Target::cpu_penalty_us for each node on the CPU
// beside a device.
double penalty_us(const Candidate& candidate, const Target& target);
// The sum of the times behind a solution of `total_us`.
double time_behind(const SelectionProblem& problem, const std::vector<int>& choices, double total_us,
                   const Target& target);

// "float32[1,64,56,56]": sizes at the hints.
std::string sizes_text(const Type& type);
// "float32[1,64,56,56] cpu:float32:NCHW->cpu:float32:NCHW16c"
std::string conversion_key(const Value& value, const Schema& from, const Schema& to);

struct ProblemOptions {
  // Returns false for a candidate or an expansion, given as text, that must not compute these nodes.
  std::function<bool(const std::vector<const Node*>&, const std::string&)> allow;
  std::shared_ptr<const CostTrees> trees;  // correct the estimates; may be null
};

std::unique_ptr<SelectionProblem> build_problem(const Graph& graph, const OpRegistry& ops, const RoutineTable& routines,
                                                const Target& target, const ProblemOptions& options = {});

// Makes the arrays anew after times of candidates or conversions were changed.
void price_problem(SelectionProblem& problem, const Target& target);

}  // namespace neo
