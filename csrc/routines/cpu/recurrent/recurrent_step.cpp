#include "routines/cpu/recurrent/recurrent_step.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "routines/cpu/tasks.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// After so many steps members that are slower may get fewer blocks.
constexpr int64_t kStepsOfOneShare = 4;

struct RecurrentCall {
  int64_t steps = 0;
  int64_t batch = 0;
  // Batch of one: the inputs of some steps are multiplied beside the recurrent products of the steps before. Where the
  // tiles are 0, `projection` multiplies those of all steps first.
  InputTiles tiles;
  GemmPlan projection;
  TaskSplit projection_split;
  CellSplit cells;
  // By Strassen's algorithm; no levels where it is not.
  StrassenPlan recurrent, candidate;
  int64_t strassen_rows = 0;    // floats from a block of x to the next, where a task copies its rows
  int64_t products = 0;         // floats of a group's products of h, beside which lies the workspace
  int64_t group_workspace = 0;  // floats of both
  // Strides of gates and states, floats.
  int64_t gates_row = 0, gates_block = 0, gates_gate = 0;
  int64_t state_row = 0, state_block = 0;
  int64_t state = 0;  // floats of one state of one direction
  // Offsets in scratch, floats.
  int64_t gates = 0, h = 0, cell = 0, reset = 0, workspace = 0, x = 0, groups = 0;
  int64_t x_size = 0;        // floats of one direction, where it is packed
  bool takes_input = false;  // every step multiplies its inputs itself
  bool two_h = true;         // h of the step before and of this one are held apart

  bool is_beside() const { return tiles.small > 0; }
};

ConvOperands unclamped() {
  ConvOperands a;
  a.lo = -std::numeric_limits<float>::infinity();
  a.hi = std::numeric_limits<float>::infinity();
  return a;
}

