#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/cpu/conv/fused/fused_convs.h"
#include "routines/patterns/conv_problem.h"

namespace neo {

// A convolution with constant weights of one tap that reads the pixel it writes, in one group.
bool is_pointwise(const Node& node);

// Which convolutions a chain has; one of them is always there: the depthwise one.
struct ChainForm {
  Expansion expansion = Expansion::None;
  bool project = false;
};

// Groups of that form that end in `root`: each convolution may have an activation of one step behind it, the
// projection an Add, or an Add and a Relu or Clip, instead. Only the next node reads what lies between.
std::vector<Workload> match_chains(const Node& root, ChainForm form, const Graph::Users& users, const Graph& graph);

// One convolution of a chain and what follows it.
struct ChainLink {
  ConvProblem conv;
  std::optional<EltwiseStep> activation;
};

// A group that match_chains() made, as a routine sees it.
struct ChainProblem {
  Expansion expansion = Expansion::None;
  std::optional<ChainLink> expand, project;
  ChainLink depthwise;
  const Value* x = nullptr;
  const Value* y = nullptr;
  const Value* residual = nullptr;  // or null
  float lo = 0, hi = 0;             // of the projection

  int64_t ic() const { return expand ? expand->conv.geometry.ic : depthwise.conv.geometry.ic; }
  int64_t oc() const { return project ? project->conv.geometry.oc : depthwise.conv.geometry.oc; }
  int rank() const { return depthwise.conv.rank(); }
  ChainShape shape(const Dims& x, const Dims& y) const;  // dims of the chain's input and output
};

// None, with the reason, where no routine takes it.
std::optional<ChainProblem> read_chain(const Workload& workload, std::string* why);

}  // namespace neo
