#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/device.h"

namespace neo {

// The devices of one kind, in the driver's order. Without a driver or a device: a Resource error that says which of the
// two is missing.
std::vector<std::shared_ptr<Device>> open_devices(DeviceKind kind);

// One of them: the first, or the first whose name or platform contains `wanted`, upper and lower case alike.
std::shared_ptr<Device> open_device(DeviceKind kind, const std::string& wanted = "");

// What there is of every kind, for people: a kind without devices has `missing` instead.
struct FoundDevices {
  DeviceKind kind = DeviceKind::Null;
  std::vector<DeviceInfo> devices;
  std::string missing;  // why there are none
};
std::vector<FoundDevices> find_devices();

}  // namespace neo
