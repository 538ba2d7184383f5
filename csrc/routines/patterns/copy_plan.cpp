#include "routines/patterns/copy_plan.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

constexpr int64_t kFewNeighbours = 4;

class TransposeCopy final : public CopyPattern {
 public:
  TransposeCopy(std::vector<int64_t> permutation) : permutation_(std::move(permutation)) {}

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    if (!args[0].layout.is_blocked()) return add_part(args, plan, 0, -1, 1);
    // Whole channel blocks, and the channels of the last one.
    const int64_t channels = args[0].dims[1], block = args[0].layout.blocks().front().size;
    add_part(args, plan, 0, channels / block, block);
    add_part(args, plan, channels / block * block, 1, channels % block);
  }

  // Adds `blocks` blocks of channels from `first` on, of each its first lanes; no blocks: all of a plain layout.
  void add_part(std::span<const Arg> args, CopyPlan& plan, int64_t first, int64_t blocks, int64_t lanes) const {
    const Arg &x = args[0], &y = args[1];
    CopyPart& p = plan.part[plan.parts++];
    p.target = 1;
    for (size_t i = 0; i < permutation_.size(); ++i) {
      const auto axis = static_cast<size_t>(permutation_[i]);
      if (axis != 1 || blocks < 0) {
        p.add_axis(x.dims[axis], x.strides[axis], y.strides[i]);
        continue;
      }
      const int64_t block = x.layout.blocks().front().size;
      p.from_offset = first / block * x.strides[axis];
      p.to_offset = first * y.strides[i];
      p.add_axis(blocks, x.strides[axis], block * y.strides[i]);
      p.add_axis(lanes, x.strides.back(), y.strides[i]);
    }
  }

  std::vector<int64_t> permutation_;
};

// All axes of `box`, read and written through two arguments of that many axes.
void add_axes(CopyPart& p, const Dims& box, const Arg& from, const Arg& to) {
  for (size_t i = 0; i < box.size(); ++i) p.add_axis(box[i], from.strides[i], to.strides[i]);
}

class SliceCopy final : public CopyPattern {
 public:
  SliceCopy(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {}

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    CopyPart& p = plan.part[plan.parts++];
    p.target = 1;
    add_axes(p, args[1].dims, args[0], args[1]);
    for (const SliceRange& r : ranges_) {
      p.from_offset += r.start * p.from[r.axis];
      p.from[r.axis] *= r.step;
    }
  }

  std::vector<SliceRange> ranges_;
};

class SplitCopy final : public CopyPattern {
 public:
  SplitCopy(int axis, std::vector<int64_t> starts) : axis_(axis), starts_(std::move(starts)) {}

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    for (size_t i = 1; i < args.size(); ++i) {
      CopyPart& p = plan.part[plan.parts++];
      p.target = static_cast<int64_t>(i);
      add_axes(p, args[i].dims, args[0], args[i]);
      p.from_offset = starts_[i - 1] * args[0].strides[static_cast<size_t>(axis_)];
    }
  }

  int axis_;
  std::vector<int64_t> starts_;
};

class ConcatCopy final : public CopyPattern {
 public:
  ConcatCopy(int axis, std::vector<int> arguments) : axis_(axis), arguments_(std::move(arguments)) {}
  int append_axis() const override {
    const bool is_first = arguments_.front() == 0 && std::count(arguments_.begin(), arguments_.end(), 0) == 1;
    return is_first ? axis_ : -1;
  }

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    const Arg& out = args.back();
    const auto axis = static_cast<size_t>(axis_);
    int64_t start = 0;
    for (int argument : arguments_) {
      const Arg& in = args[static_cast<size_t>(argument)];
      CopyPart& p = plan.part[plan.parts++];
      p.source = argument;
      p.target = static_cast<int64_t>(args.size()) - 1;
      add_axes(p, in.dims, in, out);
      p.to_offset = start * out.strides[axis];
      start += in.dims[axis];
    }
  }

  int axis_;
  std::vector<int> arguments_;
};

