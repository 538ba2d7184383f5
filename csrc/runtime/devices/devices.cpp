#include "runtime/devices/devices.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <mutex>

#include "base/check.h"
#include "runtime/devices/cuda/cuda_device.h"
#include "runtime/devices/driver_library.h"
#include "runtime/devices/null/null_device.h"
#include "runtime/devices/opencl/opencl_device.h"

namespace neo {
namespace {

struct Kind {
  DeviceKind kind;
  OpenDevices open;
};

// One line for each kind that neo comes with; others are added behind them.
struct Kinds {
  std::mutex mutex;
  std::vector<Kind> all{
      {DeviceKind::OpenCl, &open_opencl_devices},
      {DeviceKind::Cuda, &open_cuda_devices},
      {DeviceKind::Null, &open_null_devices},
  };
};

Kinds& kinds() {
  static auto* const known = new Kinds;
  return *known;
}

std::vector<Kind> known_kinds() {
  const std::lock_guard lock(kinds().mutex);
  return kinds().all;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::vector<std::string> DeviceInfo::lacks() const {
  std::vector<std::string> words;
  if (!has_float16) words.emplace_back("float16");
  if (!has_float64) words.emplace_back("float64");
  if (!has_subgroups) words.emplace_back("subgroups");
  if (!has_block_reads && kind == DeviceKind::OpenCl) words.emplace_back("block reads");
  if (image_texels == 0 && kind == DeviceKind::OpenCl) words.emplace_back("images");
  if (!has_matrices && kind == DeviceKind::Cuda) words.emplace_back("matrix instructions");
  if (!has_dots && !has_arm_dots) words.emplace_back("products of bytes");
  if (!is_host_unified) words.emplace_back("the host's memory");
  return words;
}

std::vector<std::shared_ptr<Device>> open_devices(DeviceKind kind) {
  for (const Kind& k : known_kinds()) {
    if (k.kind == kind) return k.open();
  }
  fail(ErrorKind::Unsupported, "device", str("devices of a kind must be known. Got ", name(kind)));
}

void add_devices(DeviceKind kind, OpenDevices open) {
  const std::lock_guard lock(kinds().mutex);
  kinds().all.push_back({kind, open});
}

void load_devices(const std::string& path, DeviceRegistry& registry) {
  const DriverLibrary library("devices", {path}, "build it from a function neo_register_devices (docs/devices.md)");
  void (*add)(DeviceRegistry&) = nullptr;
  library.get("neo_register_devices", add);
  add(registry);
}

std::shared_ptr<Device> open_device(DeviceKind kind, const std::string& wanted) {
  const auto devices = open_devices(kind);
  size_t number = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto parsed = std::from_chars(wanted.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number < devices.size()) return devices[number];
  std::string names;
  for (const auto& device : devices) {
    const DeviceInfo& info = device->info();
    const std::string text = info.name + " (" + info.platform + ")";
    if (lower(text).find(lower(wanted)) != std::string::npos) return device;
    names += (names.empty() ? "" : ", ") + text;
  }
  fail(ErrorKind::Resource, name(kind),
       str("a device of that number or name must be there. Got '", wanted, "', expected one of ", names));
}

std::vector<FoundDevices> find_devices() {
  std::vector<FoundDevices> all;
  for (const Kind& k : known_kinds()) {
    FoundDevices found;
    found.kind = k.kind;
    try {
      for (const auto& device : k.open()) found.devices.push_back(device->info());
    } catch (const Error& e) {
      found.missing = e.what();
    }
    all.push_back(std::move(found));
  }
  return all;
}

}  // namespace neo
