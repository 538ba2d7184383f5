#include "routines/cpu/resize/typed_resize.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/movement.h"
#include "ops/resize.h"
#include "ops/sizes.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/resize_taps.h"

NEO_DECLARE_TIERS(void mix_tasks(const AxisMix&, int64_t, int64_t);
                  void convert_resized(const ConvertArgs&, int64_t, int64_t))

namespace neo {
namespace {

constexpr int kMaxResizeAxes = 8;

// One axis whose elements change, with its tables as they lie in the prepared bytes.
struct AxisPlan {
  AxisMix mix;           // without addresses
  int64_t position = 0;  // bytes from the start
  int64_t weight = 0;
};

struct TypedResizeCall {
  int64_t count = 0;  // axes that change, in the order of the sums
  AxisPlan axis[kMaxResizeAxes];
  int64_t input_elements = 0, output_elements = 0;
  int64_t buffer_bytes = 0;  // of one of two buffers, between which the axes alternate
};

bool is_nearest(const Node& node) {
  return node.string_attr("mode", "nearest") == "nearest";
}

// Facts about their node that the steps of both kinds know.
class ResizedAxes {
 public:
  explicit ResizedAxes(const Node& node) {
    attributes_.op = node.op;
    attributes_.name = node.name.empty() ? node.outputs.front()->name : node.name;
    attributes_.attrs = node.attrs;
    axes_ = all_or_listed_axes(node, node.inputs.front()->shape().rank());
    for (const int axis : axes_) factors_.push_back(resize_factor(node, axis));
  }

  // f(axis, taps of every output) for each axis that changes, in the order of the node's list.
  template <class F>
  void for_each(const Dims& input, const Dims& output, F&& f) const {
    for (size_t i = 0; i < axes_.size(); ++i) {
      const auto at = static_cast<size_t>(axes_[i]);
      AxisResize a;
      a.axis = axes_[i];
      a.input = input[at];
      a.output = output[at];
      NEO_CHECK(a.output == 0 || (a.input > 0 && a.input <= INT32_MAX), Shape, attributes_.op,
                "an empty axis cannot grow. Got a size of ", a.input, ", expected 1 to ", INT32_MAX, " - at ",
                attributes_.place());
      a.scale = factors_[i] ? *factors_[i] : static_cast<double>(a.output) / static_cast<double>(a.input);
      a.width = a.scale * static_cast<double>(a.input);
      if (a.input != a.output || a.scale != 1) f(a.axis, resize_taps(attributes_, a));
    }
  }

