#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/move/move.h"

namespace neo {
namespace {

constexpr int kMaxAxes = 10;
constexpr int kMaxParts = 64;

// One strided copy: for every index, dst[sum i*to] = src[sum i*from]. Axes are merged where both sides allow.
struct Part {
  int axes = 0;
  int64_t size[kMaxAxes];
  int64_t from[kMaxAxes];  // strides in elements; 0 repeats
  int64_t to[kMaxAxes];
  int64_t source = 0;       // argument it reads
  int64_t target = 0;       // argument it writes
  int64_t from_offset = 0;  // elements
  int64_t to_offset = 0;
};

struct CopyPlan {
  int64_t width = 4;  // bytes of an element
  int64_t parts = 0;
  Part part[kMaxParts];
};

void merge_axes(Part& p) {
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
  if (kept == 0) {
    p.size[0] = 1;
    p.from[0] = p.to[0] = 1;
    kept = 1;
  }
  p.axes = kept;
}

// The last two axes, in tiles so that both sides stay in cache lines.
template <class T>
void copy_plane(const Part& p, const T* from, T* to, int64_t begin, int64_t end) {
  const int inner = p.axes - 1;
  const int outer = p.axes - 2;
  const int64_t fi = p.from[inner], ti = p.to[inner], fo = p.from[outer], td = p.to[outer];
  const int64_t columns = p.size[inner];
  if (fi == 1 && ti == 1) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * td, from + i * fo, static_cast<size_t>(columns) * sizeof(T));
    return;
  }
  constexpr int64_t kTile = 16;
  for (int64_t i0 = begin; i0 < end; i0 += kTile) {
    const int64_t i1 = std::min(end, i0 + kTile);
    for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
      const int64_t j1 = std::min(columns, j0 + kTile);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) to[i * td + j * ti] = from[i * fo + j * fi];
      }
    }
  }
}

template <class T>
void copy_part(const Part& p, const std::byte* source, std::byte* target, Team& team) {
  const T* from = reinterpret_cast<const T*>(source) + p.from_offset;
  T* to = reinterpret_cast<T*>(target) + p.to_offset;
  if (p.axes == 1) {
    constexpr int64_t kChunk = 1 << 14;
    team.parallel_for((p.size[0] + kChunk - 1) / kChunk, [&](int64_t begin, int64_t end, int) {
      const int64_t last = std::min(p.size[0], end * kChunk);
      if (p.from[0] == 1 && p.to[0] == 1) {
        std::memcpy(to + begin * kChunk, from + begin * kChunk, static_cast<size_t>(last - begin * kChunk) * sizeof(T));
        return;
      }
      for (int64_t i = begin * kChunk; i < last; ++i) to[i * p.to[0]] = from[i * p.from[0]];
    });
    return;
  }
  // Tasks: rows of the last plane in blocks, over all outer axes.
  constexpr int64_t kRows = 64;
  const int outer = p.axes - 2;
  const int64_t row_blocks = (p.size[outer] + kRows - 1) / kRows;
  int64_t planes = 1;
  for (int i = 0; i < outer; ++i) planes *= p.size[i];
  team.parallel_for(planes * row_blocks, [&](int64_t begin, int64_t end, int) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t rest = task / row_blocks;
      const int64_t first = task % row_blocks * kRows;
      int64_t f = 0;
      int64_t t = 0;
      for (int i = outer - 1; i >= 0; --i) {
        const int64_t index = rest % p.size[i];
        rest /= p.size[i];
        f += index * p.from[i];
        t += index * p.to[i];
      }
      copy_plane<T>(p, from + f, to + t, first, std::min(p.size[outer], first + kRows));
    }
  });
}

class CopyStep : public KernelStep {
 public:
  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& plan = *reinterpret_cast<const CopyPlan*>(prepared);
    for (int64_t i = 0; i < plan.parts; ++i) {
      const Part& p = plan.part[i];
      const std::byte* source = args[p.source];
      std::byte* target = args[p.target];
      switch (plan.width) {
        case 1:
          copy_part<uint8_t>(p, source, target, team);
          break;
        case 2:
          copy_part<uint16_t>(p, source, target, team);
          break;
        case 4:
          copy_part<uint32_t>(p, source, target, team);
          break;
        case 8:
          copy_part<uint64_t>(p, source, target, team);
          break;
        default:
          copy_part<Wide>(p, source, target, team);
          break;
      }
    }
  }

 private:
  struct Wide {
    uint64_t low, high;
  };
};

