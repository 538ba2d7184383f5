#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/isa.h"
#include "ir/schema.h"
#include "ir/tensor.h"

namespace neo {

// A machine: a device kind, what it can execute, and the figures that estimates use.
struct Target {
  std::string name = "cpu";
  DeviceKind device = DeviceKind::Cpu;
  Isa isa;                       // what kernels may use
  int threads = 1;               // team size that costs are taken at
  double gflops_per_thread = 0;  // fp32 FMA peak
  double l2_gbps = 0;            // per thread
  double memory_gbps = 0;        // all threads together
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t kept_bytes = 8 << 20;  // a model with no more constants finds them in the caches
  bool cold_constants = false;   // the model at hand finds them in memory

  int lanes() const;  // float32 lanes of one vector

  // "cpu", "cpu:avx2", ...; an unknown name is a Model error that lists what there is.
  static Target parse(std::string_view name, int threads);
};

}  // namespace neo
