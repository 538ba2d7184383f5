#include <algorithm>

#include "base/check.h"
#include "ops/op.h"
#include "routines/cpu/gemm/typed_gemm.h"
#include "routines/cpu/recurrent/ragged_rows.h"
#include "routines/cpu/recurrent/recurrent64.h"
#include "routines/cpu/recurrent/recurrent_arguments.h"
#include "routines/cpu/recurrent/recurrent_step.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/patterns/epilogue.h"

NEO_DECLARE_TIERS(int64_t typed_gemm_columns(Lane lane);
                  void typed_gemm_tasks(const TypedGemmArgs& args, int64_t begin, int64_t end, void* workspace))
NEO_DECLARE_TIERS(void recurrent64_finish(const Cell64Args&))

namespace neo {
namespace {

// A matrix of the weights of one direction, transposed: panels of columns, [panel][depth][columns].
struct Matrix64 {
  int64_t depth = 0, width = 0;  // width: rows of the given matrix
  int64_t columns = 1;           // of a panel

  int64_t panels() const { return ceil_div(width, columns); }
  int64_t padded() const { return panels() * columns; }
  int64_t size() const { return padded() * depth; }

  void pack(const double* rows, double* to) const {
    for (int64_t panel = 0; panel < panels(); ++panel) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t row = panel * columns + c;
          *to++ = row < width ? rows[row * depth + k] : 0.0;
        }
      }
    }
  }
};

// How one run goes. Offsets in scratch memory are in doubles.
struct Recurrent64Call : RecurrentSizesOfRun {
  int64_t chunk = 1, chunks = 1;  // sequences of a task
  int64_t lengths = 0, ragged = 0, x = 0, from_x = 0, h = 0, cell = 0, reset = 0, products = 0, work = 0, weights = 0;
  int64_t scratch = 0;
};

// A layer of float64: the inputs' products of all steps, then each task the steps of some sequences of one direction,
// held by step as those of lengths of their own are.
class Recurrent64Step final : public KernelStep {
 public:
  Recurrent64Step(const Candidate& candidate, const Target& target, PackedStore& packed)
      : op_(candidate.workload->root().op),
        form_(*read_recurrent(candidate.workload->root(), nullptr)),
        arguments_(RecurrentArguments::of(candidate, form_, candidate.workload->root())),
        multiply_(NEO_PICK_TIER(target.isa, typed_gemm_tasks)),
        finish_(NEO_PICK_TIER(target.isa, recurrent64_finish)) {
    const int64_t columns = NEO_PICK_TIER(target.isa, typed_gemm_columns)(Lane::F64);
    const bool has_candidate = form_.kind == CellKind::GruGates;
    w_ = {form_.input, form_.gates * form_.hidden, columns};
    r_ = {form_.hidden, (has_candidate ? 2 : form_.gates) * form_.hidden, columns};
    if (has_candidate) candidate_ = {form_.hidden, form_.hidden, columns};
    const Value* given[] = {form_.w, form_.r, form_.b, form_.peepholes};
    if (form_.has_constant_weights) {
      weights_ = packed.floats(2 * weights_size(), {given[0], given[1], given[2], given[3]}, [&](float* to) {
        const auto of = [](const Value* v) { return v ? v->constant->as<double>() : nullptr; };
        pack(of(form_.w), of(form_.r), of(form_.b), of(form_.peepholes), reinterpret_cast<double*>(to));
      });
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto [steps, batch] = arguments_.sizes(args, form_, op_);
    const Recurrent64Call call = plan({steps, steps, batch, steps * batch, true});
    return Prepared::of(call, call.scratch * 8);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& whole = *reinterpret_cast<const Recurrent64Call*>(prepared);
    auto* memory = reinterpret_cast<double*>(scratch);
    auto* lengths = reinterpret_cast<int32_t*>(memory + whole.lengths);
    if (arguments_.lengths >= 0)
      bound_lengths(reinterpret_cast<const int32_t*>(args[arguments_.lengths]), whole.x_steps, whole.batch, lengths);
    else
      std::fill_n(lengths, whole.batch, static_cast<int32_t>(whole.x_steps));
    RecurrentSizesOfRun sizes = sizes_of_lengths(lengths, whole.x_steps, whole.batch);
    sizes.is_ragged = true;
    Recurrent64Call call = whole;
    static_cast<RecurrentSizesOfRun&>(call) = sizes;
    const RaggedRows rows = RaggedRows::at(reinterpret_cast<float*>(memory + call.ragged), call);
    rows.order_by_length(form_, call, lengths);
    if (arguments_.outputs[0] >= 0) clear_ends(form_, call, lengths, sizeof(double), args[arguments_.outputs[0]]);
    const double* weights = weights_of(call, args, memory);
    project(call, rows, args, weights, memory, team);
    const int64_t tasks = form_.directions * call.chunks;
    const auto run_tasks = [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) run_task(call, rows, args, weights, memory, task);
    };
    const int64_t operations = 2 * form_.directions * call.rows * form_.gates * form_.hidden * form_.hidden;
    TaskSplit::of(tasks, operations).serial ? run_tasks(0, tasks, 0) : team.parallel_for(tasks, run_tasks);
  }

