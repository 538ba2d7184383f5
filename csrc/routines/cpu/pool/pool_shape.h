#pragma once

#include "exec/step.h"
#include "ops/window.h"
#include "routines/cpu/pool/pool.h"

namespace neo {

// The shape of a pool of 1 to 3 spatial axes, in channel blocks of so many lanes; what it does with them is left open.
PoolShape pool_shape(const Window& window, const Arg& src, const Arg& dst, int64_t lanes);

}  // namespace neo
