#include "routines/cpu/signal/fourier.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/check.h"
#include "ops/movement.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"
#include "routines/patterns/reduced_axes.h"

NEO_DECLARE_TIERS(void fourier_tasks(const FourierArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

using FourierKernel = decltype(&scalar::fourier_tasks);

// Limit of a length that is a constant: tables are made once per binding of shapes.
constexpr int64_t kMaxFourierSize = int64_t{1} << 22;

void append_turn(std::vector<double>& table, int64_t numerator, int64_t denominator) {
  const double angle =
      -2 * std::numbers::pi * static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  table.insert(table.end(), {std::cos(angle), std::sin(angle)});
}

// The stages of a size whose prime factors are small; none of another.
std::optional<FourierStages> stages_of(int64_t size, std::vector<double>& table) {
  FourierStages s;
  s.size = size;
  int64_t n = size;
  for (const int64_t radix : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % radix == 0 && n > 1; n /= radix) {
      const int64_t m = n / radix;
      s.radix[s.count] = radix;
      s.twiddle[s.count] = std::ssize(table);
      for (int64_t p = 0; p < m; ++p) {
        for (int64_t u = 1; u < radix; ++u) append_turn(table, p * u, n);
      }
      s.roots[s.count++] = std::ssize(table);
      for (int64_t k = 0; k < radix; ++k) append_turn(table, k, radix);
    }
  }
  return n == 1 ? std::optional(s) : std::nullopt;
}

// Bluestein's algorithm (L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier
// transform", 1970): with 2 j k = j^2 + k^2 - (k - j)^2 a transform is a convolution with a chirp.
void plan_chirp(FourierArgs& args, std::vector<double>& table, FourierKernel kernel) {
  int64_t padded = 1;
  while (padded < 2 * args.size - 1) padded *= 2;
  table.clear();
  args.stages = *stages_of(padded, table);
  args.bluestein = true;
  args.chirp = std::ssize(table);
  for (int64_t k = 0; k < args.size; ++k) append_turn(table, k * k % (2 * args.size), 2 * args.size);
  FourierArgs chirp;
  chirp.stages = args.stages;
  chirp.stages.table = table.data();
  chirp.size = chirp.given = chirp.bins = padded;
  chirp.wide = true;
  chirp.lines = 1;
  chirp.from.step = chirp.to.step = 2;
  std::vector<double> signal(static_cast<size_t>(2 * padded)), spectrum(signal.size());
  for (int64_t k = 0; k < args.size; ++k) {
    const auto from = static_cast<size_t>(args.chirp + 2 * k);
    for (const int64_t to : {k, (padded - k) % padded}) {
      signal[static_cast<size_t>(2 * to)] = table[from];
      signal[static_cast<size_t>(2 * to) + 1] = -table[from + 1];
    }
  }
  std::vector<double> workspace(static_cast<size_t>(chirp.workspace_size()));
  chirp.src = signal.data();
  chirp.dst = spectrum.data();
  chirp.workspace = workspace.data();
  kernel(chirp, 0, 1);
  args.spectrum = std::ssize(table);
  table.insert(table.end(), spectrum.begin(), spectrum.end());
}

struct FourierCall {
  FourierArgs args;
  TaskSplit split;
};

class FourierStep final : public KernelStep {
 public:
  // `axis`: of DFT; -1: of STFT. `length`: of a transform; 0: the shapes tell. `window`: the argument, -1 where there
  // is none.
  FourierStep(const Node& node, int axis, int64_t length, int64_t frame_step, int window, FourierKernel kernel)
      : axis_(axis),
        length_(length),
        frame_step_(frame_step),
        window_(window),
        inverse_(node.int_attr("inverse", 0) != 0),
        onesided_(node.int_attr("onesided", axis < 0 ? 1 : 0) != 0),
        kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    FourierCall call;
    FourierArgs& f = call.args;
    f.wide = args[0].dtype == DType::Float64;
    const Dims& x = args[0].dims;
    const Dims& y = args.back().dims;
    axis_ < 0 ? plan_frames(args, f) : plan_axis(x, y, f);
    std::vector<double> table;
    if (const auto stages = stages_of(f.size, table)) {
      f.stages = *stages;
    } else {
      plan_chirp(f, table, kernel_);
    }
    const int64_t tasks = ceil_div(f.lines, int64_t{kFourierLines});
    constexpr int64_t kFlops = 40;  // for each number of all stages
    call.split = TaskSplit::of(tasks, tasks * kFlops * f.stages.size * kFourierLines,
                               f.workspace_size() * static_cast<int64_t>(sizeof(double)));
    Prepared prepared = Prepared::of(call, call.split.scratch_bytes());
    static_assert(sizeof(FourierCall) % sizeof(double) == 0);
    const size_t at = prepared.bytes.size();
    prepared.bytes.resize(at + table.size() * sizeof(double));
    if (!table.empty()) std::memcpy(prepared.bytes.data() + at, table.data(), table.size() * sizeof(double));
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const FourierCall*>(prepared);
    FourierArgs f = call.args;
    f.stages.table = reinterpret_cast<const double*>(prepared + sizeof(FourierCall));
    f.src = args[0];
    f.window = window_ < 0 ? nullptr : args[window_];
    f.dst = args[window_ < 0 ? 1 : 2];
    run_tasks_with<double>(team, call.split, scratch, [&](int64_t begin, int64_t end, double* workspace) {
      FourierArgs mine = f;
      mine.workspace = workspace;
      kernel_(mine, begin, end);
    });
  }

 private:
  void plan_axis(const Dims& x, const Dims& y, FourierArgs& f) const {
    const auto at = static_cast<size_t>(axis_);
    const int rank = static_cast<int>(x.size());
    f.inverse = inverse_;
    f.mirrors = inverse_ && onesided_;
    f.size = length_ > 0 ? length_ : f.mirrors ? 2 * (x[at] - 1) : x[at];
    f.given = std::min(x[at], f.mirrors ? f.size / 2 + 1 : f.size);
    f.bins = y[at];
    f.from.parts = x.back();
    f.to.parts = y.back();
    f.inner = count_between(x, axis_ + 1, rank - 1);
    f.lines = count_between(x, 0, axis_) * f.inner;
    f.from.inner = f.from.parts;
    f.to.inner = f.to.parts;
    f.from.step = f.inner * f.from.parts;
    f.to.step = f.inner * f.to.parts;
    f.from.outer = x[at] * f.from.step;
    f.to.outer = y[at] * f.to.step;
  }

  void plan_frames(std::span<const Arg> args, FourierArgs& f) const {
    const Dims& x = args[0].dims;
    const Dims& y = args.back().dims;
    f.size = f.given = length_ > 0 ? length_ : window_ >= 0 ? args[static_cast<size_t>(window_)].dims[0] : x[1];
    f.bins = y[2];
    f.from.parts = x.size() == 3 ? x[2] : 1;
    f.inner = y[1];
    f.lines = y[0] * y[1];
    f.from.outer = x[1] * f.from.parts;
    f.from.inner = frame_step_ * f.from.parts;
    f.from.step = f.from.parts;
    f.to.outer = y[1] * y[2] * 2;
    f.to.inner = y[2] * 2;
    f.to.step = 2;
  }

  int axis_;
  int64_t length_;
  int64_t frame_step_;
  int window_;
  bool inverse_;
  bool onesided_;
  FourierKernel kernel_;
};

