#include "exec/launches.h"

#include "exec/binding.h"

namespace neo {

std::vector<Launch> resolve_launches(const DeviceStep& step, const StepLaunches& launches, const StepKernels& kernels,
                                     const std::function<BufferArgument(size_t)>& argument,
                                     const DeviceBuffer* scratch) {
  const std::vector<int64_t> temporaries = temporary_offsets(launches, step.counts());
  const auto place = [&](const StepOperand& operand) -> BufferArgument {
    const auto i = static_cast<size_t>(operand.index);
    switch (operand.place) {
      case StepOperand::Place::Argument:
        return argument(i);
      case StepOperand::Place::Constant:
        return {kernels.constants[i], 0};
      case StepOperand::Place::Temporary:
        return {scratch, temporaries[i]};
      case StepOperand::Place::Counts:
        break;
    }
    return {scratch, 0};
  };
  std::vector<Launch> resolved;
  for (const StepLaunch& l : launches.launches) {
    const auto k = static_cast<size_t>(l.kernel);
    Launch launch{kernels.programs[k], kernels.names[k], l.groups, l.locals, l.local_bytes, {}};
    for (const StepLaunchArgument& a : l.arguments) {
      if (const auto* number = std::get_if<NumberArgument>(&a)) {
        launch.arguments.emplace_back(*number);
      } else {
        const auto& operand = std::get<StepOperand>(a);
        BufferArgument placed = place(operand);
        placed.texels = operand.texels;
        launch.arguments.emplace_back(placed);
      }
    }
    resolved.push_back(std::move(launch));
  }
  return resolved;
}

}  // namespace neo