 private:
  Node attributes_;  // without inputs and outputs
  std::vector<int> axes_;
  std::vector<std::optional<double>> factors_;
};

template <class T>
int64_t append_table(std::vector<std::byte>& bytes, const std::vector<T>& table) {
  const size_t at = round_up(static_cast<int64_t>(bytes.size()), static_cast<int64_t>(sizeof(T)));
  bytes.resize(at + table.size() * sizeof(T));
  if (!table.empty()) std::memcpy(bytes.data() + at, table.data(), table.size() * sizeof(T));
  return static_cast<int64_t>(at);
}

// Sums of weighted elements, one axis after the other.
class TypedResizeStep final : public KernelStep {
 public:
  TypedResizeStep(const Node& node, Lane lane, decltype(&scalar::mix_tasks) mix,
                  decltype(&scalar::convert_resized) convert)
      : axes_(node), lane_(lane), mix_(mix), convert_(convert) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Dims& input = args[0].dims;
    const Dims& output = args[1].dims;
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "a resize takes dense tensors");
    TypedResizeCall call;
    call.input_elements = element_count(input);
    call.output_elements = element_count(output);
    Prepared prepared = Prepared::of(call);
    Dims dims = input;
    int64_t most = call.input_elements;
    axes_.for_each(input, output, [&](int axis, const std::vector<ResizeTaps>& taps) {
      AxisPlan& plan = call.axis[call.count++];
      AxisMix& m = plan.mix;
      m.outer = count_between(dims, 0, axis);
      m.input = dims[static_cast<size_t>(axis)];
      m.output = std::ssize(taps);
      m.inner = count_between(dims, axis + 1, static_cast<int>(dims.size()));
      m.wide = lane_ != Lane::F32;
      dims[static_cast<size_t>(axis)] = m.output;
      most = std::max(most, element_count(dims));
      for (const ResizeTaps& t : taps) m.taps = std::max(m.taps, static_cast<int64_t>(t.positions.size()));
      std::vector<int32_t> positions(static_cast<size_t>(m.taps * m.output));
      std::vector<double> weights(positions.size());
      for (int64_t o = 0; o < m.output; ++o) {
        const ResizeTaps& t = taps[static_cast<size_t>(o)];
        for (size_t k = 0; k < t.positions.size(); ++k) {
          const size_t at = k * static_cast<size_t>(m.output) + static_cast<size_t>(o);
          positions[at] = static_cast<int32_t>(t.positions[k]);
          weights[at] = t.weights[k];
        }
      }
      plan.position = append_table(prepared.bytes, positions);
      plan.weight = append_table(prepared.bytes, weights);
    });
    call.buffer_bytes = round_up(most * (lane_ == Lane::F32 ? 4 : 8), int64_t{64});
    prepared.scratch_bytes = 2 * call.buffer_bytes;
    std::memcpy(prepared.bytes.data(), &call, sizeof call);
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TypedResizeCall*>(prepared);
    const bool converts = lane_ != Lane::F32 && lane_ != Lane::F64;
    const void* src = args[0];
    if (call.count == 0) {
      std::memcpy(args[1], src, static_cast<size_t>(call.output_elements * lane_bytes(lane_)));
      return;
    }
    if (converts) src = convert({lane_, false, src, scratch + call.buffer_bytes}, call.input_elements, team);
    for (int64_t i = 0; i < call.count; ++i) {
      AxisMix m = call.axis[i].mix;
      m.position = reinterpret_cast<const int32_t*>(prepared + call.axis[i].position);
      m.weight = reinterpret_cast<const double*>(prepared + call.axis[i].weight);
      m.src = src;
      m.dst = i + 1 == call.count && !converts ? args[1] : scratch + i % 2 * call.buffer_bytes;
      const int64_t flops = 2 * m.taps * m.outer * m.output * m.inner;
      run_tasks(team, TaskSplit::of(m.tasks(), flops), [&](int64_t begin, int64_t end, int) { mix_(m, begin, end); });
      src = m.dst;
    }
    if (converts) convert({lane_, true, src, args[1]}, call.output_elements, team);
  }

 private:
  const void* convert(const ConvertArgs& args, int64_t elements, Team& team) const {
    constexpr int64_t kChunk = 4096;
    run_tasks(team, TaskSplit::of(ceil_div(elements, kChunk), 4 * elements), [&](int64_t begin, int64_t end, int) {
      convert_(args, begin * kChunk, std::min(elements, end * kChunk));
    });
    return args.dst;
  }

  ResizedAxes axes_;
  Lane lane_;
  decltype(&scalar::mix_tasks) mix_;
  decltype(&scalar::convert_resized) convert_;
};

struct NearestCall {
  int64_t rank = 0;
  int64_t width = 4;  // bytes of an element
  int64_t rows = 1, columns = 1;
  int64_t size[kMaxResizeAxes];      // of the output
  int64_t position[kMaxResizeAxes];  // bytes from the start to a table of offsets in elements
  bool whole_rows = true;            // the last axis stays as it is
  TaskSplit split;
};

constexpr int64_t kNearestRows = 8;