std::optional<int64_t> known_number(const Value* v) {
  if (!v || !v->constant || v->constant->size() != 1) return std::nullopt;
  return load_ints(*v->constant).front();
}

class FourierRoutine final : public RoutineOf<FourierRoutine> {
 public:
  std::string_view name() const override { return "cpu/fourier"; }
  std::vector<std::string_view> roots() const override { return {"DFT", "STFT"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const bool is_dft = node.op == "DFT";
    const Value* x = node.inputs[0];
    if (!x->type.is_tensor() || !x->shape().has_rank() || !workload.outputs.front()->shape().has_rank()) {
      return "a rank is not known";
    }
    if (x->dtype() != DType::Float32 && x->dtype() != DType::Float64) return "there is no kernel for its dtype";
    if (makes_sizes(node)) return "the size of the result is only known when it runs";
    const Value* length = node.input(is_dft ? 1 : 3);
    if (length && !known_number(length)) return "the length is only known when it runs";
    const int rank = x->shape().rank();
    if (rank > 2 || is_dft) {
      if (!x->shape()[rank - 1].is_constant()) return "the numbers may be real or complex";
    }
    Dim size = length ? Dim(*known_number(length)) : x->shape()[is_dft ? axis_of(node) : 1];
    if (is_dft) {
      if (node.input(2) && !known_number(node.input(2))) return "the axis is only known when it runs";
      if (!length) size = x->shape()[axis_of(node)] * Dim(2);
    } else {
      if (!known_number(node.inputs[1])) return "the step is only known when it runs";
      const Value* window = node.input(2);
      if (window && window->dtype() != x->dtype()) return "the window has another dtype";
      if (window && !(window->shape().has_rank() && window->shape().rank() == 1)) return "a rank is not known";
      if (window && window->shape()[0].is(0)) return "the window is empty";
      if (window && !length) size = window->shape()[0];
    }
    if (size.is_constant() && size.value() > kMaxFourierSize) return "the transform is too long";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    constexpr double kNumberCycles = 12;
    const Node& node = workload.root();
    Candidate c = Candidate::reading(workload, {node.inputs[0], node.op == "STFT" ? node.input(2) : nullptr});
    const Value* y = workload.outputs.front();
    const auto numbers = static_cast<double>(y->shape().element_count().hint());
    const double bytes = 2 * numbers * static_cast<double>(item_bytes(y->dtype()));
    UnfittedLoad load{cycles_us(kNumberCycles * numbers, target), bytes};
    load.tasks = target.threads;
    c.cost.time_us = unfitted_us(load, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const bool is_dft = node.op == "DFT";
    const int window = !is_dft && node.input(2) ? argument_of(candidate, node.inputs[2]) : -1;
    return std::make_unique<FourierStep>(
        node, is_dft ? axis_of(node) : -1, known_number(node.input(is_dft ? 1 : 3)).value_or(0),
        is_dft ? 0 : *known_number(node.inputs[1]), window, NEO_PICK_TIER(target.isa, fourier_tasks));
  }

 private:
  static int axis_of(const Node& node) {
    return axis_from_front(node.input(2) ? *known_number(node.input(2)) : -2, node.inputs[0]->shape().rank());
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(fourier, FourierRoutine)

}  // namespace neo
