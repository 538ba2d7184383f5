#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/knobs.h"
#include "exec/device_registry.h"

namespace neo {

// The devices of one kind, in the driver's order. Without a driver or a device: a Resource error that says which of the
// two is missing.
std::vector<std::shared_ptr<Device>> open_devices(DeviceKind kind);

// A kind that neo does not come with; known from then on.
void add_devices(DeviceKind kind, OpenDevices open);
// Opens a library of devices for good and lets it register them; a Resource error where it is none.
void load_devices(const std::string& path, DeviceRegistry& registry);

// One of them: the first, that of the number `wanted`, or the first whose name or platform contains it, upper and lower
// case alike.
std::shared_ptr<Device> open_device(DeviceKind kind, const std::string& wanted = knob_text(Knob::Device));

// The devices of one kind, for people: a kind without devices has `missing` instead.
struct FoundDevices {
  DeviceKind kind = DeviceKind::Null;
  std::vector<DeviceInfo> devices;
  std::string missing;  // why there are none
};
std::vector<FoundDevices> find_devices();

}  // namespace neo
