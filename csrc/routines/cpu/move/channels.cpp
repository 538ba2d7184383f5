#include "routines/cpu/move/channels.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"

NEO_DECLARE_TIERS(void pick_channels(const ChannelPick*, int64_t, int64_t, float*))

namespace neo {
namespace {

constexpr int kMaxChannelLanes = 16;
constexpr size_t kMaxOperands = 24;
constexpr int64_t kMaxChannels = 1 << 14;
constexpr int kMaxNodes = 32;  // that a group is looked for in

// A channel of an operand.
struct Channel {
  const Value* value = nullptr;
  int64_t index = 0;
};

// A value [N, axes..., spatial...] as channels of others, in row-major order of its axes.
struct Channels {
  std::vector<int64_t> axes;
  std::vector<Channel> list;

  // Elements `start + i * step`, i < size, of one axis.
  Channels part(size_t axis, int64_t start, int64_t step, int64_t size) const {
    Channels taken{axes, {}};
    taken.axes[axis] = size;
    const auto inner =
        std::accumulate(axes.begin() + static_cast<ptrdiff_t>(axis) + 1, axes.end(), int64_t{1}, std::multiplies<>());
    const int64_t outer = axes[axis] == 0 ? 0 : static_cast<int64_t>(list.size()) / (axes[axis] * inner);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < size; ++i) {
        const auto first = list.begin() + (o * axes[axis] + start + i * step) * inner;
        taken.list.insert(taken.list.end(), first, first + inner);
      }
    }
    return taken;
  }
};

// Follows the channels of a group's result back to its operands.
class Trace {
 public:
  // `enters`: the producer of a value where that belongs to the group, or null.
  Trace(const Node& root, std::function<const Node*(const Value*)> enters)
      : enters_(std::move(enters)), like_(&root.inputs.front()->shape()) {
    for (const Value* v : root.outputs) {
      if (v) like_ = &v->shape();
    }
    spatial_ = like_->rank() - 2;
  }

  // The channels of each output of the root; none where more than channels move.
  std::optional<std::vector<Channels>> of(const Node& root) {
    std::vector<Channels> all;
    if (root.op == "Split") {
      const auto whole = of_value(root.inputs.front());
      const auto ranges = slice_ranges(root);
      if (!whole || !ranges) return std::nullopt;
      for (size_t i = 0; i < root.outputs.size(); ++i) {
        const SliceRange& r = (*ranges)[i];
        if (r.axis != 1 || whole->axes.size() != 1) return std::nullopt;
        if (root.outputs[i]) all.push_back(whole->part(0, r.start, 1, r.size));
      }
      nodes_.push_back(&root);
    } else {
      auto only = of_node(root);
      if (!only || only->axes.size() != 1) return std::nullopt;
      all.push_back(std::move(*only));
    }
    for (const Channels& c : all) {
      if (c.list.empty() || c.list.size() > kMaxChannels) return std::nullopt;
    }
    return all;
  }

  // The group, in topological order.
  const std::vector<const Node*>& nodes() const { return nodes_; }

 private:
  // The axes between the first and the spatial ones, which are as the root's; each has elements.
  std::optional<std::vector<int64_t>> axes_of(const Value* value) const {
    if (!value || !value->type.is_tensor() || value->dtype() != DType::Float32 || !value->shape().has_rank()) {
      return std::nullopt;
    }
    const Shape& shape = value->shape();
    const int count = shape.rank() - 1 - spatial_;
    if (count < 1 || shape[0] != (*like_)[0]) return std::nullopt;
    for (int i = 0; i < spatial_; ++i) {
      if (shape[1 + count + i] != (*like_)[2 + i]) return std::nullopt;
    }
    std::vector<int64_t> axes;
    for (int i = 1; i <= count; ++i) {
      if (!shape[i].is_constant() || shape[i].value() == 0) return std::nullopt;
      axes.push_back(shape[i].value());
    }
    return axes;
  }

  std::optional<Channels> of_value(const Value* value) {
    if (!value) return std::nullopt;
    if (const Node* node = entered_ < kMaxNodes ? enters_(value) : nullptr) {
      ++entered_;
      const std::vector<const Node*> before = nodes_;
      if (auto channels = of_node(*node)) return channels;
      nodes_ = before;
    }
    const auto axes = axes_of(value);
    if (!axes || axes->size() != 1 || axes->front() > kMaxChannels || value->is_constant()) return std::nullopt;
    Channels own{*axes, {}};
    for (int64_t i = 0; i < axes->front(); ++i) own.list.push_back({value, i});
    return own;
  }

