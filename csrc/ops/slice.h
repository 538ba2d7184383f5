#pragma once

#include "ops/op.h"

namespace neo {

// Slice with starts, ends, axes and steps as they are when it runs.
void reference_slice(ReferenceContext& ctx);

}  // namespace neo
