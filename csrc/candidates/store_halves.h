#pragma once

#include <map>
#include <string>

#include "routines/routine.h"

namespace neo {

// Which values of a graph are floats of half precision, by name; of a model as it was read.
using HalfValues = std::map<std::string, DType, std::less<>>;
HalfValues find_half_values(const Graph& graph);

// After the passes, which compute halves in float32: nodes that the target's device computes from halves to halves get
// those types back, so that its memory holds half as many bytes. A value becomes a half where the model says so, or
// where it only moves elements that are halves; sums stay float32 where float16 may not hold them; casts stand between
// these nodes and the others.
void store_halves(Graph& graph, const HalfValues& halves, const Target& target, const RoutineTable& routines,
                  const OpRegistry& ops);

}  // namespace neo
