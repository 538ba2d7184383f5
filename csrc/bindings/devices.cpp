#include "runtime/devices/devices.h"

#include <algorithm>

#include "base/check.h"
#include "bindings/bindings.h"
#include "routines/cost/target.h"
#include "runtime/plan_device.h"

namespace neo::python {

namespace {

// A library's kinds become kinds, targets and devices.
class Registry final : public DeviceRegistry {
 public:
  DeviceKind add(const std::string& name, const std::string& summary, OpenDevices open,
                 const DeviceFigures& figures) override {
    const auto& targets = device_targets();
    NEO_CHECK(std::none_of(targets.begin(), targets.end(), [&](const DeviceTarget& t) { return t.name == name; }),
              Model, "devices", "the target of a kind of device must be new. Got \"", name,
              "\", which there is already");
    const DeviceKind kind = add_device_kind(name);
    add_devices(kind, open);
    add_device_target({name, summary, kind, figures});
    return kind;
  }
};

}  // namespace

Target machine_of(const std::string& name, int threads) {
  Target target = Target::parse(name, threads);
  if (!target.has_device()) return target;
  try {
    int64_t& texels = target.figures.image_texels;
    const int64_t found = open_device(target.device)->info().image_texels;
    texels = texels > 0 ? std::min(texels, found) : found;
  } catch (const Error&) {
    // Compiled without the device at hand.
  }
  return target;
}

void bind_devices(py::module_& m) {
  open_devices_with([](DeviceKind kind) { return open_device(kind); });
  m.def(
      "load_devices",
      [](const std::string& path) {
        Registry registry;
        load_devices(path, registry);
      },
      py::arg("path"), "Opens a library of devices and registers its kinds.");
  m.def(
      "devices",
      [] {
        std::vector<FoundDevices> all;
        {
          const py::gil_scoped_release release;
          all = find_devices();
        }
        py::list kinds;
        for (const FoundDevices& found : all) {
          py::list devices;
          for (const DeviceInfo& info : found.devices) {
            py::dict entry;
            entry["name"] = info.name;
            entry["platform"] = info.platform;
            entry["driver"] = info.driver;
            entry["compute_units"] = info.compute_units;
            entry["memory_bytes"] = info.memory_bytes;
            entry["local_bytes"] = info.local_bytes;
            entry["lacks"] = info.lacks();
            devices.append(entry);
          }
          py::dict kind;
          kind["kind"] = std::string(name(found.kind));
          kind["devices"] = devices;
          kind["missing"] = found.missing;
          kinds.append(kind);
        }
        return kinds;
      },
      "Of every kind of device, what there is, or what is missing.");
}

}  // namespace neo::python
