#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/move/transpose.h"
#include "routines/cpu/tier.h"
#include "routines/routine.h"

NEO_DECLARE_TIERS(void transpose_plane(const TransposePlane&); void transpose_words(const WordPlane&);
                  void transpose_bytes(const BytePlane&))

namespace neo {
namespace {

struct MovedAxis {
  int64_t size = 1;
  int64_t from = 0;  // strides in elements
  int64_t to = 0;
};

constexpr int kMaxMovedAxes = 12;

// A copy between two layouts as one loop nest over the physical axes of the destination. An element of the source is
// read only where every blocked axis is inside its extent; padding lanes of the destination become zero.
struct Transform {
  int axes = 0;
  MovedAxis axis[kMaxMovedAxes];
  int64_t item_bytes = 4;
  int64_t bytes = 0;  // > 0: both sides lie the same way, one memcpy
  // The destination's innermost axis may be a block: lanes at and beyond `extent` of the block index hold zero.
  int blocked_axis = -1;  // index into axis[] of the outer part
  int lane_axis = -1;     // index into axis[] of the block
  int64_t extent = 0;     // logical size of the blocked axis
  bool pads = false;      // the destination has the block
  // planes > 0: elements of 4, 2 or 1 bytes between the plain layout and blocks of one axis, both sides dense. A
  // plane is `span` positions behind one block of the axis.
  int64_t planes = 0;
  int64_t blocks = 0;
  int64_t block = 0;
  int64_t span = 0;
};

template <class T>
void copy_row(const std::byte* from, std::byte* to, int64_t count, int64_t from_stride, int64_t to_stride) {
  const auto* s = reinterpret_cast<const T*>(from);
  auto* d = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) d[i * to_stride] = s[i * from_stride];
}

void copy_row(int64_t width, const std::byte* from, std::byte* to, int64_t count, int64_t from_stride,
              int64_t to_stride) {
  switch (width) {
    case 1:
      copy_row<uint8_t>(from, to, count, from_stride, to_stride);
      break;
    case 2:
      copy_row<uint16_t>(from, to, count, from_stride, to_stride);
      break;
    case 4:
      copy_row<uint32_t>(from, to, count, from_stride, to_stride);
      break;
    default:
      copy_row<uint64_t>(from, to, count, from_stride, to_stride);
      break;
  }
}

void run_axes(const Transform& t, int level, const std::byte* from, std::byte* to, int64_t block) {
  const MovedAxis& axis = t.axis[level];
  int64_t size = axis.size;
  if (level == t.lane_axis) {
    const int64_t valid = std::min(size, t.extent - block * size);
    for (int64_t i = std::max<int64_t>(valid, 0); t.pads && i < size; ++i) {
      std::memset(to + i * axis.to * t.item_bytes, 0, static_cast<size_t>(t.item_bytes));
    }
    size = std::max<int64_t>(valid, 0);
  }
  if (level + 1 == t.axes) {
    copy_row(t.item_bytes, from, to, size, axis.from, axis.to);
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    run_axes(t, level + 1, from + i * axis.from * t.item_bytes, to + i * axis.to * t.item_bytes,
             level == t.blocked_axis ? i : block);
  }
}

// Position of the outer part of a logical axis among the physical axes.
int outer_position(const Layout& layout, int axis) {
  for (int i = 0; i < layout.rank(); ++i) {
    if (layout.order()[static_cast<size_t>(i)] == axis) return i;
  }
  return -1;
}

// Plans a transform between a plain layout and one that differs from it in one block alone.
bool plan_planes(const Arg& from, const Arg& to, Transform& t) {
  if (t.item_bytes > 4 || !from.is_dense() || !to.is_dense() || from.layout.is_blocked() == to.layout.is_blocked())
    return false;
  const Layout& blocked = to.layout.is_blocked() ? to.layout : from.layout;
  const auto& order = blocked.order();
  if (!std::is_sorted(order.begin(), order.end()) || (to.layout.is_blocked() ? from : to).layout.order() != order)
    return false;
  const Layout::Block block = blocked.blocks().front();
  int64_t outer = 1;
  t.span = 1;
  for (int i = 0; i < to.layout.rank(); ++i) {
    if (i != block.axis) (i < block.axis ? outer : t.span) *= to.dims[static_cast<size_t>(i)];
  }
  t.block = block.size;
  t.extent = to.dims[static_cast<size_t>(block.axis)];
  t.blocks = (t.extent + t.block - 1) / t.block;
  t.planes = outer * t.blocks;
  t.pads = to.layout.is_blocked();
  return t.planes > 0;
}

// Planes of one position: channels are neighbours on both sides, those of an outer index make a row.
void copy_channels(const Transform& t, int64_t first, int64_t last, const std::byte* from, std::byte* to) {
  const int64_t plain = t.extent * t.item_bytes, blocked = t.blocks * t.block * t.item_bytes;
  const int64_t source = t.pads ? plain : blocked, row = t.pads ? blocked : plain;
  for (int64_t i = first; i < last; ++i) {
    std::memcpy(to + i * row, from + i * source, static_cast<size_t>(plain));
    std::memset(to + i * row + plain, 0, static_cast<size_t>(row - plain));
  }
}

// Plane `index` of a transform that has planes.
template <class T>
ElementPlane<T> plane_of(const Transform& t, int64_t index, const std::byte* from, std::byte* to) {
  const int64_t block = index % t.blocks;
  const int64_t lanes = std::min(t.block, t.extent - block * t.block);
  const int64_t plain = (index / t.blocks * t.extent + block * t.block) * t.span;
  const int64_t blocked = index * t.block * t.span;
  ElementPlane<T> p;
  p.src = reinterpret_cast<const T*>(from) + (t.pads ? plain : blocked);
  p.dst = reinterpret_cast<T*>(to) + (t.pads ? blocked : plain);
  p.src_row = t.pads ? t.span : t.block;
  p.dst_row = t.pads ? t.block : t.span;
  p.rows = t.pads ? lanes : t.span;
  p.columns = t.pads ? t.span : lanes;
  p.padded_rows = t.pads ? t.block : t.span;
  return p;
}

Transform plan_transform(const Arg& from, const Arg& to) {
  Transform t;
  t.item_bytes = item_bytes(to.dtype);
  if (from.layout == to.layout && from.is_dense() && to.is_dense()) {
    t.bytes = element_count(to.layout.physical_dims(to.dims)) * t.item_bytes;
    t.axes = 1;
    return t;
  }
  if (plan_planes(from, to, t)) return t;
  const Layout& blocked = to.layout.is_blocked() ? to.layout : from.layout;
  const int64_t block = blocked.is_blocked() ? blocked.blocks().front().size : 1;
  const int blocked_axis = blocked.is_blocked() ? blocked.blocks().front().axis : -1;
  // One loop per logical axis in the destination's order, the blocked one in two; the lane loop is innermost.
  for (int axis : to.layout.order()) {
    const int64_t size = to.dims[static_cast<size_t>(axis)];
    const int64_t from_stride = from.strides[static_cast<size_t>(outer_position(from.layout, axis))];
    const int64_t to_stride = to.strides[static_cast<size_t>(outer_position(to.layout, axis))];
    if (axis == blocked_axis) {
      t.blocked_axis = t.axes;
      t.extent = size;
      t.axis[t.axes++] = {(size + block - 1) / block, from.layout.is_blocked() ? from_stride : from_stride * block,
                          to.layout.is_blocked() ? to_stride : to_stride * block};
    } else {
      t.axis[t.axes++] = {size, from_stride, to_stride};
    }
  }
  if (blocked_axis >= 0) {
    const int64_t from_lane = from.layout.is_blocked()
                                  ? from.strides.back()
                                  : from.strides[static_cast<size_t>(outer_position(from.layout, blocked_axis))];
    const int64_t to_lane = to.layout.is_blocked()
                                ? to.strides.back()
                                : to.strides[static_cast<size_t>(outer_position(to.layout, blocked_axis))];
    t.lane_axis = t.axes;
    t.pads = to.layout.is_blocked();
    t.axis[t.axes++] = {block, from_lane, to_lane};
  }
  if (t.axes == 0) t.axis[t.axes++] = {1, 0, 0};
  return t;
}

struct TransposeTiles {
  void (*floats)(const TransposePlane&);
  void (*words)(const WordPlane&);
  void (*bytes)(const BytePlane&);