 private:
  // Doubles of the parts of one direction's weights, in their order.
  int64_t bias_at() const { return w_.size() + r_.size() + candidate_.size(); }
  int64_t bias_size() const { return (form_.gates + 1) * form_.hidden; }  // then the candidate's own
  int64_t direction_size() const { return bias_at() + bias_size() + (form_.peepholes ? 3 * form_.hidden : 0); }
  int64_t weights_size() const { return form_.directions * direction_size(); }

  void pack(const double* w, const double* r, const double* b, const double* peepholes, double* to) const {
    const int64_t hidden = form_.hidden, rows = form_.gates * hidden;
    for (int64_t d = 0; d < form_.directions; ++d, to += direction_size()) {
      w_.pack(w + d * rows * form_.input, to);
      r_.pack(r + d * rows * hidden, to + w_.size());
      if (candidate_.depth > 0) candidate_.pack(r + (d * rows + 2 * hidden) * hidden, to + w_.size() + r_.size());
      double* bias = to + bias_at();
      const bool apart = form_.kind == CellKind::GruLinear;
      for (int64_t j = 0; j < rows; ++j) {
        const double of_w = b ? b[2 * d * rows + j] : 0.0, of_r = b ? b[(2 * d + 1) * rows + j] : 0.0;
        bias[j] = apart && j >= 2 * hidden ? of_w : of_w + of_r;
        if (j >= rows - hidden) bias[j + hidden] = of_r;
      }
      if (peepholes) std::copy_n(peepholes + d * 3 * hidden, 3 * hidden, bias + bias_size());
    }
  }

  Recurrent64Call plan(const RecurrentSizesOfRun& sizes) const {
    constexpr int64_t kRows = 4, kMaxTasks = 16;
    Recurrent64Call call;
    static_cast<RecurrentSizesOfRun&>(call) = sizes;
    call.chunk = std::max<int64_t>(kRows, ceil_div(ceil_div(call.batch, kMaxTasks), kRows) * kRows);
    call.chunks = ceil_div(call.batch, call.chunk);
    const auto take = [&](int64_t doubles) {
      const int64_t at = call.scratch;
      call.scratch += ceil_div(doubles, 8) * 8;
      return at;
    };
    const int64_t states = form_.directions * call.batch * form_.hidden;
    call.lengths = take(call.batch);
    call.ragged = take(ceil_div(RaggedRows::floats(call, form_.directions), 2));
    call.x = take(form_.directions * call.rows * form_.input);
    call.from_x = take(form_.directions * call.rows * w_.padded());
    call.h = take(states);
    call.cell = take(states);
    call.reset = take(states);
    const int64_t tasks = form_.directions * call.chunks;
    call.products = take(tasks * call.chunk * r_.padded());
    call.work = take(tasks * form_.gates * form_.hidden);
    if (!form_.has_constant_weights) call.weights = take(weights_size());
    return call;
  }

  const double* weights_of(const Recurrent64Call& call, std::byte* const* args, double* memory) const {
    if (form_.has_constant_weights) return reinterpret_cast<const double*>(weights_.as<float>());
    const auto of = [&](int i) { return i < 0 ? nullptr : reinterpret_cast<const double*>(args[i]); };
    const RecurrentArguments& a = arguments_;
    pack(of(a.w), of(a.r), of(a.b), of(a.peepholes), memory + call.weights);
    return memory + call.weights;
  }

  // Rows times a panel.
  void multiply(const Matrix64& matrix, const double* rows, int64_t row, int64_t count, const double* packed,
                int64_t panel, double* to, int64_t to_row) const {
    if (count == 0) return;
    TypedGemmArgs a;
    a.shape.m = count;
    a.shape.n = matrix.columns;
    a.shape.k = matrix.depth;
    a.a = rows;
    a.a_row = row;
    a.b = packed + panel * matrix.columns * matrix.depth;
    a.b_row = matrix.columns;
    a.c = to + panel * matrix.columns;
    a.c_row = to_row;
    multiply_(a, 0, ceil_div(count, kTypedGemmRows), nullptr);
  }

