#pragma once

#include "ir/graph.h"

namespace neo {

// Whether a value is there and a float32 tensor of known rank.
inline bool is_float_tensor(const Value* v) {
  return v && v->type.is_tensor() && v->dtype() == DType::Float32 && v->shape().has_rank();
}

}  // namespace neo
