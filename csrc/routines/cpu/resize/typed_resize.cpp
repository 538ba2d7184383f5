#include "routines/cpu/resize/typed_resize.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "ops/movement.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/made_step.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/cpu/resize/axes.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/resize_taps.h"

NEO_DECLARE_TIERS(void mix_tasks(const RowMix&, int64_t, int64_t);
                  void repeat_elements(const void*, void*, int64_t, int64_t, int64_t))

namespace neo {
namespace {

constexpr int kMaxResizeAxes = 8;
constexpr int64_t kMaxPairedRow = 1 << 15;   // elements of an input row that stays in a core's caches
constexpr int64_t kMaxTogether = 4;          // elements of a column that a table counts one by one
constexpr int64_t kMixedPart = 1 << 12;      // elements of a task
constexpr int64_t kMaxWorkspaces = 1 << 23;  // elements that all threads hold at once, about

// A table as it lies in the prepared bytes; offsets in bytes.
struct MixPlace {
  int64_t position = 0, weight = 0;
  int64_t start = -1;  // -1: none
};

// A pass over the tensor.
struct MixPass {
  RowMix mix;  // without addresses
  MixPlace row, column;
  TaskSplit split;
};

struct TypedResizeCall {
  int64_t count = 0;
  MixPass pass[kMaxResizeAxes];
  int64_t bytes = 0;         // of the result, where no axis changes
  int64_t buffer_bytes = 0;  // of one of two buffers, between which the passes alternate
};

bool is_nearest(const Node& node) {
  return node.string_attr("mode", "nearest") == "nearest";
}

bool is_cropped(const Node& node) {
  return node.string_attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
}

double extrapolation(const Node& node) {
  return node.float_attr("extrapolation_value", 0);
}

template <class T>
int64_t append_table(std::vector<std::byte>& bytes, const std::vector<T>& table) {
  const size_t at = round_up(static_cast<int64_t>(bytes.size()), static_cast<int64_t>(sizeof(T)));
  bytes.resize(at + table.size() * sizeof(T));
  if (!table.empty()) std::memcpy(bytes.data() + at, table.data(), table.size() * sizeof(T));
  return static_cast<int64_t>(at);
}

// Sums of weighted elements, one axis after the other; axes that lie side by side two by two.
class TypedResizeStep final : public KernelStep {
 public:
  TypedResizeStep(ResizedAxes axes, Lane lane, Isa isa)
      : axes_(std::move(axes)), lane_(lane), mix_(NEO_PICK_TIER(isa, mix_tasks)) {}

  Prepared prepare(std::span<const Arg> args) const override {
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "a resize takes dense tensors");
    TypedResizeCall call;
    call.bytes = element_count(args[1].layout.physical_dims(args[1].dims)) * lane_bytes(lane_);
    Prepared prepared = Prepared::of(call);
    Dims dims = args[0].layout.physical_dims(args[0].dims);
    const int64_t width = lane_ == Lane::F32 ? 4 : 8;
    int64_t workspaces = 0;
    const std::vector<AxisResize> axes = axes_.changed(args[0].dims, args[1].dims);
    for (size_t i = 0; i < axes.size(); ++call.count) {
      MixPass& pass = call.pass[call.count];
      RowMix& m = pass.mix;
      const int axis = axes[i].axis;
      m.from = call.count == 0 ? lane_ : computed();
      m.planes = count_between(dims, 0, axis);
      m.inner = count_between(dims, axis + 1, static_cast<int>(dims.size()));
      if (m.inner == 1) {
        m.columns = axes[i].input;
        pass.column = add_table(prepared.bytes, axes[i], m.column);
      } else {
        m.input_rows = axes[i].input;
        pass.row = add_table(prepared.bytes, axes[i], m.row);
      }
      dims[static_cast<size_t>(axis)] = axes[i++].output;
      if (m.inner > 1 && m.inner <= kMaxPairedRow && i < axes.size() && axes[i].axis == axis + 1) {
        m.columns = axes[i].input;
        m.inner /= m.columns;
        const int64_t together = m.inner <= kMaxTogether ? m.inner : 1;
        pass.column = add_table(prepared.bytes, axes[i], m.column, together);
        m.columns *= together;
        m.inner /= together;
        dims[static_cast<size_t>(axis) + 1] = axes[i++].output;
      }
      m.to = i == axes.size() ? lane_ : computed();
      const bool narrows = m.to != computed();
      if (i < axes.size()) call.buffer_bytes = std::max(call.buffer_bytes, element_count(dims) * width);
      int64_t workspace = 0;
      if (m.column.taps == 0) {
        m.column.outputs = m.columns;
        m.part = kMixedPart;
        if (narrows) workspace = kMixedPart;
      } else if (narrows || m.row.taps > 0 || m.from != computed()) {
        workspace = m.input_row() + m.output_row();
      }
      const int64_t flops =
          2 * (m.row.taps * m.input_row() + m.column.taps * m.output_row()) * m.planes * m.row.outputs;
      const int64_t most = kMaxWorkspaces / std::max<int64_t>(1, workspace);
      pass.split = TaskSplit::of(m.tasks(), flops, workspace * width,
                                 static_cast<int>(std::min<int64_t>(TaskSplit::kMaxWorkspaces, most)));
      workspaces = std::max(workspaces, pass.split.scratch_bytes());
    }
    call.buffer_bytes = round_up(call.buffer_bytes, int64_t{64});
    prepared.scratch_bytes = 2 * call.buffer_bytes + workspaces;
    std::memcpy(prepared.bytes.data(), &call, sizeof call);
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TypedResizeCall*>(prepared);
    if (call.count == 0) std::memcpy(args[1], args[0], static_cast<size_t>(call.bytes));
    const std::byte* src = args[0];
    for (int64_t i = 0; i < call.count; ++i) {
      const MixPass& pass = call.pass[i];
      std::byte* dst = i + 1 == call.count ? args[1] : scratch + i % 2 * call.buffer_bytes;
      RowMix m = pass.mix;
      m.src = src;
      m.dst = dst;
      set_table(m.row, prepared, pass.row);
      set_table(m.column, prepared, pass.column);
      run_tasks_with<std::byte>(team, pass.split, scratch + 2 * call.buffer_bytes,
                                [&](int64_t begin, int64_t end, std::byte* workspace) {
                                  RowMix mine = m;
                                  mine.workspace = workspace;
                                  mix_(mine, begin, end);
                                });
      src = dst;
    }
  }

