#include "routines/cpu/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/resize/axes.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"
#include "routines/patterns/resize_taps.h"

NEO_DECLARE_TIERS(void resize_tasks(const ResizeArgs&, int64_t, int64_t);
                  void resize_blocked_tasks(const ResizeArgs&, int64_t, int64_t))

namespace neo {
namespace {

using ResizeKernel = decltype(&scalar::resize_tasks);

// A table as it lies behind a call in the prepared bytes; offsets in bytes.
struct TablePlace {
  int64_t taps = 1;
  int64_t position = 0;
  int64_t weight = 0;
};

struct ResizeCall {
  int64_t planes = 1;
  int64_t input_rows = 1, input_columns = 1;
  int64_t rows = 1, columns = 1;
  int64_t channels = 1;
  TablePlace row, column;
  TaskSplit split;
};

TablePlace append(std::vector<std::byte>& bytes, const TapTable& table) {
  TablePlace place;
  place.taps = table.taps;
  const auto add = [&](const auto& list) {
    const size_t at = bytes.size();
    bytes.resize(at + list.size() * 4);
    if (!list.empty()) std::memcpy(bytes.data() + at, list.data(), list.size() * 4);
    return static_cast<int64_t>(at);
  };
  place.position = add(table.position);
  place.weight = add(table.weight);
  return place;
}

// How the input and the output lie.
enum class ResizeForm : uint8_t {
  Plain,
  Blocked,       // both in channel blocks
  ChannelsLast,  // the input in channel blocks, the channels of an output pixel side by side: a Transpose follows
};

// The first axes that stay as they are: those of a blocked tensor that its blocks are made of.
constexpr int kept_axes(ResizeForm form) {
  return form == ResizeForm::Plain ? 0 : 2;
}

class ResizeStep final : public KernelStep {
 public:
  ResizeStep(const ResizedAxes& axes, int rank, ResizeForm form, ResizeKernel kernel)
      : axes_(axes), rank_(rank), form_(form), kernel_(kernel) {}

  // The first of the axes that are resized: the last two, of which a blocked tensor of rank 3 has only one.
  static int first_axis(int rank, ResizeForm form) { return std::max(kept_axes(form), rank - 2); }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& src = args[0];
    const Arg& dst = args[1];
    NEO_ASSERT(src.is_dense() && dst.is_dense(), "a resize takes whole planes");
    const int64_t lanes = src.layout.block_of(1 < rank_ ? 1 : 0);
    const int first = first_axis(rank_, form_);
    const bool channels_last = form_ == ResizeForm::ChannelsLast;
    ResizeCall call;
    call.channels = channels_last ? src.dims[1] : lanes;
    for (int i = 0; i < first; ++i) {
      if (i != 1)
        call.planes *= src.dims[static_cast<size_t>(i)];
      else if (!channels_last)
        call.planes *= ceil_div(src.dims[1], lanes);
    }
    const size_t moved = channels_last ? 1 : 0;
    TapTable row = identity_table(1);
    if (first + 1 < rank_) {
      call.input_rows = src.dims[static_cast<size_t>(first)];
      call.rows = dst.dims[static_cast<size_t>(first) - moved];
      row = tap_table(axes_.node(), axes_.factor(first), call.input_rows, call.rows);
    }
    call.input_columns = src.dims.back();
    call.columns = dst.dims[static_cast<size_t>(rank_) - 1 - moved];
    const TapTable column = tap_table(axes_.node(), axes_.factor(rank_ - 1), call.input_columns, call.columns);
    const int64_t tasks = call.planes * call.rows;
    const int64_t task_lanes = ceil_div(call.channels, lanes) * lanes;
    call.split = TaskSplit::of(tasks, tasks * task_lanes * (row.taps * call.input_columns + column.taps * call.columns),
                               call.input_columns * lanes * 4);
    Prepared prepared = Prepared::of(call, call.split.scratch_bytes());
    call.row = append(prepared.bytes, row);
    call.column = append(prepared.bytes, column);
    std::memcpy(prepared.bytes.data(), &call, sizeof call);
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const ResizeCall*>(prepared);
    ResizeArgs r;
    r.planes = call.planes;
    r.input_rows = call.input_rows;
    r.input_columns = call.input_columns;
    r.rows = call.rows;
    r.columns = call.columns;
    r.channels = call.channels;
    r.row = table_at(prepared, call.row, call.rows);
    r.column = table_at(prepared, call.column, call.columns);
    r.src = reinterpret_cast<const float*>(args[0]);
    r.dst = reinterpret_cast<float*>(args[1]);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      ResizeArgs mine = r;
      mine.workspace = workspace;
      kernel_(mine, begin, end);
    });
  }

 private:
  static ResizeTable table_at(const std::byte* prepared, const TablePlace& place, int64_t outputs) {
    return {place.taps, outputs, reinterpret_cast<const int32_t*>(prepared + place.position),
            reinterpret_cast<const float*>(prepared + place.weight)};
  }

  ResizedAxes axes_;
  int rank_;
  ResizeForm form_;
  ResizeKernel kernel_;
};

// Resize of the last two axes.
class ResizeRoutine : public Routine {
 public:
  explicit ResizeRoutine(ResizeForm form) : form_(form) {}

