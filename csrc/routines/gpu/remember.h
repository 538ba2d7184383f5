#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "kernel_ir/stmt.h"
#include "routines/routine.h"

// Results that this process found before: layers of a network repeat. All is forgotten when there is too much.
namespace neo::gpu {

// The result of `search`, which is asked once for each key.
std::vector<Schedule> remember_schedules(const std::string& key, FunctionRef<std::vector<Schedule>()> search);
// A kernel by its name, which says all that `build` depends on: building one means proving its accesses.
kernel::Kernel remember_kernel(const std::string& name, FunctionRef<kernel::Kernel()> build);

}  // namespace neo::gpu
