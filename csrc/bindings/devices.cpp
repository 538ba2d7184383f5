#include "runtime/devices/devices.h"

#include "bindings/bindings.h"

namespace neo::python {

void bind_devices(py::module_& m) {
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