// Elements as they are, of any dtype.
class NearestStep final : public KernelStep {
 public:
  explicit NearestStep(const Node& node) : axes_(node) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Dims& input = args[0].dims;
    const Dims& output = args[1].dims;
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "a resize takes dense tensors");
    NearestCall call;
    call.rank = std::ssize(output);
    call.width = item_bytes(args[0].dtype);
    const Dims strides = dense_strides(input);
    std::vector<std::vector<int64_t>> offsets(output.size());
    for (size_t axis = 0; axis < output.size(); ++axis) {
      call.size[axis] = output[axis];
      for (int64_t o = 0; o < output[axis]; ++o) offsets[axis].push_back(o * strides[axis]);
    }
    axes_.for_each(input, output, [&](int axis, const std::vector<ResizeTaps>& taps) {
      const auto at = static_cast<size_t>(axis);
      for (size_t o = 0; o < taps.size(); ++o) offsets[at][o] = taps[o].positions.front() * strides[at];
      if (axis + 1 == static_cast<int>(output.size())) call.whole_rows = false;
    });
    Prepared prepared = Prepared::of(call);
    for (size_t axis = 0; axis < output.size(); ++axis) {
      call.position[axis] = append_table(prepared.bytes, offsets[axis]);
    }
    call.columns = output.back();
    call.rows = count_between(output, 0, static_cast<int>(output.size()) - 1);
    call.split = TaskSplit::of(ceil_div(call.rows, kNearestRows), call.rows * (8 + call.columns));
    std::memcpy(prepared.bytes.data(), &call, sizeof call);
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const NearestCall*>(prepared);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      with_width(call.width, [&](auto width) {
        copy_rows<width>(call, prepared, args[0], args[1], begin * kNearestRows,
                         std::min(call.rows, end * kNearestRows));
      });
    });
  }

 private:
  template <int64_t width>
  static void copy_rows(const NearestCall& call, const std::byte* prepared, const std::byte* src, std::byte* dst,
                        int64_t begin, int64_t end) {
    const auto table = [&](int64_t axis) { return reinterpret_cast<const int64_t*>(prepared + call.position[axis]); };
    const int64_t* column = table(call.rank - 1);
    const auto bytes = static_cast<size_t>(call.columns * width);
    int64_t before = -1;
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = 0, rest = row;
      for (int64_t axis = call.rank - 2; axis >= 0; --axis) {
        from += table(axis)[rest % call.size[axis]];
        rest /= call.size[axis];
      }
      std::byte* to = dst + row * call.columns * width;
      if (from == before) {
        std::memcpy(to, to - bytes, bytes);
      } else if (call.whole_rows) {
        std::memcpy(to, src + from * width, bytes);
      } else {
        const std::byte* elements = src + from * width;
        for (int64_t o = 0; o < call.columns; ++o)
          std::memcpy(to + o * width, elements + column[o] * width, static_cast<size_t>(width));
      }
      before = from;
    }
  }

  ResizedAxes axes_;
};

// Resize of any axes and dtype.
class TypedResizeRoutine final : public RoutineOf<TypedResizeRoutine> {
 public:
  std::string_view name() const override { return "cpu/resize"; }
  std::vector<std::string_view> roots() const override { return {"Resize"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* x = node.inputs.front();
    if (!x->type.is_tensor() || !x->shape().has_rank()) return "the rank of the input is not known";
    const int rank = x->shape().rank();
    if (rank == 0 || rank > kMaxResizeAxes) return "the rank is another";
    if (x->dtype() == DType::String) return "strings have owners of their own";
    const auto lane = lane_of(x->dtype());
    const bool mixes = lane && (*lane == Lane::F32 || *lane == Lane::F64 || *lane == Lane::I8 || *lane == Lane::U8 ||
                                *lane == Lane::I32 || *lane == Lane::I64);
    if (!is_nearest(node) && (!mixes || x->dtype() == DType::Bool)) {
      return "there is no kernel for its dtype";
    }
    if (!node.symbols.empty()) return "the size of the result is only known when it runs";
    if (!resizes_to_sizes(node) && (!node.input(2) || !node.input(2)->constant)) return "the factors are not known";
    if (node.string_attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
      return "a region is cropped";
    if (node.string_attr("keep_aspect_ratio_policy", "stretch") != "stretch") return "the aspect ratio is kept";
    if (node.int_attr("antialias", 0) != 0 && is_nearest(node)) return "nearest neighbours are smoothed";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    constexpr double kFlopCycles = 1.0 / 8;
    const Node& node = workload.root();
    Candidate c = Candidate::reading(workload, {node.inputs.front()});
    const Work work = workload.work(ops);
    const auto elements = static_cast<double>(workload.outputs.front()->shape().element_count().hint());
    const double arithmetic_us = cycles_us(elements + kFlopCycles * static_cast<double>(work.flops.hint()), target);
    c.cost.time_us = 0.5 + unfitted_us({arithmetic_us, static_cast<double>(work.bytes.hint())}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    if (is_nearest(node)) return std::make_unique<NearestStep>(node);
    return std::make_unique<TypedResizeStep>(node, *lane_of(node.inputs.front()->dtype()),
                                             NEO_PICK_TIER(target.isa, mix_tasks),
                                             NEO_PICK_TIER(target.isa, convert_resized));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_resize, TypedResizeRoutine)

}  // namespace neo
