#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/team.h"
#include "ir/layout.h"
#include "ir/tensor.h"

namespace neo {

// One argument of a step with all sizes known. A view has strides of its own; memory is base + strides + layout.
struct Arg {
  DType dtype = DType::Undefined;
  Layout layout;
  Dims dims;     // logical
  Dims strides;  // physical axes of the layout, in elements
  bool present = true;

  bool is_dense() const;  // strides are those of a dense buffer (axes of size 1 do not count)
};

// The result of prepare(), made once per binding of shapes.
struct Prepared {
  std::vector<std::byte> bytes;  // plain data, read by run()
  int64_t scratch_bytes = 0;     // memory the step wants for the length of one run, 64-byte aligned
  bool is_idle = false;          // no output has an element, and the step does not run

  template <class T>
  static Prepared of(const T& plan, int64_t scratch_bytes = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* p = reinterpret_cast<const std::byte*>(&plan);
    return {std::vector<std::byte>(p, p + sizeof(T)), scratch_bytes};
  }
};

// One routine bound to its constants: immutable, shared by all calls. Arguments are the run-time inputs of the workload
// in its order (packed constants left out), then its outputs.
class Step {
 public:
  enum class Kind : uint8_t {
    Kernel,  // no allocation, no lock, no exception, any team; sizes known when its region binds
    Host,    // may allocate its outputs, may throw; the caller's thread runs it, alone or with its team
    Device,  // launches of kernels on a device, as data (exec/device_step.h)
    Copy,    // the bytes of its input into its output, which lies on another device
  };
  virtual ~Step() = default;
  virtual Kind kind() const = 0;
};

class KernelStep : public Step {
 public:
  Kind kind() const final { return Kind::Kernel; }
  // May throw (a size that the routine cannot take is a bug of its rejects()). The result does not depend on addresses.
  // Some output has elements; inputs may have none.
  virtual Prepared prepare(std::span<const Arg> args) const = 0;
  // Whether it can fetch constants of a later step beside its own work, which that one then need not wait for.
  virtual bool prefetches_later() const { return false; }
  // Tells what prepare() made which ones.
  virtual void prefetch_later(std::byte* /*prepared*/, std::span<const float> /*constants*/) const {}
  // `args` holds one address per Arg; null where not present.
  virtual void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const = 0;
};

class HostStep : public Step {
 public:
  Kind kind() const final { return Kind::Host; }
  // Outputs arrive empty, or as tensors over planned memory whose dims are known and must be met.
  virtual void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team& team) const = 0;
};

class DeviceCopyStep final : public Step {
 public:
  Kind kind() const final { return Kind::Copy; }
};

}  // namespace neo
