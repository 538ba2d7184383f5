#pragma once

#include "kernel_ir/builder.h"
#include "routines/patterns/eltwise_program.h"

namespace neo::gpu {

// The value of one step of an elementwise program, in the dtype and lanes of its operands: float32 with truth values as
// 0 and 1, or (`apply_whole_step`) int64. Operands that a step does not take are ignored.
kernel::Expr apply_step(kernel::Builder& builder, const EltwiseStep& step, const kernel::Expr& a,
                        const kernel::Expr& b = {}, const kernel::Expr& c = {});
kernel::Expr apply_whole_step(EltwiseOp op, const kernel::Expr& a, const kernel::Expr& b = {},
                              const kernel::Expr& c = {});

// NaN where either operand is NaN. Operands are written out more than once: variables, not computations.
kernel::Expr max_nan(const kernel::Expr& a, const kernel::Expr& b);
kernel::Expr min_nan(const kernel::Expr& a, const kernel::Expr& b);
// x held inside [lo, hi]; NaN stays.
kernel::Expr clamp_nan(kernel::Builder& builder, const kernel::Expr& x, const kernel::Expr& lo, const kernel::Expr& hi);
kernel::Expr sigmoid(const kernel::Expr& x);
kernel::Expr call(kernel::Op function, const kernel::Expr& x);

// As a kernel reads an element of this type, and as memory holds it: halves are read as float32.
DType memory_dtype(EltwiseType type);
DType storage_dtype(EltwiseType type);

}  // namespace neo::gpu