  // The channels of the only output.
  std::optional<Channels> of_node(const Node& node) {
    const auto axes = node.symbols.empty() ? axes_of(node.outputs.front()) : std::nullopt;
    if (!axes) return std::nullopt;
    auto found = node.op == "Concat"      ? of_concat(node)
                 : node.op == "Slice"     ? of_slice(node)
                 : node.op == "Transpose" ? of_transpose(node)
                                          : of_reshape(node, *axes);
    if (!found || found->axes != *axes) return std::nullopt;
    if (std::find(nodes_.begin(), nodes_.end(), &node) == nodes_.end()) nodes_.push_back(&node);
    return found;
  }

  std::optional<Channels> of_concat(const Node& node) {
    const int axis = normalized_axis(node, node.outputs.front()->shape().rank());
    std::vector<Channels> parts;
    size_t count = 0;
    for (const Value* v : node.inputs) {
      auto part = of_value(v);
      if (!part || axis < 1 || static_cast<size_t>(axis) > part->axes.size()) return std::nullopt;
      count += part->list.size();
      if (count > kMaxChannels) return std::nullopt;
      parts.push_back(std::move(*part));
    }
    const auto at = static_cast<size_t>(axis) - 1;
    Channels joined{parts.front().axes, {}};
    int64_t inner = 1, outer = 1;
    for (size_t i = 0; i < joined.axes.size(); ++i) (i < at ? outer : inner) *= i == at ? 1 : joined.axes[i];
    joined.axes[at] = 0;
    for (const Channels& part : parts) joined.axes[at] += part.axes[at];
    for (int64_t o = 0; o < outer; ++o) {
      for (const Channels& part : parts) {
        const auto first = part.list.begin() + o * part.axes[at] * inner;
        joined.list.insert(joined.list.end(), first, first + part.axes[at] * inner);
      }
    }
    return joined;
  }

  std::optional<Channels> of_slice(const Node& node) {
    auto channels = of_value(node.inputs.front());
    const auto ranges = slice_ranges(node);
    if (!channels || !ranges) return std::nullopt;
    for (const SliceRange& r : *ranges) {
      if (r.whole) continue;
      if (r.axis < 1 || static_cast<size_t>(r.axis) > channels->axes.size() || r.size < 0) return std::nullopt;
      channels = channels->part(static_cast<size_t>(r.axis) - 1, r.start, r.step, r.size);
    }
    return channels;
  }

  std::optional<Channels> of_transpose(const Node& node) {
    auto channels = of_value(node.inputs.front());
    if (!channels) return std::nullopt;
    const std::vector<int64_t> permutation = transpose_axes(node);
    const auto count = static_cast<int64_t>(channels->axes.size());
    Channels moved;
    for (int64_t i = 0; i < static_cast<int64_t>(permutation.size()); ++i) {
      const int64_t from = permutation[static_cast<size_t>(i)];
      const bool is_channel = i >= 1 && i <= count;
      if (is_channel ? from < 1 || from > count : from != i) return std::nullopt;
      if (is_channel) moved.axes.push_back(channels->axes[static_cast<size_t>(from) - 1]);
    }
    // Steps of the source along the axes of the result.
    std::vector<int64_t> steps(moved.axes.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i] = 1;
      for (auto j = static_cast<size_t>(permutation[i + 1]); j < channels->axes.size(); ++j)
        steps[i] *= channels->axes[j];
    }
    for (size_t element = 0; element < channels->list.size(); ++element) {
      auto rest = static_cast<int64_t>(element);
      int64_t at = 0;
      for (size_t i = steps.size(); i-- > 0; rest /= moved.axes[i]) at += rest % moved.axes[i] * steps[i];
      moved.list.push_back(channels->list[static_cast<size_t>(at)]);
    }
    return moved;
  }

  // Reshape and the like: with the same first and spatial axes, elements keep their order.
  std::optional<Channels> of_reshape(const Node& node, const std::vector<int64_t>& axes) {
    if (node.op != "Reshape" && node.op != "Unsqueeze" && node.op != "Squeeze") return std::nullopt;
    auto channels = of_value(node.inputs.front());
    const auto count = std::accumulate(axes.begin(), axes.end(), int64_t{1}, std::multiplies<>());
    if (!channels || count != static_cast<int64_t>(channels->list.size())) return std::nullopt;
    channels->axes = axes;
    return channels;
  }

  std::function<const Node*(const Value*)> enters_;
  const Shape* like_;
  int spatial_ = 0;
  int entered_ = 0;
  std::vector<const Node*> nodes_;
};

