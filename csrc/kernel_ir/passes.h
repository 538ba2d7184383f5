#pragma once

#include "kernel_ir/stmt.h"

namespace neo::kernel {

// Kernel to kernel; each gives a kernel that computes the same.

// Vector loops become operations on vectors: unit strides vector loads and stores, other strides one by one. A loop
// with a statement that has no vector form is unrolled.
Kernel vectorize(const Kernel& kernel);
// Writes every unrolled loop out.
Kernel unroll(const Kernel& kernel);
// Arrays of registers whose every index is a number become variables; those that are only used in whole vectors become
// vectors.
Kernel split_registers(const Kernel& kernel);
// Sums and maxima of subgroups as shuffles, the distance halved each time.
Kernel lower_reductions(const Kernel& kernel);
// Block reads and writes as plain ones, each thread its own elements.
Kernel lower_blocks(const Kernel& kernel);
// Products of matrices through local memory and barriers: for devices without instructions for them.
Kernel lower_matrices(const Kernel& kernel);
// Replaces operations of subgroups by local memory, barriers and plain loads, for devices without subgroups.
Kernel lower_subgroups(const Kernel& kernel);
// Decides what the ranges of sizes, axes and loops and the guards around decide: guards, minima, quotients, loops of no
// or one iteration.
Kernel simplify(const Kernel& kernel);
// Integer expressions that occur more than once, or in a loop that does not change them, get a name where all they are
// made of is known.
Kernel hoist(const Kernel& kernel);

// Variables that statements declare, by copies of other names; a copy of statements is no second declaration then.
Body renamed(const Body& body, const std::map<const VariableInfo*, Expr>& values);

}  // namespace neo::kernel