class ExpandCopy final : public CopyPattern {
 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    CopyPart& p = plan.part[plan.parts++];
    p.target = 1;
    const size_t axes = args[1].dims.size();
    const size_t missing = axes - args[0].dims.size();
    for (size_t i = 0; i < axes; ++i) {
      const bool repeats = i < missing || args[0].dims[i - missing] == 1;
      p.add_axis(args[1].dims[i], repeats ? 0 : args[0].strides[i - missing], args[1].strides[i]);
    }
  }
};

// Every axis as (repeat, element).
class TileCopy final : public CopyPattern {
 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    CopyPart& p = plan.part[plan.parts++];
    p.target = 1;
    for (size_t i = 0; i < args[0].dims.size(); ++i) {
      const int64_t size = args[0].dims[i];
      const int64_t repeats = size == 0 ? 0 : args[1].dims[i] / size;
      p.add_axis(repeats, 0, args[1].strides[i] * size);
      p.add_axis(size, args[0].strides[i], args[1].strides[i]);
    }
  }
};

// DepthToSpace and SpaceToDepth: blocks of block x block elements of a plane on one side, channels on the other.
class BlockCopy final : public CopyPattern {
 public:
  BlockCopy(const Node& node)
      : CopyPattern(),
        block_(node.int_attr("blocksize", 1)),
        depth_first_(node.string_attr("mode", "DCR") == "DCR"),
        to_space_(node.op == "DepthToSpace") {}

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    const Arg& deep = args[to_space_ ? 0 : 1];
    const Arg& wide = args[to_space_ ? 1 : 0];
    const int64_t depth = wide.dims[1];
    const int64_t channel = deep.strides[1] * (depth_first_ ? 1 : block_ * block_);
    const int64_t inside = deep.strides[1] * (depth_first_ ? depth : 1);
    CopyPart& p = plan.part[plan.parts++];
    p.target = 1;
    const auto add = [&](int64_t count, int64_t deep_stride, int64_t wide_stride) {
      p.add_axis(count, to_space_ ? deep_stride : wide_stride, to_space_ ? wide_stride : deep_stride);
    };
    const auto add_rows = [&] { add(deep.dims[2], deep.strides[2], wide.strides[2] * block_); };
    const auto add_inside = [&] {
      add(block_, block_ * inside, wide.strides[2]);
      add(block_, inside, wide.strides[3]);
    };
    add(deep.dims[0], deep.strides[0], wide.strides[0]);
    add(depth, channel, wide.strides[1]);
    // The innermost axis is the destination's.
    if (to_space_) {
      add_rows();
      add(block_, block_ * inside, wide.strides[2]);
      add(deep.dims[3], deep.strides[3], wide.strides[3] * block_);
      add(block_, inside, wide.strides[3]);
    } else {
      add_inside();
      add_rows();
      add(deep.dims[3], deep.strides[3], wide.strides[3] * block_);
    }
  }

  int64_t block_;
  bool depth_first_;
  bool to_space_;
};

// The element a fill repeats; zero where the node names none.
std::array<std::byte, 16> element_of(const Tensor* tensor) {
  std::array<std::byte, 16> element = {};
  if (tensor) std::memcpy(element.data(), tensor->data(), static_cast<size_t>(item_bytes(tensor->dtype())));
  return element;
}

// ConstantOfShape.
class FillCopy final : public CopyPattern {
 public:
  FillCopy(std::array<std::byte, 16> element) : element_(element) {}

 private:
  void plan(std::span<const Arg> args, CopyPlan& plan) const override {
    NEO_ASSERT(args.back().is_dense(), "a constant is filled as a whole");
    plan.filled = static_cast<int64_t>(args.size()) - 1;
    plan.fill_count = element_count(args.back().dims);
    plan.fill_element = element_;
  }

  std::array<std::byte, 16> element_;
};

std::unique_ptr<CopyPattern> make_parts(const Workload& workload) {
  const Node& node = workload.root();
  const int axis = normalized_axis(node, node.inputs.front()->shape().rank());
  if (node.op == "Split") {
    std::vector<int64_t> starts;
    const auto ranges = *slice_ranges(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i]) starts.push_back(ranges[i].start);
    }
    return std::make_unique<SplitCopy>(axis, std::move(starts));
  }
  std::vector<int> arguments;
  for (const Value* v : node.inputs) arguments.push_back(workload.input_index(v));
  return std::make_unique<ConcatCopy>(axis, std::move(arguments));
}

}  // namespace

