#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "exec/device.h"
#include "exec/step.h"

namespace neo {

// The memory that an argument of a step's launch lies in.
struct StepOperand {
  enum class Place : uint8_t {
    Argument,   // of the step: its inputs, then its outputs
    Constant,   // of the step
    Temporary,  // of the launches
    Counts,     // int32, of a step that counts
  };
  Place place = Place::Argument;
  int index = 0;
  int64_t bytes = 0;              // that the kernel may touch
  std::optional<int64_t> texels;  // the texels of an image; none: the parameter is memory
};
using StepLaunchArgument = std::variant<StepOperand, NumberArgument>;

// A launch before memory was given to it.
struct StepLaunch {
  int kernel = 0;  // of the step
  std::array<int64_t, 3> groups{1, 1, 1};
  std::array<int64_t, 3> locals{1, 1, 1};
  int64_t local_bytes = 0;
  std::vector<StepLaunchArgument> arguments;
};
struct StepLaunches {
  std::vector<int64_t> temporaries;  // bytes; contents undefined at first
  std::vector<StepLaunch> launches;  // one after the other
};

// A kernel as a device's compiler takes it.
struct KernelSource {
  std::string name;
  ProgramSource program;
};

// A step on a device, as data: kernels, constants, and for given sizes the launches. Every argument is dense.
class DeviceStep : public Step {
 public:
  Kind kind() const final { return Kind::Device; }
  virtual int kernel_count() const = 0;
  // The text depends on the device's language and features only.
  virtual KernelSource kernel(int index, const DeviceInfo& device) const = 0;
  virtual std::span<const Tensor> constants() const = 0;
  virtual StepLaunches launches(std::span<const Arg> args) const = 0;

  // A step that counts finds out the sizes of its outputs: first `count` runs, over the inputs; its counts are read
  // back; `sizes` says what they mean; then `launches` with all arguments and what `count` left in its temporaries.
  virtual int counts() const { return 0; }
  virtual StepLaunches count(std::span<const Arg>) const { return {}; }
  virtual std::vector<Dims> sizes(std::span<const Arg>, std::span<const int32_t>) const { return {}; }
};

}  // namespace neo
