#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/device.h"

namespace neo {

std::vector<std::shared_ptr<Device>> open_null_devices();

// Accepts everything, computes nothing, remembers what it was asked for: for planning and printing without a device.
class NullDevice : public Device {
 public:
  virtual std::vector<std::string> sources() const = 0;  // compiled so far
  virtual std::vector<std::string> record() const = 0;   // "launch gemm 4 1 1 x 16 1 1", "write 64", ...
};

}  // namespace neo