void order_axes(CopyPart& p) {
  int kept = 0;
  for (int i = 0; i < p.axes; ++i) {
    if (p.size[i] == 1) continue;
    if (kept > 0 && p.from[kept - 1] == p.from[i] * p.size[i] && p.to[kept - 1] == p.to[i] * p.size[i]) {
      p.size[kept - 1] *= p.size[i];
      p.from[kept - 1] = p.from[i];
      p.to[kept - 1] = p.to[i];
      continue;
    }
    p.size[kept] = p.size[i];
    p.from[kept] = p.from[i];
    p.to[kept] = p.to[i];
    ++kept;
  }
  p.axes = kept;
  if (kept == 0) p.add_axis(1, 1, 1);
  if (p.axes < 3 || p.from[p.axes - 1] == 1 || p.to[p.axes - 1] != 1) return;
  const auto* contiguous = std::find(p.from, p.from + p.axes, 1);
  const auto i = contiguous - p.from;
  // A few neighbours make no plane of their own: as an outer axis they leave the others joined.
  if (i >= p.axes - 2 || p.size[i] < kFewNeighbours) return;
  for (int64_t* list : {p.size, p.from, p.to}) std::rotate(list + i, list + i + 1, list + p.axes - 1);
}

void CopyPart::add_axis(int64_t count, int64_t from_stride, int64_t to_stride) {
  NEO_ASSERT(axes < kCopyAxes, "a copy has at most ", kCopyAxes, " axes");
  size[axes] = count;
  from[axes] = from_stride;
  to[axes] = to_stride;
  ++axes;
}

CopyPlan CopyPattern::planned(std::span<const Arg> args) const {
  CopyPlan made;
  made.width = item_bytes(args.back().dtype);
  plan(args, made);
  // Parts of no element go.
  int64_t kept = 0;
  for (int64_t i = 0; i < made.parts; ++i) {
    CopyPart& p = made.part[i];
    if (std::any_of(p.size, p.size + p.axes, [](int64_t s) { return s == 0; })) continue;
    order_axes(p);
    if (kept != i) made.part[kept] = p;
    ++kept;
  }
  made.parts = kept;
  return made;
}

std::unique_ptr<CopyPattern> make_transpose_pattern(std::vector<int64_t> order) {
  return std::make_unique<TransposeCopy>(std::move(order));
}

std::optional<std::string> reject_copy(const Workload& workload) {
  const Node& node = workload.root();
  const auto fits = [](const Value* v) {
    return v->type.is_tensor() && v->shape().has_rank() && v->shape().rank() <= kCopyAxes &&
           v->dtype() != DType::String;
  };
  for (const Value* v : workload.outputs) {
    if (!fits(v)) return "the result is not a tensor of known rank and fixed element size";
  }
  if (makes_sizes(node) && !repeats_at_run_time(node)) return "the size of the result is only known when it runs";
  if (node.op == "ConstantOfShape") return std::nullopt;
  if (!fits(node.inputs.front())) return "the input is not a tensor of known rank and fixed element size";
  if (node.op == "Concat" && !std::all_of(node.inputs.begin(), node.inputs.end(), fits))
    return "an input has no known rank";
  if (std::max(node.inputs.size(), node.outputs.size()) > kCopyParts) return "too many parts";
  if ((node.op == "Slice" || node.op == "Split") && !slice_ranges(node)) return "where the parts begin is not known";
  return std::nullopt;
}

std::unique_ptr<CopyPattern> make_copy_pattern(const Workload& workload) {
  const Node& node = workload.root();
  if (node.op == "Transpose") return make_transpose_pattern(transpose_axes(node));
  if (node.op == "Slice") return std::make_unique<SliceCopy>(*slice_ranges(node));
  if (node.op == "Expand" || node.op == "Identity") return std::make_unique<ExpandCopy>();
  if (node.op == "Tile") return std::make_unique<TileCopy>();
  if (node.op == "DepthToSpace" || node.op == "SpaceToDepth") return std::make_unique<BlockCopy>(node);
  if (node.op == "ConstantOfShape") return std::make_unique<FillCopy>(element_of(node.tensor_attr("value")));
  return make_parts(workload);
}

}  // namespace neo
