#pragma once

#include "kernel_ir/expr.h"

namespace neo::kernel {

// The value of an operation from its operands alone: numbers are computed, neutral operands dropped.
// Undefined where it stays as it is. Floats are folded only where every device gives the same bits.
Expr fold(const Expr& e);

}  // namespace neo::kernel
