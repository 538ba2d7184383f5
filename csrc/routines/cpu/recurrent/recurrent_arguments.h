#pragma once

#include <span>
#include <string_view>

#include "exec/step.h"
#include "routines/patterns/recurrent_form.h"
#include "routines/routine.h"

namespace neo {

// Where the tensors of a recurrent layer are among its step's arguments; -1: it has none, or a constant.
struct RecurrentArguments {
  int x = 0, lengths = -1, initial_h = -1, initial_c = -1;
  int w = -1, r = -1, b = -1, peepholes = -1;
  int outputs[3] = {-1, -1, -1};

  // The arguments of a node of the candidate's group.
  static RecurrentArguments of(const Candidate& candidate, const RecurrentForm& form, const Node& node);

  struct Sizes {
    int64_t steps = 0, batch = 0;
  };
  // The sizes of X, whose layout is the form's. A Shape error where the lengths or an initial state do not fit them.
  Sizes sizes(std::span<const Arg> args, const RecurrentForm& form, std::string_view op) const;
  // A Shape error where an initial state has other dims.
  void check_states(std::span<const Arg> args, const Dims& state, std::string_view op) const;
};

}  // namespace neo
