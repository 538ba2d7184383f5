#pragma once

#include "kernel_ir/stmt.h"

namespace neo::kernel {

// The kernel's specification: types, address spaces, every index proven to lie in its buffer and to fit in 32 bits,
// barriers and collectives only where all threads of a group come. A broken rule is an Internal error.
void verify(const Kernel& kernel);

}  // namespace neo::kernel