  static TransposeTiles of(Isa isa) {
    return {NEO_PICK_TIER(isa, transpose_plane), NEO_PICK_TIER(isa, transpose_words),
            NEO_PICK_TIER(isa, transpose_bytes)};
  }
};

class AdaptStep final : public KernelStep {
 public:
  explicit AdaptStep(TransposeTiles transpose) : transpose_(transpose) {}
  Prepared prepare(std::span<const Arg> args) const override { return Prepared::of(plan_transform(args[0], args[1])); }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& t = *reinterpret_cast<const Transform*>(prepared);
    if (t.planes > 0) {
      constexpr int64_t kSerialElements = 16384;
      const bool serial = t.planes * t.block * t.span <= kSerialElements;
      if (t.span == 1) {
        const auto rows = [&](int64_t begin, int64_t end, int) { copy_channels(t, begin, end, args[0], args[1]); };
        if (serial)
          rows(0, t.planes / t.blocks, 0);
        else
          team.parallel_for(t.planes / t.blocks, rows);
        return;
      }
      const auto planes = [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          if (t.item_bytes == 4) {
            transpose_.floats(plane_of<float>(t, i, args[0], args[1]));
          } else if (t.item_bytes == 2) {
            transpose_.words(plane_of<uint16_t>(t, i, args[0], args[1]));
          } else {
            transpose_.bytes(plane_of<uint8_t>(t, i, args[0], args[1]));
          }
        }
      };
      if (serial)
        planes(0, t.planes, 0);
      else
        team.parallel_for(t.planes, planes);
      return;
    }
    if (t.bytes > 0) {
      constexpr int64_t kChunk = 1 << 16;
      team.parallel_for((t.bytes + kChunk - 1) / kChunk, [&](int64_t begin, int64_t end, int) {
        const int64_t first = begin * kChunk;
        std::memcpy(args[1] + first, args[0] + first, static_cast<size_t>(std::min(t.bytes, end * kChunk) - first));
      });
      return;
    }
    if (t.axes < 3) {
      run_axes(t, 0, args[0], args[1], 0);
      return;
    }
    // The two outermost loops are the tasks.
    const MovedAxis& a = t.axis[0];
    const MovedAxis& b = t.axis[1];
    team.parallel_for(a.size * b.size, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t x = i / b.size;
        const int64_t y = i % b.size;
        run_axes(t, 2, args[0] + (x * a.from + y * b.from) * t.item_bytes,
                 args[1] + (x * a.to + y * b.to) * t.item_bytes,
                 t.blocked_axis == 0   ? x
                 : t.blocked_axis == 1 ? y
                                       : 0);
      }
    });
  }

 private:
  TransposeTiles transpose_;
};

}  // namespace

