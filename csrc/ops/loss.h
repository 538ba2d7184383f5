#pragma once

#include <functional>

#include "ops/op.h"

namespace neo {

// Writes output 0 of a loss: what labels say of log probabilities, of which `log_probability` gives element `i`. A
// Shape error where the inputs do not fit each other.
void write_loss(ReferenceContext& ctx, const std::function<double(int64_t i)>& log_probability);

}  // namespace neo
