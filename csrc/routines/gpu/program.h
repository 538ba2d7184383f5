#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor.h"
#include "kernel_ir/stmt.h"

// The program of a routine of a GPU, as data: kernels, and for given shapes the launches of them.
namespace neo::gpu {

// The limit on the elements of a buffer that a kernel indexes with 32 bits, where its program sets no other.
inline constexpr int64_t kMaxElements = int64_t{1} << 30;

// The place of an argument of a launch.
struct Operand {
  int index = 0;  // run-time inputs of the step in order, then its outputs
};
struct Packed {
  int index = 0;  // constants in the order in which the routine packed them
};
struct Temporary {
  int index = 0;  // of Launches::temporaries
};
// Memory, a size (int32), or a constant of the computation in the parameter's dtype.
using LaunchArgument = std::variant<Operand, Packed, Temporary, int64_t, double>;

struct KernelLaunch {
  int kernel = 0;                         // of Program::kernels
  std::vector<LaunchArgument> arguments;  // one for each of the kernel's parameters
};

struct Launches {
  std::vector<int64_t> temporaries;  // bytes; contents undefined at first, gone after the last launch
  std::vector<KernelLaunch> launches;
};

// Kernels, and how to launch them for shapes that are known. Immutable. Buffers are dense, row-major unless the
// routine's schemas say otherwise; the layouts are the routine's own matter.
class Program {
 public:
  virtual ~Program() = default;
  virtual const std::vector<kernel::Kernel>& kernels() const = 0;
  // `shapes`: the logical dims of the operands. Launches run one after the other.
  virtual Launches launches(std::span<const Dims> shapes) const = 0;
};

// A program whose outputs' sizes depend on what its inputs hold (NonZero, NonMaxSuppression). It runs in two parts:
// count() over the inputs alone finds the counts, which are read back; sizes() says what they mean; then launches()
// runs with all operands, the outputs at the sizes found. The part of a candidate is Candidate::Kind::DataDependent.
class DataDependentProgram : public Program {
 public:
  virtual int counts() const = 0;  // int32 numbers, at least one
  // Operands are the inputs and, behind them, the counts. The temporaries stay as they are for launches(), which names
  // the same ones.
  virtual Launches count(std::span<const Dims> inputs) const = 0;
  // The dims of every output.
  virtual std::vector<Dims> sizes(std::span<const Dims> inputs, std::span<const int32_t> counts) const = 0;
};

}  // namespace neo::gpu
