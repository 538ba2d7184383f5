#pragma once

#include "ops/elements.h"

// Inference and loops that the elementwise operators share, across the files of the family.

namespace neo {

using RealBinary = double (*)(double, double);
using WholeBinary = int64_t (*)(DType, int64_t, int64_t);

// One element of an integer output from those of its operands; nullopt where it is not known.
using SizeBinary = std::optional<Dim> (*)(DType, const Dim&, const Dim&);

// Records the elements of output 0, of rank 0 or 1, when those of inputs a and b are known.
void infer_binary_contents(InferContext& ctx, int a, int b, SizeBinary size);
// The result of a size computation, nullopt where it overflows.
std::optional<Dim> unless_overflow(SizeBinary size, DType dtype, const Dim& a, const Dim& b);

// Output 0 = f(input 0, input 1), with `real` for floats and `whole` for integers and bool; null: not defined there.
void reference_binary(ReferenceContext& ctx, RealBinary real, WholeBinary whole);

}  // namespace neo
