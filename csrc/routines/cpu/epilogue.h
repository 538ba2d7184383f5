#pragma once

#include "routines/cpu/activation.h"
#include "routines/patterns/epilogue.h"

namespace neo {

// The step in the kernels of a target; none where there is none.
Activation activation_of(const std::optional<EltwiseStep>& step, const Target& target);
// The epilogue's activation in the kernels of a target; none where there is none.
Activation activation_of(const Epilogue& epilogue, const Target& target);
// Time of the activation of the whole result, at the hint, by all threads.
double activation_us(const Epilogue& epilogue, const Value& result, const Target& target);

}  // namespace neo