 private:
  Lane computed() const { return lane_ == Lane::F32 ? Lane::F32 : Lane::F64; }

  // `together`: how many elements every position of the axis has, each of which the table counts as one.
  MixPlace add_table(std::vector<std::byte>& bytes, const AxisResize& a, MixTable& table, int64_t together = 1) const {
    const ResizeTaps taps = resize_taps(axes_.node(), a);
    table.taps = taps.taps;
    table.outputs = a.output * together;
    std::vector<int32_t> positions;
    std::vector<double> weights, start;
    bool has_start = false;
    for (size_t at = 0; at < taps.positions.size(); ++at) {
      const int64_t position = taps.positions[at];
      for (int64_t i = 0; i < together; ++i) {
        positions.push_back(static_cast<int32_t>(position < 0 ? 0 : position * together + i));
        weights.push_back(taps.weights[at]);
        if (std::ssize(start) < table.outputs) start.push_back(position < 0 ? extrapolation(axes_.node()) : 0);
      }
      has_start = has_start || position < 0;
    }
    MixPlace place;
    place.position = append_table(bytes, positions);
    place.weight = append_table(bytes, weights);
    if (has_start) place.start = append_table(bytes, start);
    return place;
  }

  static void set_table(MixTable& table, const std::byte* prepared, const MixPlace& place) {
    if (table.taps == 0) return;
    table.position = reinterpret_cast<const int32_t*>(prepared + place.position);
    table.weight = reinterpret_cast<const double*>(prepared + place.weight);
    if (place.start >= 0) table.start = reinterpret_cast<const double*>(prepared + place.start);
  }

  ResizedAxes axes_;
  Lane lane_;
  decltype(&scalar::mix_tasks) mix_;
};

struct NearestCall {
  int64_t rank = 0;
  int64_t width = 4;  // bytes of an element
  int64_t rows = 1, columns = 1;
  int64_t size[kMaxResizeAxes];            // of the output
  int64_t position[kMaxResizeAxes];        // bytes from the start to a table of offsets in elements
  int64_t repeats = 0;                     // every element of the last axis so often; 0: as its table says
  alignas(16) std::byte outside[16] = {};  // the element for what lies outside
  TaskSplit split;
};

constexpr int64_t kNearestRows = 8;
// An offset that leaves its sum with others negative.
constexpr int64_t kOutside = -(int64_t{1} << 58);

// The number of times that a table of offsets has every element, one after the other; 0: it does something else.
int64_t repeats_of(const std::vector<int64_t>& offsets, int64_t input) {
  const int64_t outputs = std::ssize(offsets), times = outputs / input;
  if (times == 0 || times * input != outputs) return 0;
  for (int64_t o = 0; o < outputs; ++o) {
    if (offsets[static_cast<size_t>(o)] != o / times) return 0;
  }
  return times;
}

// Elements as they are, of any dtype.
class NearestStep final : public KernelStep {
 public:
  NearestStep(ResizedAxes axes, Isa isa) : axes_(std::move(axes)), repeat_(NEO_PICK_TIER(isa, repeat_elements)) {}