class RecurrentStep final : public KernelStep {
 public:
  RecurrentStep(const Candidate& candidate, const RecurrentForm& form, const RecurrentMethod& method,
                const RecurrentKernels& kernels, int threads, PackedStore& packed)
      : op_(candidate.workload->root().op),
        form_(form),
        method_(method),
        kernels_(kernels),
        threads_(threads),
        packing_(packing_of(form, method, kernels, threads)),
        packed_(pack_recurrent(candidate.workload->root(), form, packing_, kernels.tiles, kernels.pack, packed)) {
    packed_.recurrent.exponent_packed.prefetched = packed_.candidate.exponent_packed.prefetched = kernels.prefetched;
    x_ = argument_of(candidate, form.x);
    initial_h_ = argument_of(candidate, form.initial_h);
    initial_c_ = argument_of(candidate, form.initial_c);
    int next = static_cast<int>(
        std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
    const Node& node = candidate.workload->root();
    for (size_t i = 0; i < 3; ++i) outputs_[i] = node.output(i) ? next++ : -1;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(x_)];
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "a recurrent layer takes dense tensors");
    RecurrentCall call;
    call.steps = x.dims[form_.batch_first ? 1 : 0];
    call.batch = x.dims[form_.batch_first ? 0 : 1];
    const Dims state = form_.batch_first ? Dims{call.batch, form_.directions, form_.hidden}
                                         : Dims{form_.directions, call.batch, form_.hidden};
    for (int i : {initial_h_, initial_c_}) {
      if (i < 0) continue;
      const Dims& given = args[static_cast<size_t>(i)].dims;
      NEO_CHECK(given == state, Shape, op_, "an initial state must have dims ", to_string(state), ". Got ",
                to_string(given));
    }
    // Without steps the last state is the first one, and nothing is multiplied.
    const bool has_steps = call.steps > 0;
    if (has_steps) {
      call.cells = split_cells(form_, call.steps, call.batch, packed_.blocks);
      call.tiles = input_tiles(form_, method_, kernels_, call.steps, call.batch);
      call.takes_input = takes_input(form_, method_, kernels_, call.batch);
      plan_projection(call);
    }
    plan_cells(call);
    call.two_h = form_.kind != CellKind::GruGates;
    int64_t size = 0;
    const auto take = [&](int64_t floats) {
      const int64_t at = size;
      size += ceil_div(floats, 16) * 16;
      return at;
    };
    const int64_t rows = call.takes_input || !has_steps ? 0
                         : call.is_beside()             ? 2 * call.tiles.large
                                                        : rows_stride(call);
    call.gates = take(rows * form_.directions * packed_.width);
    call.h = take(form_.directions * call.state * (call.two_h ? 2 : 1));
    call.cell = take(form_.directions * call.state);
    if (form_.kind == CellKind::GruGates) call.reset = take(form_.directions * call.state);
    call.workspace = take(call.projection_split.scratch_bytes() / 4);
    if (by_strassen()) call.groups = take(form_.directions * packing_.groups * call.group_workspace);
    if (call.is_beside()) {
      call.x_size = (call.steps + call.tiles.large) * form_.input;
      call.x = take(form_.directions * call.x_size);
    }
    return Prepared::of(call, size * 4);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const RecurrentCall*>(prepared);
    auto* memory = reinterpret_cast<float*>(scratch);
    const bool has_steps = call.steps > 0;
    if (call.is_beside())
      pack_input(call, reinterpret_cast<const float*>(args[x_]), memory);
    else if (has_steps && !call.takes_input)
      project(call, reinterpret_cast<const float*>(args[x_]), memory, team);
    load_state(call, args, initial_h_, memory + call.h, call.two_h ? 2 : 1);
    if (form_.kind == CellKind::Lstm) load_state(call, args, initial_c_, memory + call.cell, 1);
    if (has_steps) by_strassen() ? run_products(call, args, memory, team) : run_steps(call, args, memory, team);
    const int64_t last = call.two_h ? call.steps % 2 * call.state : 0;
    store_state(call, args, outputs_[1], memory + call.h + last, call.two_h ? 2 : 1);
    store_state(call, args, outputs_[2], memory + call.cell, 1);
  }

 private:
  int phases() const { return form_.kind == CellKind::GruGates ? 2 : 1; }
  bool by_strassen() const { return packing_.recurrent.levels > 0; }

  // Of the gates that come from Strassen's algorithm: an odd number of vectors.
  int64_t rows_stride(const RecurrentCall& call) const {
    const int64_t rows = call.steps * call.batch;
    return packing_.projection.levels > 0 ? rows | 1 : rows;
  }

  void plan_projection(RecurrentCall& call) const {
    const int64_t rows = call.steps * call.batch, lanes = packed_.lanes;
    const int64_t operations = 2 * rows * form_.directions * packed_.width * form_.input;
    if (packing_.projection.levels > 0) {
      const StrassenPlan& plan = packing_.projection;
      call.strassen_rows = (std::min(strassen_run_pixels(plan), rows) | 1) * lanes;
      const int64_t workspace = plan.workspace_size + plan.input_blocks() * call.strassen_rows;
      call.projection_split = TaskSplit::of(strassen_tasks(plan, rows, threads_), operations, workspace * 4, threads_);
      call.gates_row = lanes;
      call.gates_gate = rows_stride(call) * lanes;
      call.gates_block = form_.gates * call.gates_gate;
      return;
    }
    call.projection = projection_plan(form_, rows, packing_.panel_vectors, kernels_.tiles);
    call.projection_split = TaskSplit::of(call.projection.tasks, operations, call.projection.workspace_size * 4);
    if (call.is_beside() || call.takes_input) call.projection_split.workspaces = 0;
    call.gates_row = form_.directions * packed_.width;
    call.gates_gate = lanes;
    call.gates_block = form_.gates * lanes;
  }

  void plan_cells(RecurrentCall& call) const {
    const int64_t lanes = packed_.lanes;
    call.state = call.batch * packed_.blocks * lanes;
    call.state_row = packed_.blocks * lanes;
    call.state_block = lanes;
    if (!by_strassen()) return;
    call.state_row = lanes;
    call.state_block = call.batch * lanes;
    const auto plan_of = [&](const StrassenPlan& packed, int64_t gates) {
      const int64_t units = form_.hidden / packing_.groups;
      return packed.levels == 0
                 ? StrassenPlan()
                 : plan_strassen(form_.hidden, gates * units, lanes, kernels_.strassen, packed.levels, call.batch);
    };
    const bool has_candidate = form_.kind == CellKind::GruGates;
    call.recurrent = plan_of(packing_.recurrent, has_candidate ? 2 : form_.gates);
    call.candidate = plan_of(packing_.candidate, 1);
    call.products = form_.gates * packed_.blocks / packing_.groups * call.state_block;
    call.group_workspace =
        ceil_div(call.products + std::max(call.recurrent.workspace_size, call.candidate.workspace_size), 16) * 16;
  }

  void run_steps(const RecurrentCall& call, std::byte* const* args, float* memory, Team& team) const {
    // A batch of one needs no meeting where each member has directions of its own.
    const bool by_step = call.cells.by_step && (call.batch != 1 || team.size() > form_.directions);
    const CellSplit split = by_step ? call.cells : call.cells.by_rows(call.batch);
    const int64_t tasks = form_.directions * split.chunks;
    // What a member does of a direction is read in one stream.
    const auto run_step = [&](int64_t phase, int64_t begin, int64_t end, int) {
      // Every other step goes backwards, through the weights that the one before left in the caches.
      const bool backwards = phase / phases() % 2 != 0;
      const int64_t first = begin / split.chunks, last = (end - 1) / split.chunks;
      for (int64_t i = first; i <= last; ++i) {
        const int64_t direction = backwards ? first + last - i : i, before = direction * split.chunks;
        run_blocks(call, args, memory, direction, phase, std::max<int64_t>(begin - before, 0) * split.chunk,
                   std::min(std::min(end - before, split.chunks) * split.chunk, packed_.blocks));
      }
    };
    const auto run_rows = [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % split.chunks * split.chunk, rows = std::min(first + split.chunk, call.batch);
        const int64_t direction = task / split.chunks;
        for (int64_t phase = 0; phase < call.steps * phases(); ++phase) {
          if (call.is_beside())
            run_blocks(call, args, memory, direction, phase, 0, packed_.blocks);
          else
            run_cells(cell_args(call, args, memory, direction, phase), direction, first, rows, 0, packed_.blocks);
        }
      }
    };
    if (!by_step && split.serial)
      run_rows(0, tasks, 0);
    else if (!by_step)
      team.parallel_for(tasks, run_rows);
    else if (split.serial)
      SerialTeam().parallel_phases(call.steps * phases(), tasks, run_step);
    else
      team.parallel_phases(call.steps * phases(), tasks, run_step, share_changes(call));
  }

  // Shares of blocks whose inputs are multiplied for the next chunk of steps stay to its end.
  ShareChanges share_changes(const RecurrentCall& call) const {
    if (call.is_beside()) return {call.tiles.small, call.tiles.large};
    return {kStepsOfOneShare * phases(), kStepsOfOneShare * phases()};
  }

  // Every step's product of all rows by Strassen's algorithm. A task is a group of blocks.
  void run_products(const RecurrentCall& call, std::byte* const* args, float* memory, Team& team) const {
    const int64_t tasks = form_.directions * packing_.groups, units = packed_.blocks / packing_.groups;
    const auto run_phase = [&](int64_t phase, int64_t begin, int64_t end, int) {
      const bool is_candidate = phase % phases() == 1;
      const StrassenPlan& plan = is_candidate ? call.candidate : call.recurrent;
      const Tensor& weights = (is_candidate ? packed_.candidate : packed_.recurrent).values;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % packing_.groups * units;
        const CellArgs cells = cell_args(call, args, memory, task / packing_.groups, phase);
        float* const products = memory + call.groups + task * call.group_workspace;
        ConvOperands a = unclamped();
        a.src = cells.h_in;
        a.src_channel = cells.state_block;
        a.weight = weights.as<float>() + task * strassen_weight_size(plan);
        a.dst = products;
        a.dst_channel = call.state_block;
        run_strassen(plan, kernels_.strassen, a, call.batch, products + call.products);
        kernels_.finish_products(cells, call.batch, first, first + units, products, call.state_block);
      }
    };
    if (call.cells.serial)
      SerialTeam().parallel_phases(call.steps * phases(), tasks, run_phase);
    else
      team.parallel_phases(call.steps * phases(), tasks, run_phase);
  }

  void project(const RecurrentCall& call, const float* x, float* memory, Team& team) const {
    GemmArgs g;
    g.a = x;
    g.a_row = form_.input;
    g.b = packed_.projection.as<float>();
    g.column_bias = packed_.bias.as<float>();
    g.c = memory + call.gates;
    g.c_row = form_.directions * packed_.width;
    g.lo = -std::numeric_limits<float>::infinity();
    g.hi = std::numeric_limits<float>::infinity();
    auto* scratch = reinterpret_cast<std::byte*>(memory + call.workspace);
    if (packing_.projection.levels > 0) {
      run_tasks_with<float>(team, call.projection_split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
        const int64_t rows = call.steps * call.batch;
        for (int64_t i = begin; i < end; ++i)
          project_rows(call, x, even_part(rows, call.projection_split.tasks, i), memory, workspace);
      });
      return;
    }
    run_tasks_with<float>(team, call.projection_split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_gemm(call.projection, kernels_.tiles, kernels_.pack, g, begin, end, workspace);
    });
  }

  // By Strassen's algorithm; rows are copied into blocks, as many as a run has.
  void project_rows(const RecurrentCall& call, const float* x, IndexRange rows, float* memory, float* workspace) const {
    const StrassenPlan& plan = packing_.projection;
    StrassenPixels line;
    line.src_block = packed_.lanes;
    line.step = form_.input;
    line.dst = workspace + plan.workspace_size;
    line.dst_block = call.strassen_rows;
    line.blocks = plan.input_blocks();
    ConvOperands a = unclamped();
    a.src = line.dst;
    a.src_channel = line.dst_block;
    a.weight = packed_.projection.as<float>();
    a.bias = packed_.bias.as<float>();
    a.dst_channel = call.gates_gate;
    const int64_t runs = strassen_runs(plan, rows.size());
    for (int64_t i = 0; i < runs; ++i) {
      const IndexRange run = strassen_run(plan, rows.size(), runs, i);
      line.src = x + (rows.begin + run.begin) * form_.input;
      line.count = run.size();
      kernels_.strassen.copy(line);
      a.dst = memory + call.gates + (rows.begin + run.begin) * packed_.lanes;
      run_strassen(plan, kernels_.strassen, a, run.size(), workspace);
    }
  }

  // One phase of a direction's blocks [begin, end).
  void run_blocks(const RecurrentCall& call, std::byte* const* args, float* memory, int64_t direction, int64_t phase,
                  int64_t begin, int64_t end) const {
    const CellArgs cells = cell_args(call, args, memory, direction, phase);
    if (!call.is_beside()) {
      run_cells(cells, direction, 0, call.batch, begin, end);
      return;
    }
    const int64_t step = phase;
    const InputChunk now = InputChunk::of_step(step, call.tiles, call.steps);
    if (step == 0) kernels_.input(form_.kind, input_args(call, memory, direction, now, 0, 1, end - begin), begin);
    if (now.is_last(call.steps)) {
      kernels_.cells(cells, 0, 1, begin, end);
    } else {
      const InputChunk next = InputChunk::at(now.index + 1, call.tiles, call.steps);
      kernels_.cells_beside(cells, input_args(call, memory, direction, next, step - now.first, now.steps, end - begin),
                            begin, end);
    }
  }

  void run_cells(const CellArgs& cells, int64_t direction, int64_t row_begin, int64_t row_end, int64_t block_begin,
                 int64_t block_end) const {
    if (method_.way != RecurrentWay::ExponentPacked)
      return kernels_.cells(cells, row_begin, row_end, block_begin, block_end);
    const PackedCells& weights = cells.kind == CellKind::GruCandidate ? packed_.candidate : packed_.recurrent;
    const int64_t width = weights.exponent_packed.width(), order = cells.backwards ? -1 : 1;
    alignas(64) float sums[kCellBlocksTogether * kMaxExponentPackedWidth];
    for (int64_t row = row_begin; row < row_end; ++row) {
      int64_t block = cells.backwards ? block_end - 1 : block_begin;
      for (int64_t left = block_end - block_begin; left > 0; left -= kCellBlocksTogether) {
        const int64_t count = std::min(left, kCellBlocksTogether);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t own = block + i * order;
          kernels_.start(cells, row, own, left - i > 1 ? own + order : own, sums + i * width);
          multiply_exponent_packed(weights.exponent_packed, kernels_.exponent_packed, weights.values.as<float>(),
                                   direction * packed_.blocks + own, cells.h_in + row * cells.state_row, 1,
                                   sums + i * width);
        }
        kernels_.finish(cells, row, block, order, count, sums);
        block += count * order;
      }
    }
  }

  void pack_input(const RecurrentCall& call, const float* x, float* memory) const {
    for (int64_t direction = 0; direction < form_.directions; ++direction) {
      const bool reverse = form_.reverse || direction == 1;
      for (int64_t first = 0; first < call.steps;) {
        const InputChunk chunk = InputChunk::of_step(first, call.tiles, call.steps);
        kernels_.pack_input(x + (reverse ? call.steps - 1 - first : first) * form_.input,
                            reverse ? -form_.input : form_.input, chunk.steps, form_.input, chunk.tile,
                            memory + call.x + direction * call.x_size + first * form_.input);
        first += chunk.steps;
      }
    }
  }

  // Part `part` of `parts` of the input's product of `blocks` blocks, for the steps of a chunk.
  InputArgs input_args(const RecurrentCall& call, float* memory, int64_t direction, const InputChunk& chunk,
                       int64_t part, int64_t parts, int64_t blocks) const {
    const int64_t count = blocks * kernels_.tile_groups(form_.kind, chunk.tile) * form_.input;
    InputArgs a;
    a.tile = chunk.tile;
    a.x = memory + call.x + direction * call.x_size + chunk.first * form_.input;
    a.input = form_.input;
    a.begin = count * part / parts;
    a.end = count * (part + 1) / parts;
    a.weights = packed_.projection.as<float>() + direction * packed_.width * form_.input;
    a.bias = packed_.bias.as<float>() + direction * packed_.width;
    a.out = memory + gates_of_chunk(call, direction, chunk);
    return a;
  }

  // Where the input's product for a chunk lies: [block][tile][gates][lanes].
  int64_t gates_of_chunk(const RecurrentCall& call, int64_t direction, const InputChunk& chunk) const {
    return call.gates + (chunk.index % 2 * form_.directions + direction) * call.tiles.large * packed_.width;
  }

  CellArgs cell_args(const RecurrentCall& call, std::byte* const* args, float* memory, int64_t direction,
                     int64_t phase) const {
    const int64_t step = phase / phases();
    const bool is_candidate = phase % phases() == 1;
    const bool reverse = form_.reverse || direction == 1;
    const int64_t at = reverse ? call.steps - 1 - step : step;
    const int64_t row_step = form_.batch_first ? call.steps : 1;
    CellArgs c;
    c.kind = is_candidate ? CellKind::GruCandidate : form_.kind;
    c.backwards = step % 2 != 0;
    c.hidden = form_.hidden;
    const Tensor& weights = (is_candidate ? packed_.candidate : packed_.recurrent).values;
    c.weights = weights.as<float>() + direction * (weights.size() / form_.directions);
    c.gates_x_gate = call.gates_gate;
    c.gates_x_block = call.gates_block;
    if (call.is_beside()) {
      const InputChunk chunk = InputChunk::of_step(step, call.tiles, call.steps);
      c.gates_x_block = chunk.tile * form_.gates * packed_.lanes;
      c.gates_x = memory + gates_of_chunk(call, direction, chunk) + (step - chunk.first) * form_.gates * packed_.lanes;
    } else if (call.takes_input) {
      c.x = reinterpret_cast<const float*>(args[x_]) + (form_.batch_first ? at : at * call.batch) * form_.input;
      c.x_row = row_step * form_.input;
      c.input = form_.input;
      c.input_weights = packed_.projection.as<float>() + direction * packed_.width * form_.input;
      c.bias = packed_.bias.as<float>() + direction * packed_.width;
    } else {
      c.gates_x = memory + call.gates + (form_.batch_first ? at : at * call.batch) * call.gates_row +
                  direction * packed_.blocks * call.gates_block;
      c.gates_x_row = row_step * call.gates_row;
    }
    c.candidate_bias = packed_.candidate_bias.as<float>() + direction * packed_.blocks * packed_.lanes;
    c.state_row = call.state_row;
    c.state_block = call.state_block;
    c.cell = memory + call.cell + direction * call.state;
    float* h = memory + call.h + direction * call.state * (call.two_h ? 2 : 1);
    c.h_in = h + (call.two_h ? step % 2 * call.state : 0);
    c.h_out = h + (call.two_h ? (step + 1) % 2 * call.state : 0);
    if (form_.kind == CellKind::GruGates) {
      float* reset = memory + call.reset + direction * call.state;
      if (is_candidate) {
        c.h_in = reset;
        c.h_last = h;
      } else {
        c.h_out = reset;
      }
    }
    if (outputs_[0] >= 0) {
      const int64_t vectors =
          form_.batch_first ? at * form_.directions + direction : (at * form_.directions + direction) * call.batch;
      c.y = reinterpret_cast<float*>(args[outputs_[0]]) + vectors * form_.hidden;
      c.y_row = (form_.batch_first ? call.steps * form_.directions : 1) * form_.hidden;
    }
    return c;
  }

  int64_t state_row_of(const RecurrentCall& call, int64_t direction, int64_t b) const {
    return (form_.batch_first ? b * form_.directions + direction : direction * call.batch + b) * form_.hidden;
  }

  // f(vector of the states' argument, its place, floats that exist)
  template <class F>
  void for_each_vector(const RecurrentCall& call, float* state, int64_t copies, F f) const {
    for (int64_t d = 0; d < form_.directions; ++d) {
      for (int64_t b = 0; b < call.batch; ++b) {
        for (int64_t unit = 0, block = 0; unit < form_.hidden; unit += packed_.lanes, ++block) {
          f(state_row_of(call, d, b) + unit,
            state + d * copies * call.state + b * call.state_row + block * call.state_block,
            std::min(packed_.lanes, form_.hidden - unit));
        }
      }
    }
  }

  void load_state(const RecurrentCall& call, std::byte* const* args, int argument, float* state, int64_t copies) const {
    for (int64_t d = 0; d < form_.directions; ++d) std::fill_n(state + d * copies * call.state, call.state, 0.0f);
    if (argument < 0) return;
    const auto* from = reinterpret_cast<const float*>(args[argument]);
    for_each_vector(call, state, copies,
                    [&](int64_t at, float* to, int64_t count) { std::copy_n(from + at, count, to); });
  }

  void store_state(const RecurrentCall& call, std::byte* const* args, int argument, float* state,
                   int64_t copies) const {
    if (argument < 0) return;
    auto* to = reinterpret_cast<float*>(args[argument]);
    for_each_vector(call, state, copies,
                    [&](int64_t at, const float* from, int64_t count) { std::copy_n(from, count, to + at); });
  }

  std::string op_;
  RecurrentForm form_;
  RecurrentMethod method_;
  RecurrentKernels kernels_;
  int threads_;
  RecurrentPacking packing_;
  PackedRecurrent packed_;
  int x_ = 0, initial_h_ = -1, initial_c_ = -1;
  int outputs_[3] = {-1, -1, -1};
};

}  // namespace

std::unique_ptr<Step> make_recurrent_step(const Candidate& candidate, const RecurrentMethod& method,
                                          const Target& target, PackedStore& packed) {
  return std::make_unique<RecurrentStep>(candidate, *read_recurrent(candidate.workload->root(), nullptr), method,
                                         RecurrentKernels::of(target), target.threads, packed);
}

}  // namespace neo
