#pragma once

#include "routines/cpu/recurrent/recurrent_plan.h"

namespace neo {

// Microseconds of a layer, fitted to measurements of layers of 128 ... 1024 units; the step that runs it comes on top.
double recurrent_us(const RecurrentForm& form, const RecurrentMethod& method, int64_t steps, int64_t batch,
                    const Target& target);

}  // namespace neo
