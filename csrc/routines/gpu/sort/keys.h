#pragma once

#include <string>

#include "base/function_ref.h"
#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"

namespace neo::gpu {

// Blocks of `size` that hold n elements.
inline int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// Whether sorting orders elements of this type.
bool has_key(DType dtype);
// The type of its keys: int32, or int64 for int64.
DType key_dtype(DType dtype);
// A key whose order is that of the elements as on the CPU: NaN above all numbers, both zeros alike. `falling` turns the
// order around.
kernel::Expr ordered_key(const kernel::Expr& x, bool falling);
// A key that no wanted number has, sorted behind all of them. Only for falling float32 keys.
inline constexpr int64_t kLastKey = 0x7fffffff;

// A name for an int32 that is computed from sizes but too involved for the verifier's proofs. It counts as data: an
// access through it needs a guard.
kernel::Expr unproven(kernel::Builder& b, const std::string& name, const kernel::Expr& value);
// Calls body(i) with i = index where it lies in [0, elements).
void within(kernel::Builder& b, const kernel::Expr& index, const kernel::Expr& elements, FunctionRef<void()> body);

}  // namespace neo::gpu
