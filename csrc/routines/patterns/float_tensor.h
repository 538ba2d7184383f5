#pragma once

#include "ir/graph.h"

namespace neo {

// Whether a value is there and a tensor of known rank and of this dtype.
inline bool is_float_tensor(const Value* v, DType dtype = DType::Float32) {
  return v && v->type.is_tensor() && v->dtype() == dtype && v->shape().has_rank();
}

}  // namespace neo