  std::string_view name() const override {
    switch (form_) {
      case ResizeForm::Plain:
        return "cpu:float32/resize_nchw";
      case ResizeForm::Blocked:
        return "cpu:float32/resize_nchwc";
      case ResizeForm::ChannelsLast:
        break;
    }
    return "cpu:float32/resize_nchwc_to_nhwc";
  }
  std::vector<std::string_view> roots() const override {
    return {form_ == ResizeForm::ChannelsLast ? "Transpose" : "Resize"};
  }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    if (form_ != ResizeForm::ChannelsLast) return {Workload::of(root)};
    const Value* resized = root.inputs.front();
    if (!resized->producer || resized->producer->op != "Resize" || !read_only_by_one(resized, users, graph)) return {};
    return {Workload::of({resized->producer, &root})};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = *workload.nodes.front();
    if (auto reason = reject_resize(node, kept_axes(form_))) return reason;
    const int rank = node.inputs.front()->shape().rank();
    if (rank > (form_ == ResizeForm::Blocked ? 5 : 4) && form_ != ResizeForm::Plain) return "the rank is another";
    if (form_ == ResizeForm::ChannelsLast && !moves_channels_last(workload.root())) return "other axes move";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* input = workload.nodes.front()->inputs.front();
    const bool blocked = form_ != ResizeForm::Plain;
    Candidate c = Candidate::reading(workload, {input});
    if (blocked) {
      const Layout layout = Layout::channel_blocked(input->shape().rank(), target.lanes());
      c.inputs[static_cast<size_t>(workload.input_index(input))]->layout = layout;
      if (form_ == ResizeForm::Blocked) c.outputs.front().layout = layout;
    }
    price(c, workload, load_of(*workload.nodes.front(), target), target);
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry&,
                             PackedStore&) const override {
    return make_form(candidate, target, form_);
  }

 protected:
  static std::unique_ptr<Step> make_form(const Candidate& candidate, const Target& target, ResizeForm form) {
    const Node& node = *candidate.workload->nodes.front();
    return std::make_unique<ResizeStep>(ResizedAxes(node), node.inputs.front()->shape().rank(), form,
                                        form == ResizeForm::Plain ? NEO_PICK_TIER(target.isa, resize_tasks)
                                                                  : NEO_PICK_TIER(target.isa, resize_blocked_tasks));
  }

 private:
  // Vectors of the rows that are mixed and of those that are written, each as often as it has taps; elements are
  // gathered where the layout is plain.
  StepLoad load_of(const Node& node, const Target& target) const {
    const Shape& x = node.inputs.front()->shape();
    const Dims from = x.hint_dims(), to = node.outputs.front()->shape().hint_dims();
    const int rank = x.rank(), first = ResizeStep::first_axis(rank, form_);
    const auto taps = [&](int axis) {
      const auto at = static_cast<size_t>(axis);
      return static_cast<double>(tap_table(node, resize_factor(node, axis), from[at], to[at]).taps);
    };
    const bool is_plain = form_ == ResizeForm::Plain;
    const double lanes = target.lanes();
    double planes = 1;
    for (int i = 0; i < first; ++i) {
      const auto d = static_cast<double>(from[static_cast<size_t>(i)]);
      planes *= i == 1 && !is_plain ? std::ceil(d / lanes) : d;
    }
    const double rows = first + 1 < rank ? planes * static_cast<double>(to[static_cast<size_t>(first)]) : planes;
    const double row_taps = first + 1 < rank ? taps(first) : 1, column_taps = taps(rank - 1);
    const auto vectors = [&](int64_t d) {
      return is_plain ? std::ceil(static_cast<double>(d) / lanes) : static_cast<double>(d);
    };
    // A gather loads lane by lane.
    const double tap_cycles = is_plain ? lanes : 1.5;
    const double mixed = row_taps > 1 ? row_taps * vectors(from.back()) : 0;
    const double cycles = rows * (1.5 * mixed + vectors(to.back()) * (1 + tap_cycles * column_taps));
    const auto work = static_cast<int64_t>(
        rows * lanes * (row_taps * static_cast<double>(from.back()) + column_taps * static_cast<double>(to.back())));
    const bool is_serial = TaskSplit::of(2, is_plain ? work / target.lanes() : work).serial;
    return {is_plain ? StepFamily::PlainResize : StepFamily::Resize, cycles, rows, is_serial ? 1.0 : target.threads};
  }

  // N, C, H, W as N, H, W, C.
  static bool moves_channels_last(const Node& transpose) {
    const auto axes = transpose_axes(transpose);
    if (axes.front() != 0 || axes.back() != 1) return false;
    for (size_t i = 1; i + 1 < axes.size(); ++i) {
      if (axes[i] != static_cast<int64_t>(i) + 1) return false;
    }
    return true;
  }

  ResizeForm form_;
};

template <ResizeForm kForm>
class ResizeRoutineOf final : public ResizeRoutine {
 public:
  ResizeRoutineOf() : ResizeRoutine(kForm) {}
  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return make_form(candidate, target, kForm);
  }
};

}  // namespace

std::unique_ptr<KernelStep> make_row_resize(const ResizedAxes& axes, int rank, Isa isa) {
  return std::make_unique<ResizeStep>(axes, rank, ResizeForm::Plain, NEO_PICK_TIER(isa, resize_tasks));
}

NEO_DEFINE_ROUTINE(resize_nchwc, ResizeRoutineOf<ResizeForm::Blocked>)
NEO_DEFINE_ROUTINE(resize_nchwc_to_nhwc, ResizeRoutineOf<ResizeForm::ChannelsLast>)
NEO_DEFINE_ROUTINE(resize_nchw, ResizeRoutineOf<ResizeForm::Plain>)

}  // namespace neo
