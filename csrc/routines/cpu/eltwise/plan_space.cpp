#include "routines/cpu/eltwise/plan_space.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace neo {
namespace {

struct Axis {
  int64_t size;
  int64_t stride[kEltwiseMaxOperands];
};

// The iteration space: the physical axes of the output, with each operand's stride along them.
std::vector<Axis> physical_axes(std::span<const Arg* const> operands) {
  const Arg& out = *operands.back();
  const int rank = static_cast<int>(out.dims.size());
  const bool blocked = out.layout.is_blocked();
  const int64_t block = blocked ? out.layout.blocks().front().size : 1;
  std::vector<Axis> axes;
  const auto stride_of = [&](const Arg& arg, int axis) -> int64_t {
    const int missing = rank - static_cast<int>(arg.dims.size());
    if (axis < missing || arg.dims[static_cast<size_t>(axis - missing)] == 1) return 0;
    const int64_t stride = arg.strides[static_cast<size_t>(axis - missing)];
    // A plain operand under a blocked channel axis would need block strides; signatures exclude it.
    return stride;
  };
  for (int axis = 0; axis < rank; ++axis) {
    Axis a{out.dims[static_cast<size_t>(axis)], {}};
    if (blocked && axis == 1) a.size = (a.size + block - 1) / block;
    for (size_t i = 0; i < operands.size(); ++i) a.stride[i] = stride_of(*operands[i], axis);
    axes.push_back(a);
  }
  if (blocked) {
    Axis lanes{block, {}};
    for (size_t i = 0; i < operands.size(); ++i)
      lanes.stride[i] = operands[i]->layout.is_blocked() ? operands[i]->strides.back() : 0;
    axes.push_back(lanes);
  }
  return axes;
}

}  // namespace

EltwiseSpace plan_space(std::span<const Arg* const> operands, int lanes) {
  const Arg& out = *operands.back();
  const size_t count = operands.size();
  std::vector<Axis> axes = physical_axes(operands);
  const bool blocked = out.layout.is_blocked();
  const int64_t channels = blocked ? out.dims[1] : 0;
  const bool pads = blocked && channels % out.layout.blocks().front().size != 0;

  EltwiseSpace space{};
  std::vector<Axis> merged;
  int block_axis = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool is_block_axis = pads && i == 1;
    if (axes[i].size == 1 && !is_block_axis) continue;
    // The axis of channel blocks stays apart where its last block is masked.
    bool fits = !merged.empty() && !is_block_axis && block_axis != static_cast<int>(merged.size()) - 1;
    for (size_t o = 0; fits && o < count; ++o) fits = merged.back().stride[o] == axes[i].stride[o] * axes[i].size;
    if (fits) {
      merged.back().size *= axes[i].size;
      std::copy_n(axes[i].stride, count, merged.back().stride);
    } else {
      merged.push_back(axes[i]);
      if (is_block_axis) block_axis = static_cast<int>(merged.size()) - 1;
    }
  }
  if (merged.empty() || block_axis == static_cast<int>(merged.size()) - 1) merged.push_back({1, {}});

  // Channel blocks repeated over the pixels: one axis of whole vectors, in which some operands repeat their lanes.
  bool repeats[kEltwiseMaxOperands] = {};
  if (lanes > 0 && merged.size() >= 2 && merged.back().size == lanes &&
      static_cast<int>(merged.size()) - 2 != block_axis) {
    const Axis& inner = merged.back();
    const Axis& outer = merged[merged.size() - 2];
    bool fits = true;
    for (size_t o = 0; o < count; ++o) {
      repeats[o] = inner.stride[o] == 1 && outer.stride[o] == 0;
      fits = fits && (repeats[o] || outer.stride[o] == inner.stride[o] * inner.size);
    }
    if (fits) {
      Axis both = inner;
      both.size *= outer.size;
      merged.pop_back();
      merged.back() = both;
    } else {
      std::fill_n(repeats, count, false);
    }
  }

  Axis inner = merged.back();
  merged.pop_back();
  // Short rows that follow each other in the output become one; what an operand repeats is read run by run.
  bool nested[kEltwiseMaxOperands] = {};
  const bool is_nest = inner.stride[count - 1] == 1 && std::none_of(repeats, repeats + count, [](bool r) { return r; });
  space.run = inner.size;
  while (is_nest && inner.size < kShortRow && space.nest < kEltwiseMaxNest && !merged.empty() &&
         block_axis != static_cast<int>(merged.size()) - 1 && merged.back().stride[count - 1] == inner.size) {
    const Axis& outer = merged.back();
    space.nest_size[space.nest] = outer.size;
    for (size_t o = 0; o < count; ++o) {
      nested[o] = nested[o] || outer.stride[o] != inner.stride[o] * inner.size;
      space.nest_stride[o][space.nest] = outer.stride[o];
    }
    ++space.nest;
    inner.size *= outer.size;
    merged.pop_back();
  }
  NEO_ASSERT(merged.size() <= kEltwiseMaxAxes);
  space.axes = static_cast<int32_t>(merged.size());
  space.inner = inner.size;
  for (size_t i = 0; i < merged.size(); ++i) {
    space.size[i] = merged[i].size;
    space.rows *= merged[i].size;
    for (size_t o = 0; o < count; ++o) space.stride[o][i] = merged[i].stride[o];
  }
  for (size_t o = 0; o < count; ++o) {
    space.inner_stride[o] = inner.stride[o];
    const bool one = inner.size == 1;
    space.mode[o] = repeats[o]                    ? EltwiseMode::Lanes
                    : nested[o]                   ? EltwiseMode::Nested
                    : one || inner.stride[o] == 1 ? EltwiseMode::Dense
                    : inner.stride[o] == 0        ? EltwiseMode::Scalar
                                                  : EltwiseMode::Strided;
  }
  space.tiles = (space.inner + kEltwiseTile - 1) / kEltwiseTile;
  space.block_axis = block_axis;
  space.valid_lanes = pads ? static_cast<int32_t>(channels % lanes) : 0;
  return space;
}

double nested_cycles(const EltwiseSpace& space, size_t operands, bool takes_runs) {
  // A run begins anew; elements that are apart are moved one by one.
  constexpr double kRunCycles = 8, kElementCycles = 0.1, kApartCycles = 1.5;
  const auto elements = static_cast<double>(space.rows * space.inner);
  double cycles = 0;
  for (size_t i = 0; i < operands; ++i) {
    if (space.mode[i] != EltwiseMode::Nested) continue;
    const bool apart = space.inner_stride[i] > 1, in_place = takes_runs && space.inner_stride[i] == 0;
    const double of_element = in_place ? 0 : (apart ? kApartCycles : kElementCycles);
    cycles += elements * (kRunCycles / static_cast<double>(space.run) + of_element);
  }
  return cycles;
}

}  // namespace neo
