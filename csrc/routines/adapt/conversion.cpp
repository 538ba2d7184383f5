#include "routines/gpu/movement/conversion.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/routine.h"

namespace neo {
namespace {

bool is_copy(const Schema& from, const Schema& to) {
  return from.device != to.device && from.dtype == to.dtype && from.scheme == to.scheme && from.layout == to.layout &&
         from.dtype != DType::String && from.dtype != DType::Undefined &&
         (from.device == DeviceKind::Cpu || to.device == DeviceKind::Cpu);
}

// Of a conversion in one step.
double step_time_us(const Type& type, const Schema& from, const Schema& to, const Target& target) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (from.device == DeviceKind::Cpu && to.device == DeviceKind::Cpu) {
    if (!is_host_convertible(from, to)) return infinite;
    Work work;
    work.bytes = type.shape.element_count() * Dim(2 * item_bytes(type.dtype));
    // Blocks of few channels are mostly padding, which is moved too.
    for (const Schema* s : {&from, &to}) {
      if (!s->layout.is_blocked()) continue;
      const Layout::Block block = s->layout.blocks().front();
      const Dim& channels = type.shape[block.axis];
      if (!channels.is_constant() || channels.value() < 1 || channels.value() >= block.size) continue;
      work.bytes =
          work.bytes + type.shape.element_count() * Dim(item_bytes(type.dtype) * (block.size / channels.value()));
    }
    const double move_us = roofline_us(work, target, 1);
    if (item_bytes(type.dtype) > 1 || from.layout == to.layout) return move_us;
    // Bytes are transposed in vectors of their own, padding and all: what a cycle moves is not bound by memory.
    constexpr double kByteCycles = 0.6;
    double bytes = 1;
    for (const Dim& d : (to.layout.is_blocked() ? to : from).layout.physical_dims(type.shape))
      bytes *= static_cast<double>(d.hint());
    return std::max(move_us, cycles_us(bytes * kByteCycles, target) / target.threads);
  }
  const auto bytes = static_cast<double>((type.shape.element_count() * Dim(item_bytes(type.dtype))).hint());
  const DeviceFigures& f = target.figures;
  if (from.device != to.device) return is_copy(from, to) ? f.copy_us + bytes / (f.copy_gbps * 1e3) : infinite;
  return gpu::is_convertible(from, to) ? f.launch_us + 2 * bytes / (f.gbps * 1e3) : infinite;
}

}  // namespace

std::optional<Schema> intermediate_schema(const Schema& from, const Schema& to) {
  if (from.device == to.device || from.layout == to.layout) return std::nullopt;
  // On the device, which moves numbers faster.
  return from.device == DeviceKind::Cpu ? from.on(to.device) : to.on(from.device);
}

std::string adapt_name(const Schema& from, const Schema& to) {
  return str(from.device == to.device ? name(from.device) : "copy", ":adapt/", from.to_string(), "->", to.to_string());
}

double adapt_time_us(const Type& type, const Schema& from, const Schema& to, const Target& target) {
  if (from == to) return 0;
  if (!type.is_tensor() || !type.shape.has_rank()) return std::numeric_limits<double>::infinity();
  const std::optional<Schema> between = intermediate_schema(from, to);
  if (!between) return step_time_us(type, from, to, target);
  return step_time_us(type, from, *between, target) + step_time_us(type, *between, to, target);
}

std::unique_ptr<Step> make_adapt(const Type& type, const Schema& from, const Schema& to, const Target& target) {
  if (kHasDevices && is_copy(from, to)) return std::make_unique<DeviceCopyStep>();
  if (!kHasDevices || from.device == DeviceKind::Cpu || from.device != to.device)
    return make_host_adapt(type, from, to, target);
  return gpu::make_conversion(type, from, to);
}

}  // namespace neo
