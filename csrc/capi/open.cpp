#include "ops/op.h"
#include "runtime/devices/devices.h"
#include "runtime/plan_device.h"
#include "saved/saved.h"

namespace neo {

SavedModule open_module(const FileBytes& file, const std::string& place, const Quota& quota) {
  if constexpr (kHasDevices) open_devices_with([](DeviceKind kind) { return open_device(kind); });
  return load_module(file, place, standard_ops(), standard_routines(), quota);
}

}  // namespace neo
