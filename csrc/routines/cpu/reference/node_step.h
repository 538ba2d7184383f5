#pragma once

#include <memory>

#include "ops/op.h"
#include "routines/routine.h"

namespace neo {

// Computes one node as an op's reference does. An input that the candidate does not read is an undefined tensor.
using NodeFunction = void (*)(ReferenceContext&);

// A step on the host that computes the candidate's node, of which it keeps a copy, by a function.
std::unique_ptr<Step> make_node_step(const Candidate& candidate, const OpRegistry& ops, NodeFunction function);

}  // namespace neo
