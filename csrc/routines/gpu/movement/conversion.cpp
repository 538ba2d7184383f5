#include "routines/gpu/movement/conversion.h"

#include <algorithm>

#include "routines/gpu/movement/copy.h"
#include "routines/gpu/step.h"

namespace neo::gpu {

bool is_convertible(const Schema& from, const Schema& to) {
  if (from.dtype != to.dtype || from.scheme != to.scheme || from.layout.rank() != to.layout.rank()) return false;
  if (from.dtype == DType::String || from.layout.blocks().size() > 1 || to.layout.blocks().size() > 1) return false;
  if (!from.layout.is_blocked() || !to.layout.is_blocked()) return true;
  const Layout::Block &a = from.layout.blocks().front(), &b = to.layout.blocks().front();
  return a.axis == b.axis && std::max(a.size, b.size) % std::min(a.size, b.size) == 0;
}

std::unique_ptr<DeviceStep> make_conversion(const Type& type, const Schema& from, const Schema& to) {
  const CopyProblem problem =
      layout_copy(type.dtype, from.layout, to.layout, type.shape.hint_dims(), !type.shape.is_static());
  return make_step(make_copy(problem, {}), {});
}

}  // namespace neo::gpu