bool is_host_convertible(const Schema& from, const Schema& to) {
  if (from.device != DeviceKind::Cpu || to.device != DeviceKind::Cpu) return false;
  if (from.dtype != to.dtype || from.scheme != to.scheme || from.layout.rank() != to.layout.rank()) return false;
  if (from.dtype == DType::String || from.layout.rank() + 1 > kMaxMovedAxes) return false;
  if (from.layout.is_blocked() && to.layout.is_blocked()) return from.layout == to.layout;
  return from.layout.blocks().size() <= 1 && to.layout.blocks().size() <= 1;
}

std::unique_ptr<Step> make_host_adapt(const Type& type, const Schema& from, const Schema& to, const Target& target) {
  NEO_ASSERT(is_host_convertible(from, to), "no conversion of ", type.to_string(), " from ", from.to_string(), " to ",
             to.to_string());
  return std::make_unique<AdaptStep>(TransposeTiles::of(target.isa));
}

Tensor adapt_constant(const Tensor& tensor, const Schema& from, const Schema& to) {
  const Dims& dims = tensor.dims();
  Tensor out(tensor.dtype(), to.layout.physical_dims(dims));
  const Arg source{tensor.dtype(), from.layout, dims, dense_strides(from.layout.physical_dims(dims)), true};
  const Arg target{tensor.dtype(), to.layout, dims, dense_strides(to.layout.physical_dims(dims)), true};
  const AdaptStep step(TransposeTiles::of(host_isa()));
  const Prepared prepared = step.prepare(std::vector<Arg>{source, target});
  std::byte* const args[] = {static_cast<std::byte*>(tensor.data()), static_cast<std::byte*>(out.data())};
  SerialTeam team;
  step.run(prepared.bytes.data(), args, nullptr, team);
  return out;
}

}  // namespace neo
