#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/dtype.h"
#include "ir/layout.h"

namespace neo {

// The kind of device that holds a value: one of these, or a kind from add_device_kind().
enum class DeviceKind : uint8_t { Cpu, OpenCl, Cuda, Null };
std::string_view name(DeviceKind device);
std::optional<DeviceKind> find_device_kind(std::string_view name);
// A kind of another name; at most kMaxDeviceKinds in all. Thread-safe, like the two above.
DeviceKind add_device_kind(std::string_view name);
inline constexpr size_t kMaxDeviceKinds = 31;

// How the numbers are represented: as they are, or quantized by a scheme whose scale and zero point travel with the
// value.
enum class Scheme : uint8_t { None, TensorAsymmetric, TensorSymmetric, ChannelSymmetric, Dynamic };
std::string_view name(Scheme scheme);

// How a value is held. Text: "cpu:float32:NCHW16c", "cpu:qint8.tensor.asym:NCHW64c"; parses back.
struct Schema {
  DeviceKind device = DeviceKind::Cpu;
  DType dtype = DType::Undefined;
  Scheme scheme = Scheme::None;
  Layout layout;

  static Schema plain(DType dtype, int rank) { return {DeviceKind::Cpu, dtype, Scheme::None, Layout::plain(rank)}; }
  // The same numbers in the memory of another device.
  Schema on(DeviceKind other) const { return {other, dtype, scheme, layout}; }
  std::string to_string() const;
  static Schema parse(std::string_view text);
  friend bool operator==(const Schema&, const Schema&) = default;
};

}  // namespace neo
