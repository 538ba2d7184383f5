#include "ops/pad.h"

#include <algorithm>
#include <numeric>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

enum class PadMode : uint8_t { Constant, Reflect, Edge, Wrap };

PadMode pad_mode(const Node& node) {
  const std::string mode = node.string_attr("mode", "constant");
  if (mode == "constant") return PadMode::Constant;
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Edge;
  NEO_CHECK(mode == "wrap", Model, node.op, "mode must be constant, reflect, edge or wrap. Got \"", mode, "\" - at ",
            node.place());
  return PadMode::Wrap;
}

void infer_pad(InferContext& ctx) {
  pad_mode(ctx.node());
  if (ctx.has_input(2)) {
    ctx.check(ctx.dtype(2) == ctx.dtype(0), str("constant_value must have the input's element type. Got ",
                                                name(ctx.dtype(2)), ", expected ", name(ctx.dtype(0))));
  }
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const int rank = ctx.shape(0).rank();
  std::vector<Dim> dims = ctx.shape(0).dims();
  std::optional<std::vector<int64_t>> axes;
  if (ctx.has_input(3)) {
    axes = ctx.constant_ints(3);
  } else {
    axes.emplace(static_cast<size_t>(rank));
    std::iota(axes->begin(), axes->end(), 0);
  }
  const auto pads = shape_contents(ctx, 1);
  if (axes && pads) {
    ctx.check(pads->size() == 2 * axes->size(),
              str("pads must have a begin and an end per axis. Got ", pads->size(), ", expected ", 2 * axes->size()));
  }
  if (!axes) {
    for (Dim& dim : dims) dim = ctx.fresh("pad");
  } else {
    for (size_t i = 0; i < axes->size(); ++i) {
      Dim& dim = dims[static_cast<size_t>(ctx.axis((*axes)[i], rank))];
      if (!pads) {
        dim = ctx.fresh("pad");
        continue;
      }
      dim = dim + (*pads)[i] + (*pads)[i + axes->size()];
      ctx.require_less_equal(0, dim, "negative pads must not remove more than the axis has");
    }
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

// For every position of a padded axis the position it copies, or -1 for the constant. Negative pads crop first.
std::vector<int64_t> padded_positions(const ReferenceContext& ctx, int64_t size, int64_t begin, int64_t end,
                                      PadMode mode) {
  const int64_t first = std::max<int64_t>(0, -begin);
  const int64_t count = size - first - std::max<int64_t>(0, -end);
  auto positions = make_scratch<int64_t>(size + begin + end);
  ctx.check(mode == PadMode::Constant || count > 0 || positions.empty(),
            "an empty axis can only be padded with a constant");
  for (size_t o = 0; o < positions.size(); ++o) {
    int64_t at = static_cast<int64_t>(o) - std::max<int64_t>(0, begin);
    if (at < 0 || at >= count) {
      switch (mode) {
        case PadMode::Constant:
          positions[o] = -1;
          continue;
        case PadMode::Edge:
          at = std::clamp<int64_t>(at, 0, count - 1);
          break;
        case PadMode::Wrap:
          at = (at % count + count) % count;
          break;
        case PadMode::Reflect: {
          const int64_t period = std::max<int64_t>(1, 2 * (count - 1));
          at = (at % period + period) % period;
          at = std::min(at, period - at);
          if (count == 1) at = 0;
          break;
        }
      }
    }
    positions[o] = first + at;
  }
  return positions;
}

struct Run {
  int64_t from;  // -1: the constant
  int64_t to;
  int64_t count;
};

std::vector<Run> join_runs(const std::vector<int64_t>& positions) {
  std::vector<Run> runs;
  for (size_t o = 0; o < positions.size(); ++o) {
    const int64_t from = positions[o];
    if (!runs.empty()) {
      Run& last = runs.back();
      if (from < 0 ? last.from < 0 : last.from >= 0 && last.from + last.count == from) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({from, static_cast<int64_t>(o), 1});
  }
  return runs;
}

// Writes y[i, j, ...] = x[positions[0][i], positions[1][j], ...], or the constant where one position is -1.
void pick_positions(const Tensor& x, const Tensor& y, const std::vector<std::vector<int64_t>>& positions,
                    const void* constant) {
  if (y.size() == 0) return;
  if (x.rank() == 0) return copy_tensor(x, y);
  // Trailing axes that are copied whole are one axis.
  size_t last = positions.size() - 1;
  int64_t inner = 1;
  const auto is_whole = [&](size_t axis) {
    const auto& list = positions[axis];
    if (static_cast<int64_t>(list.size()) != x.dims()[axis]) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] != static_cast<int64_t>(i)) return false;
    }
    return true;
  };
  while (last > 0 && is_whole(last)) inner *= x.dims()[last--];
  const Dims outer_dims(y.dims().begin(), y.dims().begin() + static_cast<int64_t>(last));
  const Dims strides = dense_strides(x.dims());
  const auto runs = join_runs(positions[last]);
  const int64_t row = y.dims()[last] * inner;
  const ElementMover move(x.dtype(), x.data(), y.data());
  std::vector<int64_t> index(last, 0);
  int64_t to = 0;
  do {
    int64_t base = 0;
    bool inside = true;
    for (size_t axis = 0; axis < last; ++axis) {
      const int64_t at = positions[axis][static_cast<size_t>(index[axis])];
      inside = inside && at >= 0;
      base += at * strides[axis];
    }
    if (!inside) {
      fill_elements(x.dtype(), y.data(), to, row, constant);
    } else {
      for (const Run& run : runs) {
        if (run.from < 0) {
          fill_elements(x.dtype(), y.data(), to + run.to * inner, run.count * inner, constant);
        } else {
          move(to + run.to * inner, base + run.from * inner, run.count * inner);
        }
      }
    }
    to += row;
  } while (next_index(index, outer_dims));
}

