#pragma once

#include <memory>
#include <vector>

#include "exec/device_step.h"
#include "kernel_ir/language.h"
#include "routines/gpu/program.h"

namespace neo::gpu {

// How a device is told the kernels: its language, and what it can do in it.
struct Dialect {
  kernel::LanguageKind language = kernel::LanguageKind::OpenClC;
  kernel::Features features;
};
Dialect dialect_of(const DeviceInfo& device);

// A program as a step; `constants` in the order of Packed::index.
std::unique_ptr<DeviceStep> make_step(std::unique_ptr<const Program> program, std::vector<Tensor> constants);

}  // namespace neo::gpu
