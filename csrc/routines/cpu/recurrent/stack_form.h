#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/patterns/recurrent_form.h"
#include "routines/routine.h"

namespace neo {

// Layers of which each reads the hidden states of the one before, step by step.
struct RecurrentStack {
  std::vector<const Node*> nodes;
  std::vector<RecurrentForm> layers;  // batch_first is false: the steps' rows lie one after the other
  std::vector<const Value*> results;  // of each layer: the value of the workload's outputs that holds its hidden states

  const Dim& steps() const { return layers.front().x->shape()[steps_axis]; }
  const Dim& batch() const { return layers.front().x->shape()[1 - steps_axis]; }

  int steps_axis = 0;
};

// The longest stack that ends in `root`, with what only drops or adds axes of one element between two layers. Last
// states and hidden states of the layers below that others read are inner outputs.
std::vector<Workload> match_stacks(const Node& root, const Graph::Users& users, const Graph& graph);

// The stack of such a workload, or why its layers cannot run beside each other.
std::optional<RecurrentStack> read_stack(const Workload& workload, std::string* why);

}  // namespace neo