void reference_pad(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const PadMode mode = pad_mode(ctx.node());
  const PadSizes sizes = pad_sizes(ctx);
  std::vector<std::vector<int64_t>> positions;
  for (size_t axis = 0; axis < x.dims().size(); ++axis)
    positions.push_back(padded_positions(ctx, x.dims()[axis], sizes.begin[axis], sizes.end[axis], mode));
  const void* constant = blank_element(x.dtype());
  if (ctx.node().op == "Pad" && ctx.has_input(2) && ctx.input(2).size() > 0) {
    ctx.check(ctx.input(2).dtype() == x.dtype(), str("constant_value must have the input's element type. Got ",
                                                     name(ctx.input(2).dtype()), ", expected ", name(x.dtype())));
    constant = ctx.input(2).data();
  }
  pick_positions(x, ctx.output(0, x.dtype(), sizes.output), positions, constant);
}

// CenterCropPad

void infer_center_crop_pad(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const auto axes = all_or_listed_axes(ctx.node(), ctx.shape(0).rank());
  const auto target = shape_contents(ctx, 1);
  std::vector<Dim> dims = ctx.shape(0).dims();
  if (target) {
    ctx.check(target->size() == axes.size(),
              str("shape must have one size per axis. Got ", target->size(), ", expected ", axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& dim = dims[static_cast<size_t>(axes[i])];
    dim = target ? (*target)[i] : ctx.fresh("crop");
    ctx.require_less_equal(0, dim, "a size must not be negative");
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

// Sets the pads of a CenterCropPad's axes.
void center(const ReferenceContext& ctx, PadSizes& sizes) {
  const Tensor& x = ctx.input(0);
  const auto axes = all_or_listed_axes(ctx.node(), x.rank());
  const auto target = ctx.ints(1);
  ctx.check(target.size() == axes.size(),
            str("shape must have one size per axis. Got ", target.size(), ", expected ", axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (target[i] < 0 || target[i] > kMaxExtent)
      ctx.fail(ErrorKind::Shape, str("a size must be 0 to ", kMaxExtent, ". Got ", target[i]));
    const int64_t more = target[i] - x.dims()[axis];
    sizes.begin[axis] = more / 2;
    sizes.end[axis] = more - more / 2;
  }
}

// Sets the pads of a Pad's axes.
void read_pads(const ReferenceContext& ctx, PadSizes& sizes) {
  const auto pads = ctx.ints(1);
  const int rank = ctx.input(0).rank();
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (ctx.has_input(3)) axes = ctx.ints(3);
  ctx.check(pads.size() == 2 * axes.size(),
            str("pads must have a begin and an end per axis. Got ", pads.size(), ", expected ", 2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], rank));
    sizes.begin[axis] = pads[i];
    sizes.end[axis] = pads[i + axes.size()];
  }
}

}  // namespace

PadSizes pad_sizes(const ReferenceContext& ctx) {
  PadSizes sizes;
  const Dims& dims = ctx.input(0).dims();
  sizes.begin.assign(dims.size(), 0);
  sizes.end = sizes.begin;
  ctx.node().op == "Pad" ? read_pads(ctx, sizes) : center(ctx, sizes);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t begin = sizes.begin[axis], end = sizes.end[axis];
    for (const int64_t pad : {begin, end}) {
      if (pad < -kMaxExtent || pad > kMaxExtent)
        ctx.fail(ErrorKind::Shape, str("a pad must be at most ", kMaxExtent, " elements. Got ", pad));
    }
    sizes.output.push_back(dims[axis] + begin + end);
    if (sizes.output.back() < 0)
      ctx.fail(ErrorKind::Shape, str("negative pads must not remove more than the axis has. Got ", begin, " and ", end,
                                     " on an axis of ", dims[axis]));
  }
  return sizes;
}

void add_pad_ops(OpRegistry& ops) {
  ops.add({.name = "Pad",
           .min_inputs = 2,
           .max_inputs = 4,
           .layout = LayoutClass::Tolerant,
           .infer = infer_pad,
           .reference = reference_pad,
           .work = movement_work});
  ops.add({.name = "CenterCropPad",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_center_crop_pad,
           .reference = reference_pad,
           .work = movement_work,
           .shape_inputs = {1}});
}

}  // namespace neo
