#include "ir/schema.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <iterator>
#include <mutex>

#include "base/check.h"

namespace neo {
namespace {

// In the order of DeviceKind. A name is there before it counts, and stays.
constinit std::string_view device_names[kMaxDeviceKinds] = {"cpu", "opencl", "cuda", "null"};
constinit std::atomic<size_t> device_count = 4;
constinit std::mutex device_mutex;  // of those who add

constexpr std::string_view kSchemes[] = {"none", "tensor.asym", "tensor.sym", "channel.sym", "dynamic"};

template <class Enum, size_t N>
std::optional<Enum> find(const std::string_view (&names)[N], std::string_view wanted) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == wanted) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(DeviceKind device) {
  return device_names[static_cast<size_t>(device)];
}

std::optional<DeviceKind> find_device_kind(std::string_view name) {
  for (size_t i = device_count.load(std::memory_order_acquire); i-- > 0;) {
    if (device_names[i] == name) return static_cast<DeviceKind>(i);
  }
  return std::nullopt;
}

DeviceKind add_device_kind(std::string_view name) {
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(),
                                                    [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  NEO_CHECK(is_word, Model, "device", "the name of a kind of device must be letters, digits and \"_\". Got \"", name,
            "\"");
  const std::lock_guard lock(device_mutex);
  NEO_CHECK(!find_device_kind(name), Model, "device", "a kind of device must be new. Got \"", name,
            "\", which there is already");
  const size_t count = device_count.load(std::memory_order_relaxed);
  NEO_CHECK(count < kMaxDeviceKinds, Unsupported, "device", "there are at most ", kMaxDeviceKinds,
            " kinds of devices. Got one more");
  device_names[count] = *new std::string(name);
  device_count.store(count + 1, std::memory_order_release);
  return static_cast<DeviceKind>(count);
}

std::string_view name(Scheme scheme) {
  return kSchemes[static_cast<size_t>(scheme)];
}

std::string Schema::to_string() const {
  const std::string element =
      scheme == Scheme::None ? std::string(name(dtype)) : str("q", name(dtype), ".", name(scheme));
  return str(name(device), ":", element, ":", layout.to_string());
}

Schema Schema::parse(std::string_view text) {
  const auto refuse = [&](std::string_view part) {
    fail(ErrorKind::Model, "schema",
         str("a schema is written like cpu:float32:NCHW16c or cpu:qint8.tensor.asym:NCHW. Got ", part, " of \"", text,
             "\""));
  };
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) refuse("too few parts");
  Schema schema;
  const auto device = find_device_kind(text.substr(0, first));
  if (!device) refuse("an unknown device");
  schema.device = *device;
  std::string_view element = text.substr(first + 1, second - first - 1);
  std::optional<DType> dtype = element == name(DType::Undefined) ? DType::Undefined : find_dtype(element);
  const size_t dot = element.find('.');
  if (!dtype && element.starts_with('q') && dot != std::string_view::npos) {
    const auto scheme = find<Scheme>(kSchemes, element.substr(dot + 1));
    if (!scheme || scheme == Scheme::None) refuse("an unknown scheme");
    schema.scheme = *scheme;
    dtype = find_dtype(element.substr(1, dot - 1));
  }
  if (!dtype) refuse("an unknown dtype");
  schema.dtype = *dtype;
  schema.layout = Layout::parse(text.substr(second + 1));
  return schema;
}

}  // namespace neo