// A plan without the parts that are not used, and without parts of no element.
Prepared pack(CopyPlan& plan) {
  int64_t kept = 0;
  for (int64_t i = 0; i < plan.parts; ++i) {
    Part& p = plan.part[i];
    if (std::any_of(p.size, p.size + p.axes, [](int64_t s) { return s == 0; })) continue;
    merge_axes(p);
    if (kept != i) plan.part[kept] = p;
    ++kept;
  }
  plan.parts = kept;
  const auto* bytes = reinterpret_cast<const std::byte*>(&plan);
  const size_t size = offsetof(CopyPlan, part) + static_cast<size_t>(kept) * sizeof(Part);
  return {std::vector<std::byte>(bytes, bytes + size), 0};
}

std::unique_ptr<CopyPlan> new_plan(DType dtype) {
  auto plan = std::make_unique<CopyPlan>();
  plan->width = item_bytes(dtype);
  return plan;
}

class TransposeStep final : public CopyStep {
 public:
  explicit TransposeStep(std::vector<int64_t> permutation) : permutation_(std::move(permutation)) {}
  Prepared prepare(std::span<const Arg> args) const override {
    auto plan = new_plan(args[0].dtype);
    plan->parts = 1;
    Part& p = plan->part[0];
    p.axes = static_cast<int>(permutation_.size());
    p.target = 1;
    for (int i = 0; i < p.axes; ++i) {
      const auto axis = static_cast<size_t>(permutation_[static_cast<size_t>(i)]);
      p.size[i] = args[0].dims[axis];
      p.from[i] = args[0].strides[axis];
      p.to[i] = args[1].strides[static_cast<size_t>(i)];
    }
    return pack(*plan);
  }

 private:
  std::vector<int64_t> permutation_;
};

class SliceStep final : public CopyStep {
 public:
  explicit SliceStep(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {}
  Prepared prepare(std::span<const Arg> args) const override {
    auto plan = new_plan(args[0].dtype);
    plan->parts = 1;
    Part& p = plan->part[0];
    p.axes = static_cast<int>(args[0].dims.size());
    p.target = 1;
    for (int i = 0; i < p.axes; ++i) {
      p.size[i] = args[1].dims[static_cast<size_t>(i)];
      p.from[i] = args[0].strides[static_cast<size_t>(i)];
      p.to[i] = args[1].strides[static_cast<size_t>(i)];
    }
    for (const SliceRange& r : ranges_) {
      p.from_offset += r.start * p.from[r.axis];
      p.from[r.axis] *= r.step;
    }
    return pack(*plan);
  }

 private:
  std::vector<SliceRange> ranges_;
};

class SplitStep final : public CopyStep {
 public:
  SplitStep(int axis, std::vector<int64_t> starts) : axis_(axis), starts_(std::move(starts)) {}
  Prepared prepare(std::span<const Arg> args) const override {
    auto plan = new_plan(args[0].dtype);
    for (size_t i = 1; i < args.size(); ++i) {
      Part& p = plan->part[plan->parts++];
      p.axes = static_cast<int>(args[0].dims.size());
      p.target = static_cast<int64_t>(i);
      for (int a = 0; a < p.axes; ++a) {
        p.size[a] = args[i].dims[static_cast<size_t>(a)];
        p.from[a] = args[0].strides[static_cast<size_t>(a)];
        p.to[a] = args[i].strides[static_cast<size_t>(a)];
      }
      p.from_offset = starts_[i - 1] * args[0].strides[static_cast<size_t>(axis_)];
    }
    return pack(*plan);
  }

