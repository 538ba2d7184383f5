#include "routines/gpu/movement/conversion.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/routine.h"

namespace neo {
namespace {

// Elements that one thread converts faster than two.
constexpr double kSerialConverted = 16384;

bool is_copy(const Schema& from, const Schema& to) {
  return from.device != to.device && from.dtype == to.dtype && from.scheme == to.scheme && from.layout == to.layout &&
         from.dtype != DType::String && from.dtype != DType::Undefined &&
         (from.device == DeviceKind::Cpu || to.device == DeviceKind::Cpu);
}

// Microseconds of a conversion in one step.
double step_time_us(const Type& type, const Schema& from, const Schema& to, const Target& target) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (from.device == DeviceKind::Cpu && to.device == DeviceKind::Cpu) {
    if (!is_host_convertible(from, to)) return infinite;
    return step_us(adapt_load(type, from, to), target);
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

StepLoad adapt_load(const Type& type, const Schema& from, const Schema& to) {
  StepLoad load{StepFamily::Convert};
  load.reads = schema_bytes(type, from);
  load.writes = schema_bytes(type, to);
  const double elements = std::max(load.reads, load.writes) / static_cast<double>(item_bytes(type.dtype));
  const Layout& layout = (to.layout.is_blocked() ? to : from).layout;
  load.tasks = elements > kSerialConverted ? 0 : 1;
  if (!layout.is_blocked()) return load;
  const Layout::Block block = layout.blocks().front();
  const Dims dims = type.shape.hint_dims();
  double planes = 1;
  for (int i = 0; i <= block.axis; ++i)
    planes *= static_cast<double>(i == block.axis ? ceil_div(dims[static_cast<size_t>(i)], block.size)
                                                  : dims[static_cast<size_t>(i)]);
  load.runs = planes;
  load.cycles = elements / static_cast<double>(block.size);
  // Bytes of a block that channels do not fill are moved one by one, but for the widest vectors.
  constexpr int64_t kWidestBlock = 16;
  const int64_t odd = dims[static_cast<size_t>(block.axis)] % block.size;
  if (item_bytes(type.dtype) == 1 && odd > 0 && block.size < kWidestBlock)
    load.cycles += elements / planes * static_cast<double>(odd) / static_cast<double>(block.size);
  return load;
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
