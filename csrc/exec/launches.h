#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/device_step.h"

namespace neo {

// The compiled kernels and the constants of a step on one device, in the step's order.
struct StepKernels {
  std::vector<std::shared_ptr<const DeviceProgram>> programs;
  std::vector<std::string> names;
  std::vector<const DeviceBuffer*> constants;
};

// Launches with memory given to them. `argument` says where an argument of the step lies; temporaries and counts lie in
// `scratch`, which has room for temporary_offsets().
std::vector<Launch> resolve_launches(const DeviceStep& step, const StepLaunches& launches, const StepKernels& kernels,
                                     const std::function<BufferArgument(size_t)>& argument,
                                     const DeviceBuffer* scratch);

}  // namespace neo