  Prepared prepare(std::span<const Arg> args) const override {
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "a resize takes dense tensors");
    // The lanes of a block stay together.
    const int64_t lanes = args[0].layout.block_of(1);
    Dims input = args[0].layout.physical_dims(args[0].dims), output = args[1].layout.physical_dims(args[1].dims);
    input.resize(args[0].dims.size());
    output.resize(input.size());
    NearestCall call;
    call.rank = std::ssize(output);
    call.width = item_bytes(args[0].dtype) * lanes;
    const Dims strides = dense_strides(input);
    std::vector<std::vector<int64_t>> offsets(output.size());
    for (size_t axis = 0; axis < output.size(); ++axis) {
      call.size[axis] = output[axis];
      for (int64_t o = 0; o < output[axis]; ++o) offsets[axis].push_back(o * strides[axis]);
    }
    for (const AxisResize& a : axes_.changed(args[0].dims, args[1].dims)) {
      const auto at = static_cast<size_t>(a.axis);
      offsets[at] = resize_taps(axes_.node(), a).positions;
      for (int64_t& offset : offsets[at]) offset = offset < 0 ? kOutside : offset * strides[at];
    }
    call.repeats = repeats_of(offsets.back(), input.back());
    store_double(args[0].dtype, call.outside, extrapolation(axes_.node()));
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
      copy_rows(call, prepared, args[0], args[1], begin * kNearestRows, std::min(call.rows, end * kNearestRows));
    });
  }

 private:
  // Rows [begin, end), which lie in planes: each has an offset for every row of the last axis but one.
  void copy_rows(const NearestCall& call, const std::byte* prepared, const std::byte* src, std::byte* dst,
                 int64_t begin, int64_t end) const {
    const auto table = [&](int64_t axis) { return reinterpret_cast<const int64_t*>(prepared + call.position[axis]); };
    const int64_t zero = 0;
    const int64_t* lines = call.rank > 1 ? table(call.rank - 2) : &zero;
    const int64_t in_plane = call.rank > 1 ? call.size[call.rank - 2] : 1;
    const int64_t bytes = call.columns * call.width;
    int64_t before = -1;  // what no row gives
    for (int64_t row = begin; row < end;) {
      int64_t plane = row / in_plane, line = row % in_plane, base = 0;
      for (int64_t axis = call.rank - 3; axis >= 0; --axis) {
        base += table(axis)[plane % call.size[axis]];
        plane /= call.size[axis];
      }
      for (; line < in_plane && row < end; ++line, ++row) {
        const int64_t from = base + lines[line];
        std::byte* to = dst + row * bytes;
        if (from == before) {
          std::memcpy(to, to - bytes, static_cast<size_t>(bytes));
        } else if (from >= 0 && call.repeats == 1) {
          std::memcpy(to, src + from * call.width, static_cast<size_t>(bytes));
        } else if (from >= 0 && call.repeats > 1 && (call.width == 1 || call.width == 4)) {
          repeat_(src + from * call.width, to, call.width, call.columns / call.repeats, call.repeats);
        } else {
          const std::byte* elements = from < 0 ? nullptr : src + from * call.width;
          with_width(call.width, [&](auto width) { pick<width>(call, table(call.rank - 1), elements, to); });
        }
        before = from;
      }
    }
  }

  // The elements at some positions of a row; without a row what lies outside.
  template <int64_t width>
  static void pick(const NearestCall& call, const int64_t* column, const std::byte* row, std::byte* to) {
    for (int64_t o = 0; o < call.columns; ++o) {
      const std::byte* from = !row || column[o] < 0 ? call.outside : row + column[o] * width;
      std::memcpy(to + o * width, from, static_cast<size_t>(width));
    }
  }

  ResizedAxes axes_;
  decltype(&scalar::repeat_elements) repeat_;
};

std::unique_ptr<KernelStep> make_kernel_step(ResizedAxes axes, DType dtype, Isa isa) {
  if (is_nearest(axes.node())) return std::make_unique<NearestStep>(std::move(axes), isa);
  return std::make_unique<TypedResizeStep>(std::move(axes), *lane_of(dtype), isa);
}

// Resize by sizes, factors or regions that only a call tells.
class ResizeHostStep final : public NodeStep {
 public:
  ResizeHostStep(const Candidate& candidate, const OpRegistry& ops, Isa isa) : NodeStep(candidate, ops), isa_(isa) {}

