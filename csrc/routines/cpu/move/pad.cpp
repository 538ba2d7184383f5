#include "ops/pad.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/budget.h"
#include "base/check.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/made_step.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

constexpr int kMaxPadAxes = 10;
constexpr int64_t kFewRows = 16;
constexpr int64_t kMaxPositions = int64_t{1} << 50;  // of an axis that anything can hold

enum class PadMode : uint8_t { Constant, Reflect, Edge, Wrap };

std::optional<PadMode> pad_mode(const Node& node) {
  const std::string mode = node.string_attr("mode", "constant");
  if (mode == "constant") return PadMode::Constant;
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Edge;
  if (mode == "wrap") return PadMode::Wrap;
  return std::nullopt;
}

// The pads before every axis, where all are known.
std::optional<std::vector<int64_t>> pads_begin(const Node& node) {
  const int rank = node.inputs.front()->shape().rank();
  const Value* pads = node.input(1);
  if (!pads || !pads->constant) return std::nullopt;
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (const Value* given = node.input(3)) {
    if (!given->constant) return std::nullopt;
    axes = load_ints(*given->constant);
  }
  const auto all = load_ints(*pads->constant);
  std::vector<int64_t> begin(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) begin[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = all[i];
  return begin;
}

// One axis of the result: `before` positions of a table, `middle` neighbours from `from` on, `after` positions of the
// table. A position of -1 is padded with the element, which a constant pad needs no table for.
struct PadAxis {
  int64_t input = 1;
  int64_t before = 0;
  int64_t middle = 1;
  int64_t after = 0;
  int64_t from = 0;
  int64_t table = -1;  // the first of its positions; -1: all are padded

  int64_t output() const { return before + middle + after; }
  bool is_whole() const { return before == 0 && after == 0 && from == 0 && middle == input; }
  int64_t at(const int64_t* tables, int64_t o) const {
    if (o >= before && o < before + middle) return from + o - before;
    return table < 0 ? -1 : tables[table + (o < before ? o : o - middle)];
  }
};

// The axis of rows where the last axis is the only one.
constexpr PadAxis kOneRow;

struct PadCall {
  int64_t run = 1;   // bytes that stay together: an element of the last axis
  int64_t axes = 0;  // up to the last that is padded
  int64_t rows = 0;
  TaskSplit split;
  PadAxis axis[kMaxPadAxes];
};

// The position that lies `at` elements behind the first of `count`.
int64_t padded_position(PadMode mode, int64_t at, int64_t count) {
  switch (mode) {
    case PadMode::Constant:
      break;
    case PadMode::Edge:
      return std::clamp<int64_t>(at, 0, count - 1);
    case PadMode::Wrap:
      return (at % count + count) % count;
    case PadMode::Reflect: {
      if (count == 1) return 0;
      const int64_t period = 2 * (count - 1);
      const int64_t inside = (at % period + period) % period;
      return std::min(inside, period - inside);
    }
  }
  return -1;
}

// Negative pads crop, before the others are filled from what remains.
PadAxis pad_axis(PadMode mode, int64_t input, int64_t output, int64_t begin, std::vector<int64_t>& tables) {
  const int64_t end = output - input - begin;
  const int64_t first = std::max<int64_t>(0, -begin);
  const int64_t count = std::max<int64_t>(0, input - first - std::max<int64_t>(0, -end));
  NEO_CHECK(mode == PadMode::Constant || count > 0 || output == 0, Shape, "Pad",
            "an empty axis can only be padded with a constant");
  PadAxis axis;
  axis.input = input;
  axis.before = std::min(output, std::max<int64_t>(0, begin));
  axis.middle = std::min(count, output - axis.before);
  axis.after = output - axis.before - axis.middle;
  axis.from = first;
  if (mode == PadMode::Constant) return axis;
  axis.table = static_cast<int64_t>(tables.size());
  require_memory(std::min<int64_t>(axis.before + axis.after, kMaxPositions) * static_cast<int64_t>(sizeof(int64_t)));
  const auto add = [&](int64_t at) { tables.push_back(first + padded_position(mode, at, count)); };
  for (int64_t o = 0; o < axis.before; ++o) add(o - axis.before);
  for (int64_t o = 0; o < axis.after; ++o) add(count + o);
  return axis;
}

class PadStep final : public KernelStep {
 public:
  PadStep(PadMode mode, std::vector<int64_t> begin, std::array<std::byte, 16> element)
      : mode_(mode), begin_(std::move(begin)), element_(element) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& in = args[0];
    const Arg& out = args[1];
    NEO_ASSERT(in.is_dense() && out.is_dense(), "whole tensors are padded");
    std::vector<int64_t> tables;
    PadCall call;
    // The lanes of a block stay together.
    call.run = item_bytes(in.dtype) * in.layout.block_of(1);
    const Dims from = in.layout.physical_dims(in.dims), to = out.layout.physical_dims(out.dims);
    for (size_t i = 0; i < in.dims.size(); ++i) {
      const PadAxis axis = pad_axis(mode_, from[i], to[i], begin_[i], tables);
      PadAxis* last = call.axes > 0 ? &call.axis[call.axes - 1] : nullptr;
      if (last && last->is_whole() && axis.is_whole()) {
        last->input = last->middle = last->input * axis.input;
      } else {
        call.axis[call.axes++] = axis;
      }
    }
    if (call.axes == 0) call.axis[call.axes++] = PadAxis();
    const auto rows = [&](int64_t axes) {
      int64_t count = 1;
      for (int64_t i = 0; i + 1 < axes; ++i) count *= call.axis[i].output();
      return count;
    };
    // A whole last axis is one run, unless few rows are left then for a team.
    if (call.axes > 1 && call.axis[call.axes - 1].is_whole() && rows(call.axes - 1) >= kFewRows) {
      call.run *= call.axis[--call.axes].input;
    }
    call.rows = rows(call.axes);
    const int64_t row_bytes = call.axis[call.axes - 1].output() * call.run;
    if (row_bytes == 0) call.rows = 0;
    call.split = TaskSplit::of(call.rows, call.rows * (row_bytes / 2 + 32));
    Prepared prepared = Prepared::of(call);
    const size_t at = prepared.bytes.size();
    prepared.bytes.resize(at + tables.size() * sizeof(int64_t));
    if (!tables.empty()) std::memcpy(prepared.bytes.data() + at, tables.data(), tables.size() * sizeof(int64_t));
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const PadCall*>(prepared);
    const auto* tables = reinterpret_cast<const int64_t*>(prepared + sizeof(PadCall));
    with_width(call.run, [&](auto width) {
      run_tasks(team, call.split,
                [&](int64_t begin, int64_t end, int) { pad_rows<width>(call, tables, begin, end, args[0], args[1]); });
    });
  }

 private:
  // Rows [begin, end). `width`: bytes of an element of the last axis; 0: as many as the call says.
  template <int64_t width>
  void pad_rows(const PadCall& call, const int64_t* tables, int64_t begin, int64_t end, const std::byte* src,
                std::byte* dst) const {
    const PadAxis& last = call.axis[call.axes - 1];
    const PadAxis& rows = call.axes > 1 ? call.axis[call.axes - 2] : kOneRow;
    const int64_t run = width > 0 ? width : call.run, row_bytes = last.output() * run;
    std::byte* to = dst + begin * row_bytes;
    while (begin < end) {
      const int64_t plane = begin / rows.output(), first = begin - plane * rows.output();
      const int64_t count = std::min(rows.output() - first, end - begin);
      const int64_t line = source_plane(call, tables, plane);
      begin += count;
      if (line < 0) {
        fill(to, count * row_bytes);
        to += count * row_bytes;
        continue;
      }
      for (int64_t r = first; r < first + count; ++r, to += row_bytes) {
        const int64_t at = rows.at(tables, r);
        if (at < 0) {
          fill(to, row_bytes);
        } else {
          pad_row<width>(last, run, last.table < 0 ? nullptr : tables + last.table,
                         src + (line * rows.input + at) * last.input * run, to);
        }
      }
    }
  }

  // The plane of the source that one of the result is made of, over all axes but the last two; -1: of none.
  static int64_t source_plane(const PadCall& call, const int64_t* tables, int64_t plane) {
    int64_t line = 0, stride = 1;
    for (int64_t i = call.axes - 3; i >= 0; --i) {
      const PadAxis& axis = call.axis[i];
      const int64_t at = axis.at(tables, plane % axis.output());
      if (at < 0) return -1;
      plane /= axis.output();
      line += at * stride;
      stride *= axis.input;
    }
    return line;
  }

  template <int64_t width>
  void pad_row(const PadAxis& last, int64_t run, const int64_t* table, const std::byte* from, std::byte* to) const {
    pick<width>(run, table, last.before, from, to);
    to += last.before * run;
    std::memcpy(to, from + last.from * run, static_cast<size_t>(last.middle * run));
    pick<width>(run, table ? table + last.before : nullptr, last.after, from, to + last.middle * run);
  }

  // The elements at some positions; without positions the padding.
  template <int64_t width>
  void pick(int64_t run, const int64_t* positions, int64_t count, const std::byte* from, std::byte* to) const {
    if (!positions) return fill_elements<width>(to, run, count);
    const int64_t bytes = width > 0 ? width : run;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * bytes, from + positions[i] * bytes, static_cast<size_t>(bytes));
    }
  }

  template <int64_t width>
  void fill_elements(std::byte* to, int64_t run, int64_t count) const {
    if (width == 0 || count * width >= 16) return fill(to, count * run);
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * width, element_.data(), static_cast<size_t>(width));
  }

  // Elements of 1, 2, 4, 8 or 16 bytes repeat every 16.
  void fill(std::byte* to, int64_t bytes) const {
    if (bytes < 16) {
      std::memcpy(to, element_.data(), static_cast<size_t>(bytes));
      return;
    }
    std::byte* const last = to + bytes - 16;
    for (; to < last; to += 16) std::memcpy(to, element_.data(), 16);
    std::memcpy(last, element_.data(), 16);
  }

  PadMode mode_;
  std::vector<int64_t> begin_;
  std::array<std::byte, 16> element_;
};