 private:
  int axis_;
  std::vector<int64_t> starts_;
};

class ConcatStep final : public CopyStep {
 public:
  ConcatStep(int axis, std::vector<int> arguments) : axis_(axis), arguments_(std::move(arguments)) {}
  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& out = args.back();
    auto plan = new_plan(out.dtype);
    int64_t start = 0;
    for (int argument : arguments_) {
      const Arg& in = args[static_cast<size_t>(argument)];
      Part& p = plan->part[plan->parts++];
      p.axes = static_cast<int>(out.dims.size());
      p.source = argument;
      p.target = static_cast<int64_t>(args.size()) - 1;
      for (int a = 0; a < p.axes; ++a) {
        p.size[a] = in.dims[static_cast<size_t>(a)];
        p.from[a] = in.strides[static_cast<size_t>(a)];
        p.to[a] = out.strides[static_cast<size_t>(a)];
      }
      p.to_offset = start * out.strides[static_cast<size_t>(axis_)];
      start += in.dims[static_cast<size_t>(axis_)];
    }
    return pack(*plan);
  }

 private:
  int axis_;
  std::vector<int> arguments_;
};

class ExpandStep final : public CopyStep {
 public:
  Prepared prepare(std::span<const Arg> args) const override {
    auto plan = new_plan(args[0].dtype);
    plan->parts = 1;
    Part& p = plan->part[0];
    p.axes = static_cast<int>(args[1].dims.size());
    p.target = 1;
    const int missing = p.axes - static_cast<int>(args[0].dims.size());
    for (int i = 0; i < p.axes; ++i) {
      p.size[i] = args[1].dims[static_cast<size_t>(i)];
      p.to[i] = args[1].strides[static_cast<size_t>(i)];
      const bool repeats = i < missing || args[0].dims[static_cast<size_t>(i - missing)] == 1;
      p.from[i] = repeats ? 0 : args[0].strides[static_cast<size_t>(i - missing)];
    }
    return pack(*plan);
  }
};

// Movement by strided copies, any dtype of a fixed size.
class CopyRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu/copy"; }
  std::vector<std::string_view> roots() const override { return {"Transpose", "Slice", "Split", "Concat", "Expand"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const auto fits = [](const Value* v) {
      return v->type.is_tensor() && v->shape().has_rank() && v->shape().rank() <= kMaxAxes &&
             v->dtype() != DType::String;
    };
    if (!fits(node.inputs.front())) return "the input is not a tensor of known rank and fixed element size";
    for (const Value* v : workload.outputs) {
      if (!fits(v)) return "the result is not a tensor of known rank and fixed element size";
    }
    if (node.op == "Concat" && !std::all_of(node.inputs.begin(), node.inputs.end(), fits))
      return "an input has no known rank";
    if (std::max(node.inputs.size(), node.outputs.size()) > kMaxParts) return "too many parts";
    if ((node.op == "Slice" || node.op == "Split") && !slice_ranges(node)) return "where the parts begin is not known";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    Candidate c;
    Work work;
    for (const Value* v : workload.inputs) {
      const bool read = v == node.inputs.front() || node.op == "Concat";
      c.inputs.push_back(read ? std::optional(plain_schema(v->type)) : std::nullopt);
    }
    for (const Value* v : workload.outputs) {
      c.outputs.push_back(plain_schema(v->type));
      work.bytes = work.bytes + v->shape().element_count() * Dim(2 * item_bytes(v->dtype()));
    }
    c.cost.time_us = roofline_us(work, target, 1) * (node.op == "Transpose" ? 3 : 1);
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target&, const OpRegistry&) const override {
    const Workload& workload = *candidate.workload;
    const Node& node = workload.root();
    if (node.op == "Transpose") return std::make_unique<TransposeStep>(transpose_axes(node));
    if (node.op == "Slice") return std::make_unique<SliceStep>(*slice_ranges(node));
    if (node.op == "Expand") return std::make_unique<ExpandStep>();
    const int axis = normalized_axis(node, node.inputs.front()->shape().rank());
    if (node.op == "Split") {
      std::vector<int64_t> starts;
      const auto ranges = *slice_ranges(node);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i]) starts.push_back(ranges[i].start);
      }
      return std::make_unique<SplitStep>(axis, std::move(starts));
    }
    std::vector<int> arguments;
    for (const Value* v : node.inputs) arguments.push_back(workload.input_index(v));
    return std::make_unique<ConcatStep>(axis, std::move(arguments));
  }
};

}  // namespace

void add_copy_routines(RoutineTable& table) {
  table.add(std::make_unique<CopyRoutine>());
}

void add_move_routines(RoutineTable& table) {
  add_view_routines(table);
  add_copy_routines(table);
}

}  // namespace neo
