#pragma once

#include "routines/target.h"

namespace neo {

// `count` packed floats that pack(float*) writes, or made-up ones where the target asks for them.
template <class F>
Tensor pack_constants(const Target& target, int64_t count, F&& pack) {
  const auto& made_up = target.made_up_constants;
  if (made_up && made_up->size() >= count) return {DType::Float32, {count}, made_up->data(), made_up->owner()};
  Tensor packed(DType::Float32, {count});
  pack(packed.as<float>());
  return packed;
}

}  // namespace neo
