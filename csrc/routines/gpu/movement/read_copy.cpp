#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "ops/elements.h"
#include "routines/gpu/movement/copy.h"
#include "routines/gpu/movement/families.h"
#include "routines/gpu/storage.h"

namespace neo::gpu {
namespace {

constexpr std::string_view kSame[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
constexpr size_t kMaxParts = 256;  // launches of one Pad

bool is_same(const Node& node) {
  return std::find(std::begin(kSame), std::end(kSame), node.op) != std::end(kSame);
}

bool is_copied(const Value* v) {
  return v->type.is_tensor() && v->shape().has_rank() && v->dtype() != DType::String && item_bytes(v->dtype()) <= 8;
}

CopySchedule copy_schedule(const BasicOptions& options) {
  return {options.lanes, std::min(options.lanes, 8), 1, options.threads};
}

Arg dense_arg(DType dtype, const Dims& dims) {
  return {dtype, Layout::plain(static_cast<int>(dims.size())), dims, dense_strides(dims)};
}

// Operands in a row: the whole of each shape is one run of elements.
CopyWork plan_same(std::span<const Dims> shapes) {
  CopyWork work;
  CopyPart part;
  part.target = 1;
  part.add_axis(element_count(shapes[1]), 1, 1);
  if (element_count(shapes[1]) > 0) work.parts.push_back(part);
  return work;
}

struct PadAmounts {
  std::string mode;
  std::vector<int64_t> begin;
};

std::optional<PadAmounts> read_padding(const Node& node, std::string* why) {
  const auto refuse = [&](const char* reason) {
    if (why != nullptr) *why = reason;
    return std::optional<PadAmounts>();
  };
  const int rank = node.inputs.front()->shape().rank();
  PadAmounts p{node.string_attr("mode", "constant"), std::vector<int64_t>(static_cast<size_t>(rank), 0)};
  if (p.mode != "constant" && p.mode != "edge" && p.mode != "reflect" && p.mode != "wrap")
    return refuse("the mode is not known");
  const Value *pads = node.input(1), *element = node.input(2), *given = node.input(3);
  if (pads == nullptr || !pads->constant || (given != nullptr && !given->constant))
    return refuse("the pads are not known");
  if (element != nullptr && (!element->constant || element->constant->size() != 1))
    return refuse("the padding is not a constant");
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (given != nullptr) axes = load_ints(*given->constant);
  const auto all = load_ints(*pads->constant);
  for (size_t i = 0; i < axes.size(); ++i)
    p.begin[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = all[i];
  return p;
}

// The element of the input at one place of a padded axis; -1 where it is the padding's. Negative pads crop first.
std::vector<int64_t> padded_positions(const std::string& mode, int64_t input, int64_t output, int64_t begin) {
  const int64_t first = std::max<int64_t>(0, -begin), end = output - input - begin;
  const int64_t count = std::max<int64_t>(0, input - first - std::max<int64_t>(0, -end));
  NEO_CHECK(mode == "constant" || count > 0 || output == 0, Shape, "Pad",
            "an empty axis can only be padded with a constant. Got mode ", mode);
  std::vector<int64_t> positions;
  for (int64_t o = 0; o < output; ++o) {
    const int64_t at = o - std::max<int64_t>(0, begin);
    if (at >= 0 && at < count) {
      positions.push_back(first + at);
    } else if (mode == "constant") {
      positions.push_back(-1);
    } else if (mode == "edge" || count == 1) {
      positions.push_back(first + std::clamp<int64_t>(at, 0, count - 1));
    } else {
      const int64_t period = mode == "wrap" ? count : 2 * (count - 1);
      const int64_t inside = (at % period + period) % period;
      positions.push_back(first + (mode == "wrap" ? inside : std::min(inside, period - inside)));
    }
  }
  return positions;
}

// A run of places whose elements are `step` apart.
struct PlaceRun {
  int64_t size, from, step, to;
};

std::vector<PlaceRun> runs_of(const std::vector<int64_t>& positions) {
  std::vector<PlaceRun> runs;
  for (size_t i = 0; i < positions.size(); ++i) {
    const int64_t p = positions[i];
    if (p < 0) continue;
    PlaceRun* last = runs.empty() ? nullptr : &runs.back();
    const bool follows = last != nullptr && last->to + last->size == static_cast<int64_t>(i);
    if (follows && last->size == 1) {
      last->step = p - last->from;
      ++last->size;
    } else if (follows && p == last->from + last->size * last->step) {
      ++last->size;
    } else {
      runs.push_back({1, p, 0, static_cast<int64_t>(i)});
    }
  }
  return runs;
}

CopyWork plan_pad(const PadAmounts& padding, const std::array<std::byte, 16>& element, std::span<const Dims> shapes) {
  const Dims &in = shapes[0], &out = shapes[1];
  const Dims from = dense_strides(in), to = dense_strides(out);
  CopyWork work;
  work.filled = padding.mode == "constant" ? 1 : -1;
  work.fill = element;
  work.fill_count = element_count(out);
  std::vector<std::vector<PlaceRun>> runs;
  size_t parts = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    runs.push_back(runs_of(padded_positions(padding.mode, in[i], out[i], padding.begin[i])));
    parts *= runs.back().size();
  }
  NEO_CHECK(parts <= kMaxParts, Unsupported, "Pad", "a device pads in at most ", kMaxParts, " copies. Got ", parts);
  if (parts == 0) return work;
  std::vector<size_t> choice(in.size(), 0);
  for (bool more = true; more;) {
    CopyPart part;
    part.target = 1;
    more = false;
    for (size_t i = 0; i < in.size(); ++i) {
      const PlaceRun& r = runs[i][choice[i]];
      part.from_offset += r.from * from[i];
      part.to_offset += r.to * to[i];
      part.add_axis(r.size, r.step * from[i], to[i]);
    }
    order_axes(part);
    work.parts.push_back(part);
    for (size_t i = 0; i < choice.size() && !more; ++i) {
      more = ++choice[i] < runs[i].size();
      if (!more) choice[i] = 0;
    }
  }
  return work;
}

// Concat and Split where channels lie together, on arrays of physical dims.
struct PieceCopy {
  std::vector<Layout> layouts;  // of the operands, as programs know them
  size_t axis = 0;              // among the physical ones
  bool is_split = false;        // the first operand is the whole; else the last one is

  CopyWork operator()(std::span<const Dims> shapes) const {
    std::vector<Dims> dims;
    for (size_t i = 0; i < shapes.size(); ++i) dims.push_back(layouts[i].physical_dims(shapes[i]));
    const size_t whole = is_split ? 0 : dims.size() - 1;
    const auto run_of = [&](const Dims& d) {
      return std::accumulate(d.begin() + static_cast<std::ptrdiff_t>(axis), d.end(), int64_t{1}, std::multiplies<>());
    };
    CopyWork work;
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t run = run_of(dims[i]);
      if (i == whole || element_count(dims[i]) == 0) continue;
      const int64_t all = run_of(dims[whole]);
      CopyPart part;
      part.source = static_cast<int64_t>(is_split ? whole : i);
      part.target = static_cast<int64_t>(is_split ? i : whole);
      (is_split ? part.from_offset : part.to_offset) = offset;
      part.add_axis(element_count(dims[i]) / run, is_split ? all : run, is_split ? run : all);
      part.add_axis(run, 1, 1);
      work.parts.push_back(part);
      offset += run;
    }
    return work;
  }
};

std::optional<Made> read_pieces(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  PieceCopy copy;
  copy.is_split = node.op == "Split";
  if (!copy.is_split && node.op != "Concat") return not_made(why, "it copies plain arrays");
  const Value* whole = copy.is_split ? node.inputs.front() : workload.outputs.front();
  const int rank = whole->shape().rank();
  int64_t axis = node.int_attr("axis", 0);
  if (axis < 0) axis += rank;
  const DType dtype = whole->dtype();
  const bool is_held = computes_in_float32(dtype) || dtype == DType::UInt8 || dtype == DType::Int8;
  if (rank < 3 || !is_held) return not_made(why, "it has no channels to block");
  const size_t pieces = copy.is_split ? workload.outputs.size() : workload.inputs.size();
  if (pieces != (copy.is_split ? node.outputs : node.inputs).size()) return not_made(why, "pieces are missing");
  const bool along_channels = axis == 1;
  // Behind the others, where all of them lie together.
  copy.axis = static_cast<size_t>(along_channels && options.together == kAllChannels ? rank : axis);
  Made made;
  CopyProblem problem;
  const size_t inputs = copy.is_split ? 1 : workload.inputs.size();
  for (size_t i = 0; i < inputs; ++i) made.inputs.push_back(static_cast<int>(i));
  for (size_t i = 0; i < inputs + workload.outputs.size(); ++i) {
    const Value* v = i < inputs ? workload.inputs[i] : workload.outputs[i - inputs];
    const Dim& channels = v->shape()[1];
    if (!channels.is_constant() || channels.value() < 2) return not_made(why, "it has no channels to block");
    const int64_t block = channels_block(options.together, channels.value());
    if (along_channels && channels.value() % block != 0) return not_made(why, "a block lies in two pieces");
    copy.layouts.push_back(channels_layout(rank, block));
    made.layouts.push_back(channels_layout(rank, options.together));
    problem.hint.push_back(v->shape().hint_dims());
    problem.any_dims = problem.any_dims || !v->shape().is_static();
  }
  problem.width = item_bytes(whole->dtype());
  problem.plan = copy;
  problem.count = [layouts = copy.layouts](int operand, const Dims& dims) {
    return element_count(layouts[static_cast<size_t>(operand)].physical_dims(dims));
  };
  made.program = [problem, options] { return make_copy(problem, copy_schedule(options)); };
  return made;
}

// Plans a copy as the CPU's routines do, on dense arrays.
CopyPlanner plan_as_cpu(const Workload& workload, const std::vector<int>& inputs) {
  std::vector<DType> dtypes;
  for (const int i : inputs) dtypes.push_back(workload.inputs[static_cast<size_t>(i)]->dtype());
  for (const Value* v : workload.outputs) dtypes.push_back(v->dtype());
  return [pattern = std::shared_ptr<const CopyPattern>(make_copy_pattern(workload)),
          dtypes](std::span<const Dims> shapes) {
    std::vector<Arg> args;
    for (size_t i = 0; i < shapes.size(); ++i) args.push_back(dense_arg(dtypes[i], shapes[i]));
    const CopyPlan plan = pattern->planned(args);
    CopyWork work;
    work.parts.assign(plan.part, plan.part + plan.parts);
    work.filled = static_cast<int>(plan.filled);
    work.fill_count = plan.fill_count;
    work.fill = plan.fill_element;
    return work;
  };
}

}  // namespace

std::vector<std::string_view> copy_roots() {
  std::vector<std::string_view> ops = {"Transpose", "Slice",        "Split",        "Concat",          "Expand",
                                       "Tile",      "DepthToSpace", "SpaceToDepth", "ConstantOfShape", "Pad"};
  ops.insert(ops.end(), std::begin(kSame), std::end(kSame));
  return ops;
}

std::optional<Made> read_copy(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  for (const Value* v : workload.outputs) {
    if (!is_copied(v)) return not_made(why, "the result is not a tensor of known rank and fixed element size");
  }
  if (!node.symbols.empty()) return not_made(why, "the size of the result is only known when it runs");
  if (options.together != 1) return read_pieces(workload, options, why);
  CopyProblem problem;
  Made made;
  if (node.op == "Concat") {
    for (size_t i = 0; i < workload.inputs.size(); ++i) made.inputs.push_back(static_cast<int>(i));
  } else if (node.op != "ConstantOfShape") {
    made.inputs.push_back(0);
  }
  for (const int i : made.inputs) {
    if (!is_copied(workload.inputs[static_cast<size_t>(i)])) return not_made(why, "an input has no known rank");
  }
  if (is_same(node)) {
    problem.plan = plan_same;
  } else if (node.op == "Pad") {
    const auto padding = read_padding(node, why);
    if (!padding) return std::nullopt;
    std::array<std::byte, 16> element = {};
    if (const Value* v = node.input(2)) {
      std::memcpy(element.data(), v->constant->data(), static_cast<size_t>(item_bytes(v->dtype())));
    }
    problem.plan = [padding = *padding, element](std::span<const Dims> shapes) {
      return plan_pad(padding, element, shapes);
    };
  } else {
    if (auto reason = reject_copy(workload)) return not_made(why, *reason);
    problem.plan = plan_as_cpu(workload, made.inputs);
  }
  problem.width = item_bytes(workload.outputs.front()->dtype());
  problem.count = [](int, const Dims& dims) { return element_count(dims); };
  for (const int i : made.inputs) {
    const Shape& shape = workload.inputs[static_cast<size_t>(i)]->shape();
    problem.hint.push_back(shape.hint_dims());
    problem.any_dims = problem.any_dims || !shape.is_static();
  }
  for (const Value* v : workload.outputs) {
    problem.hint.push_back(v->shape().hint_dims());
    problem.any_dims = problem.any_dims || !v->shape().is_static();
  }
  // Hints of sizes that depend on each other need not fit together.
  if (problem.any_dims && node.op == "Pad") return not_made(why, "sizes that are padded are not constant");
  made.program = [problem, options] { return make_copy(problem, copy_schedule(options)); };
  return made;
}

}  // namespace neo::gpu
