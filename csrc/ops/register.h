#pragma once

#include "ops/op.h"

namespace neo {

// Adds an operator to what standard_ops() gives from now on, or replaces one that was added so; a Model error where
// neo has an operator of that name. Tables that were given out before stay as they are, for the life of the process.
void register_op(Op op);

}  // namespace neo