  void project(const Recurrent64Call& call, const RaggedRows& rows, std::byte* const* args, const double* weights,
               double* memory, Team& team) const {
    constexpr int64_t kRows = 64;  // of a task
    if (call.rows == 0) return;
    const int64_t parts = ceil_div(call.rows, kRows);
    const auto project_part = [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t d = i / parts, first = i % parts * kRows, last = std::min(first + kRows, call.rows);
        double* x = memory + call.x + d * call.rows * form_.input;
        rows.gather(form_, call, d, first, last, sizeof(double), args[arguments_.x], x);
        double* to = memory + call.from_x + (d * call.rows + first) * w_.padded();
        for (int64_t panel = 0; panel < w_.panels(); ++panel) {
          multiply(w_, x + first * form_.input, form_.input, last - first, weights + d * direction_size(), panel, to,
                   w_.padded());
        }
      }
    };
    const int64_t tasks = form_.directions * parts;
    const int64_t operations = 2 * form_.directions * call.rows * w_.width * form_.input;
    TaskSplit::of(tasks, operations).serial ? project_part(0, tasks, 0) : team.parallel_for(tasks, project_part);
  }

  int64_t state_row(const Recurrent64Call& call, int64_t direction, int64_t sequence) const {
    return (form_.batch_first ? sequence * form_.directions + direction : direction * call.batch + sequence) *
           form_.hidden;
  }

  // All steps of some sequences of one direction.
  void run_task(const Recurrent64Call& call, const RaggedRows& rows, std::byte* const* args, const double* weights,
                double* memory, int64_t task) const {
    const int64_t d = task / call.chunks, first = task % call.chunks * call.chunk, hidden = form_.hidden;
    const int64_t last = std::min(first + call.chunk, call.batch), states = d * call.batch * hidden;
    double *h = memory + call.h + states, *cell = memory + call.cell + states, *reset = memory + call.reset + states;
    const auto load = [&](int argument, double* to) {
      for (int64_t place = first; place < last; ++place) {
        if (argument < 0)
          std::fill_n(to + place * hidden, hidden, 0.0);
        else
          std::copy_n(reinterpret_cast<const double*>(args[argument]) + state_row(call, d, rows.order[place]), hidden,
                      to + place * hidden);
      }
    };
    load(arguments_.initial_h, h);
    load(arguments_.initial_c, cell);
    const double* own = weights + d * direction_size();
    double* products = memory + call.products + task * call.chunk * r_.padded();
    Cell64Args a;
    a.hidden = hidden;
    a.rules = &form_.rules[d];
    a.bias = own + bias_at();
    a.candidate_bias = a.bias + form_.gates * hidden;
    a.peepholes = form_.peepholes ? a.bias + bias_size() : nullptr;
    a.work = memory + call.work + task * form_.gates * hidden;
    const auto run_phase = [&](CellKind kind, const Matrix64& matrix, const double* from, const double* packed,
                               int64_t step, int64_t end) {
      for (int64_t panel = 0; panel < matrix.panels(); ++panel)
        multiply(matrix, from + first * hidden, hidden, end - first, packed, panel, products, matrix.padded());
      a.kind = kind;
      for (int64_t place = first; place < end; ++place) {
        a.x = memory + call.from_x + (d * call.rows + rows.starts[step] + place) * w_.padded();
        a.products = products + (place - first) * matrix.padded();
        a.h = h + place * hidden;
        a.cell = cell + place * hidden;
        a.reset = reset + place * hidden;
        finish_(a);
      }
    };
    for (int64_t step = 0; step < call.steps; ++step) {
      const int64_t end = std::min(last, rows.active(step));
      if (end <= first) break;
      run_phase(form_.kind, r_, h, own + w_.size(), step, end);
      if (form_.kind == CellKind::GruGates)
        run_phase(CellKind::GruCandidate, candidate_, reset, own + w_.size() + r_.size(), step, end);
      if (arguments_.outputs[0] < 0) continue;
      const int64_t* y_rows = rows.y_rows + d * call.rows + rows.starts[step];
      for (int64_t place = first; place < end; ++place)
        std::copy_n(h + place * hidden, hidden, reinterpret_cast<double*>(args[arguments_.outputs[0]]) + y_rows[place]);
    }
    const auto store = [&](int argument, const double* from) {
      for (int64_t place = first; place < last && argument >= 0; ++place)
        std::copy_n(from + place * hidden, hidden,
                    reinterpret_cast<double*>(args[argument]) + state_row(call, d, rows.order[place]));
    };
    store(arguments_.outputs[1], h);
    store(arguments_.outputs[2], cell);
  }

  std::string op_;
  RecurrentForm form_;
  RecurrentArguments arguments_;
  decltype(&scalar::typed_gemm_tasks) multiply_;
  decltype(&scalar::recurrent64_finish) finish_;
  Matrix64 w_, r_, candidate_;
  Tensor weights_;  // of each direction: W, R (GruGates: z and r, then h), biases, peepholes
};

}  // namespace

std::unique_ptr<Step> make_recurrent64_step(const Candidate& candidate, const Target& target, PackedStore& packed) {
  return std::make_unique<Recurrent64Step>(candidate, target, packed);
}

}  // namespace neo