// An element of 1 to 16 bytes as often as 16 bytes have room for it; zeros where there is none.
std::array<std::byte, 16> repeated_element(const Tensor* element) {
  std::array<std::byte, 16> bytes = {};
  if (!element) return bytes;
  const auto width = static_cast<size_t>(item_bytes(element->dtype()));
  for (size_t at = 0; at < bytes.size(); at += width) std::memcpy(&bytes[at], element->data(), width);
  return bytes;
}

// Pads that only a call tells.
class PadHostStep final : public NodeStep {
 public:
  PadHostStep(const Candidate& candidate, const OpRegistry& ops) : NodeStep(candidate, ops) {}

 private:
  void compute(ReferenceContext& ctx, Team& team) const override {
    const Tensor& x = ctx.input(0);
    PadSizes sizes = pad_sizes(ctx);
    const Tensor& y = ctx.output(0, x.dtype(), sizes.output);
    if (y.size() == 0) return;
    const bool is_given = node().op == "Pad" && ctx.has_input(2) && ctx.input(2).size() > 0;
    const std::array<std::byte, 16> element = repeated_element(is_given ? &ctx.input(2) : nullptr);
    const auto halves = std::bit_cast<std::array<int64_t, 2>>(element);
    std::vector<int64_t> numbers = sizes.begin;
    numbers.insert(numbers.end(), halves.begin(), halves.end());
    made_.run(std::move(numbers), x, y, team,
              [&] { return std::make_unique<PadStep>(*pad_mode(node()), std::move(sizes.begin), element); });
  }

