#include "routines/cpu/recurrent/recurrent_arguments.h"

#include "base/check.h"
#include "routines/patterns/epilogue.h"

namespace neo {

RecurrentArguments RecurrentArguments::of(const Candidate& candidate, const RecurrentForm& form, const Node& node) {
  RecurrentArguments a;
  a.x = argument_of(candidate, form.x);
  a.lengths = argument_of(candidate, form.lengths);
  a.initial_h = argument_of(candidate, form.initial_h);
  a.initial_c = argument_of(candidate, form.initial_c);
  if (!form.has_constant_weights) {
    a.w = argument_of(candidate, form.w);
    a.r = argument_of(candidate, form.r);
    a.b = argument_of(candidate, form.b);
    a.peepholes = argument_of(candidate, form.peepholes);
  }
  for (size_t i = 0; i < 3; ++i) a.outputs[i] = argument_of_result(candidate, node.output(i));
  return a;
}

RecurrentArguments::Sizes RecurrentArguments::sizes(std::span<const Arg> args, const RecurrentForm& form,
                                                    std::string_view op) const {
  for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "a recurrent layer takes dense tensors");
  const Dims& dims = args[static_cast<size_t>(x)].dims;
  const int64_t steps = dims[form.batch_first ? 1 : 0], batch = dims[form.batch_first ? 0 : 1];
  const Dims state =
      form.batch_first ? Dims{batch, form.directions, form.hidden} : Dims{form.directions, batch, form.hidden};
  if (lengths >= 0) {
    const Dims& given = args[static_cast<size_t>(lengths)].dims;
    NEO_CHECK(given == Dims{batch}, Shape, op, "sequence_lens must have dims ", to_string(Dims{batch}), ". Got ",
              to_string(given));
  }
  check_states(args, state, op);
  return {steps, batch};
}

void RecurrentArguments::check_states(std::span<const Arg> args, const Dims& state, std::string_view op) const {
  for (const int i : {initial_h, initial_c}) {
    if (i < 0) continue;
    const Dims& given = args[static_cast<size_t>(i)].dims;
    NEO_CHECK(given == state, Shape, op, "an initial state must have dims ", to_string(state), ". Got ",
              to_string(given));
  }
}

}  // namespace neo