// The channels of a workload's outputs; none where it moves more.
std::optional<std::vector<Channels>> read_channels(const Workload& workload) {
  Trace trace(workload.root(), [&](const Value* value) {
    const Node* node = value->producer;
    return std::find(workload.nodes.begin(), workload.nodes.end(), node) != workload.nodes.end() ? node : nullptr;
  });
  return trace.of(workload.root());
}

// One vector of channels of an output: what it takes, source by source.
struct VectorPick {
  int output = 0;
  int64_t block = 0;
  struct Source {
    int argument = 0;
    int64_t block = 0;
    std::array<int32_t, kMaxChannelLanes> lane;
  };
  std::vector<Source> sources;
};

// `argument`: of a value among the run-time arguments.
template <class F>
std::vector<VectorPick> vector_picks(const std::vector<Channels>& outputs, int64_t lanes, F&& argument) {
  std::vector<VectorPick> picks;
  for (size_t output = 0; output < outputs.size(); ++output) {
    const std::vector<Channel>& list = outputs[output].list;
    for (int64_t c = 0; c < static_cast<int64_t>(list.size()); ++c) {
      if (c % lanes == 0) picks.push_back({static_cast<int>(output), c / lanes, {}});
      const Channel& from = list[static_cast<size_t>(c)];
      const int source = argument(from.value);
      const int64_t block = from.index / lanes;
      auto& sources = picks.back().sources;
      auto at = std::find_if(sources.begin(), sources.end(),
                             [&](const auto& s) { return s.argument == source && s.block == block; });
      if (at == sources.end()) {
        at = sources.insert(at, {source, block, {}});
        at->lane.fill(-1);
      }
      at->lane[static_cast<size_t>(c % lanes)] = static_cast<int32_t>(from.index % lanes);
    }
  }
  return picks;
}

struct ChannelsCall {
  int64_t images = 0, pixels = 0, parts = 0;  // of the pixels of an image
  int64_t batch[kMaxOperands], block[kMaxOperands];
  TaskSplit split;
};

class ChannelsStep final : public KernelStep {
 public:
  ChannelsStep(const Candidate& candidate, const Target& target)
      : kernel_(NEO_PICK_TIER(target.isa, pick_channels)), lanes_(target.lanes()), threads_(target.threads) {
    picks_ = vector_picks(*read_channels(*candidate.workload), lanes_,
                          [&](const Value* value) { return argument_of(candidate, value); });
    for (const auto& schema : candidate.inputs) inputs_ += schema.has_value();
  }

  Prepared prepare(std::span<const Arg> args) const override {
    NEO_ASSERT(args.size() <= kMaxOperands, "channels move between at most ", kMaxOperands, " operands");
    ChannelsCall call;
    for (size_t i = 0; i < args.size(); ++i) {
      const Dims physical = args[i].layout.physical_dims(args[i].dims);
      call.batch[i] = args[i].strides[0];
      call.block[i] = args[i].strides[1];
      call.images = physical[0];
      call.pixels = std::accumulate(physical.begin() + 2, physical.end() - 1, int64_t{1}, std::multiplies<>());
    }
    // A core reads again what it wrote of an image: the pixels are split as convolutions split them.
    call.parts = std::clamp<int64_t>(threads_, 1, std::max<int64_t>(1, call.pixels / kMinPixels));
    const int64_t vectors = call.images * call.pixels * static_cast<int64_t>(picks_.size());
    call.split.tasks = call.images * call.parts;
    call.split.serial = call.split.tasks <= 1 || 8 * lanes_ * vectors <= kSerialChannelBytes;
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const ChannelsCall*>(prepared);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        run_part(call, args, task / call.parts, even_part(call.pixels, call.parts, task % call.parts));
      }
    });
  }

  // Bytes that are written and read, of which the calling thread alone is faster.
  static constexpr int64_t kSerialChannelBytes = 65536;
  static constexpr int64_t kMinPixels = 16;

 private:
  void run_part(const ChannelsCall& call, std::byte* const* args, int64_t image, IndexRange pixels) const {
    const auto at = [&](size_t operand, int64_t block) {
      return reinterpret_cast<float*>(args[operand]) + image * call.batch[operand] + block * call.block[operand] +
             pixels.begin * lanes_;
    };
    ChannelPick sources[kMaxChannelLanes];
    for (const VectorPick& pick : picks_) {
      for (size_t i = 0; i < pick.sources.size(); ++i) {
        const VectorPick::Source& s = pick.sources[i];
        sources[i] = {at(static_cast<size_t>(s.argument), s.block), s.lane.data()};
      }
      kernel_(sources, static_cast<int64_t>(pick.sources.size()), pixels.size(),
              at(static_cast<size_t>(inputs_ + pick.output), pick.block));
    }
  }

  decltype(&scalar::pick_channels) kernel_;
  int64_t lanes_;
  int threads_;
  int inputs_ = 0;
  std::vector<VectorPick> picks_;
};

