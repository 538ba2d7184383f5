#pragma once

#include <map>

#include "kernel_ir/expr.h"

namespace neo::kernel {

// An integer formula for given values of its variables. A variable without one, an overflow or a division by zero is a
// Shape error.
int64_t evaluate(const Expr& e, const std::map<const VariableInfo*, int64_t>& values);

}  // namespace neo::kernel
