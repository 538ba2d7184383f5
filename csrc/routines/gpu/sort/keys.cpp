#include "routines/gpu/sort/keys.h"

#include "base/check.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

bool has_key(DType dtype) {
  switch (dtype) {
    case DType::Float32:
    case DType::Int64:
    case DType::Int32:
    case DType::Int16:
    case DType::Int8:
    case DType::UInt16:
    case DType::UInt8:
      return true;
    default:
      return false;
  }
}

DType key_dtype(DType dtype) {
  return dtype == DType::Int64 ? DType::Int64 : DType::Int32;
}

Expr ordered_key(const Expr& x, bool falling) {
  Expr key;
  if (x->type.dtype == DType::Float32) {
    const Expr bits = bitcast(x, DType::Int32), magnitude = bits & 0x7fffffff;
    const Expr number = select(magnitude == 0, Expr(0), select(bits < 0, bits ^ 0x7fffffff, bits));
    key = select(magnitude > 0x7f800000, Expr(0x7fffffff), number);
  } else {
    NEO_ASSERT(has_key(x->type.dtype), "for ", neo::name(x->type.dtype));
    key = x->type.dtype == key_dtype(x->type.dtype) ? x : cast(x, key_dtype(x->type.dtype));
  }
  return falling ? make(kernel::Op::BitNot, {key}) : key;
}

Expr unproven(Builder& b, const std::string& name, const Expr& value) {
  const Array held = b.registers(name + "_held", kInt, 1);
  held[0] = value;
  return b.let(name, held[0]);
}

void within(Builder& b, const Expr& index, const Expr& elements, FunctionRef<void()> body) {
  b.when(index >= 0 && index < elements, body);
}

}  // namespace neo::gpu