// Concatenations, slices, splits and shuffles of channels held in blocks whose edges they do not keep.
class ChannelsRoutine final : public RoutineOf<ChannelsRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/channels_nchwc"; }
  std::vector<std::string_view> roots() const override { return {"Concat", "Slice", "Split", "Reshape", "Transpose"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    for (const Value* v : root.outputs) {
      if (v && (!v->type.is_tensor() || !v->shape().has_rank() || v->shape().rank() < 3)) return {};
    }
    Trace trace(root, [&](const Value* value) {
      return read_only_by_one(value, users, graph) && value->producer && value->producer->outputs.size() == 1
                 ? value->producer
                 : nullptr;
    });
    if (!trace.of(root)) return {};
    const bool moves = std::any_of(trace.nodes().begin(), trace.nodes().end(), [](const Node* node) {
      return node->op == "Concat" || node->op == "Slice" || node->op == "Split" || node->op == "Transpose";
    });
    if (!moves) return {};
    return {Workload::of(trace.nodes())};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    if (target.lanes() > kMaxChannelLanes) return "the vectors are too long";
    const auto operands = static_cast<size_t>(std::count_if(workload.inputs.begin(), workload.inputs.end(),
                                                            [](const Value* v) { return !v->is_constant(); }));
    if (operands + workload.outputs.size() > kMaxOperands) return "too many operands";
    if (!read_channels(workload)) return "more than channels move";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const std::vector<Channels> outputs = *read_channels(workload);
    Candidate c;
    for (const Value* value : workload.inputs) {
      const bool is_read = std::any_of(outputs.begin(), outputs.end(), [&](const Channels& output) {
        return std::any_of(output.list.begin(), output.list.end(),
                           [&](const Channel& from) { return from.value == value; });
      });
      c.inputs.push_back(is_read ? std::optional(blocked(value, target)) : std::nullopt);
    }
    for (const Value* value : workload.outputs) c.outputs.push_back(blocked(value, target));
    price(c, workload, load_of(workload, outputs, target), target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<ChannelsStep>(candidate, target);
  }

 private:
  static Schema blocked(const Value* value, const Target& target) {
    Schema schema = plain_schema(value->type);
    schema.layout = Layout::channel_blocked(value->shape().rank(), target.lanes());
    return schema;
  }

  static StepLoad load_of(const Workload& workload, const std::vector<Channels>& outputs, const Target& target) {
    constexpr double kVectorCycles = 2, kPickCycles = 2;
    int ids = 0;
    std::map<const Value*, int> numbers;
    const auto picks = vector_picks(outputs, target.lanes(), [&](const Value* value) {
      const auto [at, is_new] = numbers.emplace(value, ids);
      ids += is_new;
      return at->second;
    });
    double cycles = 0;
    for (const VectorPick& pick : picks)
      cycles += kVectorCycles + kPickCycles * static_cast<double>(pick.sources.size());
    const Dims dims = workload.outputs.front()->shape().hint_dims();
    double pixels = 1;
    for (size_t i = 0; i < dims.size(); ++i) pixels *= i == 1 ? 1.0 : static_cast<double>(dims[i]);
    const double bytes = 8 * static_cast<double>(target.lanes()) * pixels * static_cast<double>(picks.size());
    return {StepFamily::Channels, cycles * pixels, static_cast<double>(picks.size()),
            bytes <= ChannelsStep::kSerialChannelBytes ? 1.0 : target.threads};
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(channels, ChannelsRoutine)

}  // namespace neo