 private:
  void compute(ReferenceContext& ctx, Team& team) const override {
    const Tensor& x = ctx.input(0);
    const std::vector<AxisResize> axes = resize_axes(ctx);
    Dims dims = x.dims();
    std::vector<int64_t> numbers;
    bool rows_only = x.dtype() == DType::Float32 && !is_nearest(node()) && !is_cropped(node());
    for (const AxisResize& a : axes) {
      dims[static_cast<size_t>(a.axis)] = a.output;
      for (const double number : {a.scale, a.begin, a.end}) numbers.push_back(std::bit_cast<int64_t>(number));
      rows_only = rows_only && (a.is_kept() || a.axis >= x.rank() - 2);
    }
    const Tensor& y = ctx.output(0, x.dtype(), dims);
    if (y.size() == 0) return;
    made_.run(std::move(numbers), x, y, team, [&]() -> std::unique_ptr<KernelStep> {
      const ResizedAxes given(node(), axes);
      return rows_only ? make_row_resize(given, x.rank(), isa_) : make_kernel_step(given, x.dtype(), isa_);
    });
  }

  Isa isa_;
  MadeStep made_;
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
    if (node.int_attr("antialias", 0) != 0 && is_nearest(node)) return "nearest neighbours are smoothed";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const Node& node = workload.root();
    const bool known = is_known(node);
    const auto bytes = static_cast<double>(workload.work(ops).bytes.hint());
    const auto time_us = [&](double cycles) { return 0.5 + unfitted_us({cycles_us(cycles, target), bytes}, target); };
    Candidate c = known ? Candidate::reading(workload, {node.inputs.front()}) : Candidate::plain(workload);
    if (!known) c.kind = Candidate::Kind::Host;
    c.cost.time_us = time_us(cycles_of(node, known, 1));
    std::vector<Candidate> all{c};
    if (known && keeps_blocks(node)) {
      const Layout layout = Layout::channel_blocked(c.outputs.front().layout.rank(), target.lanes());
      c.inputs[static_cast<size_t>(workload.input_index(node.inputs.front()))]->layout = layout;
      c.outputs.front().layout = layout;
      c.cost.time_us = time_us(cycles_of(node, known, target.lanes()));
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    if (!is_known(node)) return std::make_unique<ResizeHostStep>(candidate, ops, target.isa);
    return make_kernel_step(ResizedAxes(node), node.inputs.front()->dtype(), target.isa);
  }

 private:
  // Whether sizes, once bound, say how the axes are resized.
  static bool is_known(const Node& node) {
    if (!node.symbols.empty() || is_cropped(node)) return false;
    if (node.string_attr("keep_aspect_ratio_policy", "stretch") != "stretch") return false;
    return resizes_to_sizes(node) || (node.input(2) && node.input(2)->constant);
  }

  // Cycles at the hints: elements are copied one by one, or in blocks of `lanes` channels, or all taps of them added,
  // those of the last axis by looking them up.
  static double cycles_of(const Node& node, bool known, int64_t lanes) {
    constexpr double kRow = 60, kCopied = 1.5, kRepeated = 0.5, kAdded = 0.6, kLookedUp = 2, kLookedUpAgain = 4;
    const Dims to = node.outputs.front()->shape().hint_dims();
    Dims dims = node.inputs.front()->shape().hint_dims();
    const auto rows = static_cast<double>(count_between(to, 0, static_cast<int>(to.size()) - 1));
    const auto elements = static_cast<double>(element_count(to));
    const bool widens = to.back() % std::max<int64_t>(1, dims.back()) == 0;
    if (is_nearest(node)) return elements * (widens || lanes > 1 ? kRepeated : kCopied) + rows * kRow / 4;
    double cycles = elements + rows * kRow;
    if (!known) return cycles + elements * 4 * kLookedUp;
    for (const AxisResize& a : ResizedAxes(node).changed(dims, to)) {
      dims[static_cast<size_t>(a.axis)] = a.output;
      const bool is_last = lanes == 1 && count_between(dims, a.axis + 1, static_cast<int>(dims.size())) == 1;
      const int64_t taps = resize_taps(node, a).taps;
      const double each = !is_last ? kAdded : taps <= 4 ? kLookedUp : kLookedUpAgain;
      cycles += each * static_cast<double>(taps) * static_cast<double>(element_count(dims));
    }
    return cycles;
  }

  // Codes in blocks of channels are resized as they are where their channels stay.
  static bool keeps_blocks(const Node& node) {
    const Value* x = node.inputs.front();
    if (x->dtype() != DType::UInt8 && x->dtype() != DType::Int8) return false;
    return x->shape().rank() >= 3 && x->shape().rank() < kMaxResizeAxes && keeps_axis(node, 1);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_resize, TypedResizeRoutine)

}  // namespace neo
