#pragma once

#include "routines/gpu/recurrent/recurrent.h"

namespace neo::gpu {

// The products of the input with W, and the biases: [row][direction][panel][gate][lane] of rows of x.
kernel::Kernel recurrent_input_kernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule);

// One step of all directions, from h and the products of the input to the new h; LSTM's cells are changed in place. For
// GruGates one kernel makes z and r * h, a second one the new h.
kernel::Kernel recurrent_step_kernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule, CellKind kind);

// A state between its operand and [direction][batch][panel][lane].
kernel::Kernel recurrent_load_kernel(const RecurrentSchedule& schedule);
kernel::Kernel recurrent_clear_kernel(const RecurrentSchedule& schedule);
kernel::Kernel recurrent_store_kernel(const RecurrentSchedule& schedule);

}  // namespace neo::gpu