  MadeStep made_;
};

// Pad of every mode and CenterCropPad, any dtype of a fixed size.
class PadRoutine final : public RoutineOf<PadRoutine> {
 public:
  std::string_view name() const override { return "cpu/pad"; }
  std::vector<std::string_view> roots() const override { return {"Pad", "CenterCropPad"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : {node.inputs.front(), workload.outputs.front()}) {
      if (!v->type.is_tensor() || !v->shape().has_rank() || v->shape().rank() > kMaxPadAxes ||
          v->dtype() == DType::String || v->dtype() == DType::Undefined) {
        return "the input is not a tensor of known rank and fixed element size";
      }
    }
    if (!pad_mode(node)) return "the mode is not known";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* input = workload.root().inputs.front();
    const Value* output = workload.outputs.front();
    std::vector<Candidate> all;
    double rows = 1;
    const Dims dims = output->shape().hint_dims();
    for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= static_cast<double>(dims[i]);
    const bool known = is_known(workload.root());
    Candidate c = known ? Candidate::reading(workload, {input}) : Candidate::plain(workload);
    if (!known) c.kind = Candidate::Kind::Host;
    price(c, workload, {StepFamily::Pad, 0, rows}, target);
    all.push_back(c);
    if (known && keeps_blocks(workload.root())) {
      const Layout layout = Layout::channel_blocked(output->shape().rank(), target.lanes());
      c.inputs[static_cast<size_t>(workload.input_index(input))]->layout = layout;
      c.outputs.front().layout = layout;
      price(c, workload, {StepFamily::Pad, 0, rows / static_cast<double>(dims[1])}, target);
      all.push_back(c);
      if (fills_lanes(workload.root(), target.lanes())) {
        c.kind = Candidate::Kind::View;
        c.offsets = {Dim(0)};
        c.cost.time_us = 0;
        all.push_back(std::move(c));
      }
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    if (!is_known(node)) return std::make_unique<PadHostStep>(candidate, ops);
    const Value* element = node.input(2);
    return std::make_unique<PadStep>(*pad_mode(node), *pads_begin(node),
                                     repeated_element(element ? &*element->constant : nullptr));
  }

 private:
  // Whether sizes, once bound, say where every element goes, and the padding is a constant.
  static bool is_known(const Node& node) {
    if (node.op != "Pad" || makes_sizes(node) || !pads_begin(node)) return false;
    const Value* element = node.input(2);
    return !element || (element->constant && element->constant->size() == 1);
  }

  // Blocks of channels move as they are: none is cut, and what is added to them is zero as their padding is.
  static bool keeps_blocks(const Node& node) {
    const Value* x = node.inputs.front();
    const Value* y = node.outputs.front();
    const int rank = x->shape().rank();
    if (x->dtype() != DType::Float32 || rank < 3) return false;
    const Dim before = x->shape()[1], after = y->shape()[1];
    if (!before.is_constant() || !after.is_constant() || (*pads_begin(node))[1] != 0) return false;
    if (*pad_mode(node) != PadMode::Constant) return before == after;
    const Value* element = node.input(2);
    // No -0.0f: padding lanes hold 0.0f.
    const bool is_zero = !element || std::bit_cast<uint32_t>(*element->constant->as<float>()) == 0;
    return is_zero && before.value() <= after.value();
  }

  // Whether a node that keeps blocks adds only padding lanes of the last block, so that nothing moves.
  static bool fills_lanes(const Node& node, int64_t lanes) {
    const Shape& x = node.inputs.front()->shape();
    const Shape& y = node.outputs.front()->shape();
    for (int i = 2; i < x.rank(); ++i) {
      if (x[i] != y[i]) return false;
    }
    return x[0] == y[0] && ceil_div(x[1].value(), lanes) == ceil_div(y[1].value(), lanes);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(pad, PadRoutine)

}  // namespace neo
