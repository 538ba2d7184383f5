#include "routines/cpu/recurrent/recurrent_step.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "routines/cpu/recurrent/ragged_rows.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/turn.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// After so many steps members that are slower may get fewer blocks.
constexpr int64_t kStepsOfOneShare = 4;

ConvOperands unclamped() {
  ConvOperands a;
  a.lo = -std::numeric_limits<float>::infinity();
  a.hi = std::numeric_limits<float>::infinity();
  return a;
}

class RecurrentStep final : public KernelStep {
 public:
  RecurrentStep(std::string op, const RecurrentForm& form, const RecurrentArguments& arguments,
                const RecurrentMethod& method, const Target& target, PackedStore& packed)
      : op_(std::move(op)),
        design_(RecurrentDesign::of(form, method, target)),
        packed_(pack_recurrent(form_, design_.packing, kernels_.tiles, kernels_.pack_rows, packed)),
        constants_(packed_.weights()),
        arguments_(arguments) {
    packed_.recurrent.exponent_packed.prefetched = packed_.candidate.exponent_packed.prefetched = kernels_.prefetched;
    if (design_.has_codes()) {
      w_codes_ = CodesMatrix(form_, *form_.w, *form_.w_scale, form_.w_zero, form_.input, design_.codes, packed);
      r_codes_ = CodesMatrix(form_, *form_.r, *form_.r_scale, form_.r_zero, form_.hidden, design_.codes, packed);
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto [steps, batch] = arguments_.sizes(args, form_, op_);
    const RecurrentCall call = plan_call(design_, {steps, steps, batch, steps * batch, false});
    return Prepared::of(call, scratch_floats(design_, steps, batch) * 4);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& whole = *reinterpret_cast<const RecurrentCall*>(prepared);
    if (arguments_.lengths < 0) return run_call(whole, args, scratch, team);
    auto* lengths = reinterpret_cast<int32_t*>(scratch);
    bound_lengths(reinterpret_cast<const int32_t*>(args[arguments_.lengths]), whole.x_steps, whole.batch, lengths);
    const RecurrentSizesOfRun sizes = sizes_of_lengths(lengths, whole.x_steps, whole.batch);
    if (arguments_.outputs[0] >= 0) clear_ends(form_, sizes, lengths, sizeof(float), args[arguments_.outputs[0]]);
    const bool is_whole = sizes.rows == whole.rows;
    run_call(is_whole ? whole : plan_call(design_, sizes), args, scratch, team);
  }

 private:
  int phases() const { return form_.kind == CellKind::GruGates ? 2 : 1; }
  bool by_strassen() const { return design_.packing.recurrent.levels > 0; }

  void run_call(const RecurrentCall& call, std::byte* const* args, std::byte* scratch, Team& team) const {
    auto* memory = reinterpret_cast<float*>(scratch);
    const bool has_steps = call.steps > 0;
    if (call.steps % 2 != 0) turn_.next();
    if (has_steps) {
      if (!form_.has_constant_weights) pack_weights(call, args, memory, team);
      const auto* x = reinterpret_cast<const float*>(args[arguments_.x]);
      if (call.is_ragged) gather_rows(call, reinterpret_cast<const int32_t*>(scratch), x, memory, team);
      if (design_.has_codes())
        project_codes(call, x, memory, team);
      else if (call.is_beside())
        pack_input(call, x, memory);
      else if (!call.takes_input)
        project(call, x, memory, team);
    }
    load_state(call, args, arguments_.initial_h, memory + call.h, call.two_h ? 2 : 1, memory);
    if (form_.kind == CellKind::Lstm) load_state(call, args, arguments_.initial_c, memory + call.cell, 1, memory);
    if (has_steps) {
      design_.has_codes() ? run_codes(call, args, memory, team)
      : by_strassen()     ? run_products(call, args, memory, team)
                          : run_steps(call, args, memory, team);
    }
    store_state(call, args, arguments_.outputs[1], memory + call.h, call.two_h ? 2 : 1, memory);
    store_state(call, args, arguments_.outputs[2], memory + call.cell, 1, memory);
  }

  // Weights that are not constants.
  RecurrentWeights weights_of(const RecurrentCall& call, float* memory) const {
    if (form_.has_constant_weights) return constants_;
    return {memory + call.projection_weights, memory + call.bias,
            memory + call.recurrent_weights,  memory + call.candidate_weights,
            memory + call.candidate_bias,     form_.peepholes ? memory + call.peepholes : nullptr};
  }

  void pack_weights(const RecurrentCall& call, std::byte* const* args, float* memory, Team& team) const {
    constexpr int64_t kSerialFloats = 1 << 15;
    const auto at = [&](int i) { return i < 0 ? nullptr : reinterpret_cast<const float*>(args[i]); };
    const RecurrentWeights to = weights_of(call, memory);
    const RecurrentPacker packer = design_.packer();
    const GemmPlan plan = projection_plan(form_, 1, design_.packing, kernels_.tiles);
    const int64_t panels = design_.packing.parts * plan.panels, blocks = form_.directions * packer.blocks();
    const auto pack = [&](int64_t begin, int64_t end, int) {
      packer.pack_projection(plan, design_.packing.parts, at(arguments_.w), std::min(begin, panels),
                             std::min(end, panels), to.projection);
      const int64_t first = std::max<int64_t>(begin - panels, 0), last = std::max<int64_t>(end - panels, 0);
      packer.pack_gates(at(arguments_.r), 0, packer.recurrent_gates(), first, last, to.recurrent);
      if (packer.has_candidate()) packer.pack_gates(at(arguments_.r), 2, 1, first, last, to.candidate);
    };
    if (packer.gates_size(form_.gates) + packer.bias_size() * form_.input < kSerialFloats)
      pack(0, panels + blocks, 0);
    else
      team.parallel_for(panels + blocks, pack);
    packer.pack_bias(at(arguments_.b), to.bias);
    packer.pack_candidate_bias(at(arguments_.b), to.candidate_bias);
    if (to.peepholes) packer.pack_peepholes(at(arguments_.peepholes), to.peepholes);
  }

  // Orders the rows of sequences of lengths of their own, and copies them.
  void gather_rows(const RecurrentCall& call, const int32_t* lengths, const float* x, float* memory, Team& team) const {
    constexpr int64_t kSerialFloats = 1 << 15;
    const RaggedRows rows = RaggedRows::at(memory + call.ragged, call);
    rows.order_by_length(form_, call, lengths);
    const auto gather = [&](int64_t begin, int64_t end, int) {
      for (int64_t d = 0; d < form_.directions; ++d)
        rows.gather(form_, call, d, begin, end, sizeof(float), x, memory + call.x + d * call.x_size);
    };
    if (call.x_size < kSerialFloats)
      gather(0, call.rows, 0);
    else
      team.parallel_for(call.rows, gather);
  }

  void run_steps(const RecurrentCall& call, std::byte* const* args, float* memory, Team& team) const {
    // A batch of one needs no meeting where each member has directions of its own.
    const bool by_step = call.cells.by_step && (call.batch != 1 || team.size() > form_.directions);
    const CellSplit split = by_step ? call.cells : call.cells.by_rows(call.batch);
    const int64_t tasks = form_.directions * split.chunks;
    // A member reads its share of a direction in one stream.
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
          const int64_t active = rows_of(call, memory, phase);
          if (active <= first) break;
          if (call.is_beside())
            run_blocks(call, args, memory, direction, phase, 0, packed_.blocks);
          else
            run_cells(cell_args(call, args, memory, direction, phase), direction, first, std::min(rows, active), 0,
                      packed_.blocks);
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
    const int64_t tasks = form_.directions * design_.packing.groups, units = packed_.blocks / design_.packing.groups;
    const auto run_phase = [&](int64_t phase, int64_t begin, int64_t end, int) {
      const bool is_candidate = phase % phases() == 1;
      const StrassenPlan& plan = is_candidate ? call.candidate : call.recurrent;
      const Tensor& weights = (is_candidate ? packed_.candidate : packed_.recurrent).values;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % design_.packing.groups * units;
        const CellArgs cells = cell_args(call, args, memory, task / design_.packing.groups, phase);
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

  // The inputs' products of 8-bit codes, over the range of all of X.
  void project_codes(const RecurrentCall& call, const float* x, float* memory, Team& team) const {
    float range[2] = {};
    design_.codes.range(x, form_.input, call.x_steps * call.batch, form_.input, range);
    const int64_t orders = call.is_ragged ? form_.directions : 1;
    RowCodes codes[2];
    for (int64_t i = 0; i < orders; ++i) {
      codes[i].set_range(range);
      codes[i].place(design_.codes, call.rows, form_.input, w_codes_.has_zeros(),
                     memory + call.x_codes + i * RowCodes::floats(design_.codes, call.rows, form_.input));
      const float* from = call.is_ragged ? memory + call.x + i * call.x_size : x;
      const auto fill = [&](int64_t begin, int64_t end, int) {
        codes[i].fill(design_.codes, from, form_.input, begin, end, form_.input);
      };
      call.projection_split.serial ? fill(0, call.rows, 0) : team.parallel_for(call.rows, fill);
    }
    run_tasks(team, call.projection_split, [&](int64_t begin, int64_t end, int) {
      for (int64_t part = begin; part < end; ++part) {
        w_codes_.multiply(design_.codes, codes[call.is_ragged ? part / packed_.blocks : 0], part, 0, call.rows,
                          constants_.bias + part * form_.gates * packed_.lanes,
                          memory + call.gates + part * call.gates_block, call.gates_gate);
      }
    });
  }

  // Every step's product of all rows as codes over their range. A member makes the codes that its tasks need by itself.
  void run_codes(const RecurrentCall& call, std::byte* const* args, float* memory, Team& team) const {
    const int64_t tasks = form_.directions * call.cells.chunks;
    const auto codes_of = [&](const CellArgs& cells, int64_t rows, int64_t task) {
      float range[2] = {};
      design_.codes.range(cells.h_in, cells.state_row, call.batch, form_.hidden, range);
      RowCodes codes;
      codes.set_range(range);
      codes.place(design_.codes, call.batch, form_.hidden, r_codes_.has_zeros(),
                  memory + call.h_codes + task * call.h_codes_size);
      codes.fill(design_.codes, cells.h_in, cells.state_row, 0, rows, form_.hidden);
      return codes;
    };
    const auto run_task = [&](const CellArgs& cells, const RowCodes& codes, int64_t rows, int64_t task) {
      const int64_t direction = task / call.cells.chunks;
      float* const products = memory + call.products + task * call.group_workspace;
      const int64_t first = task % call.cells.chunks * call.cells.chunk;
      const int64_t last = std::min(first + call.cells.chunk, packed_.blocks), gate = rows * packed_.lanes;
      for (int64_t i = first; i < last; ++i) {
        const int64_t block = cells.backwards ? first + last - 1 - i : i;
        r_codes_.multiply(design_.codes, codes, direction * packed_.blocks + block, 0, rows, nullptr,
                          products + (block - first) * form_.gates * gate, gate);
      }
      kernels_.finish_products(cells, rows, first, last, products, gate);
      // States that are final count in the ranges to come.
      for (int64_t row = rows; row < call.batch; ++row) {
        const int64_t at = row * call.state_row + first * packed_.lanes;
        std::copy_n(cells.h_in + at, (last - first) * packed_.lanes, cells.h_out + at);
      }
    };
    const auto run_phase = [&](int64_t step, int64_t begin, int64_t end, int) {
      const int64_t rows = rows_of(call, memory, step);
      for (int64_t task = begin; task < end;) {
        const int64_t direction = task / call.cells.chunks;
        const CellArgs cells = cell_args(call, args, memory, direction, step);
        const RowCodes codes = codes_of(cells, rows, task);
        for (; task < end && task / call.cells.chunks == direction; ++task) run_task(cells, codes, rows, task);
      }
    };
    const auto run_all = [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        for (int64_t step = 0; step < call.steps; ++step) run_phase(step, task, task + 1, 0);
      }
    };
    if (call.cells.chunks == 1)
      call.cells.serial ? run_all(0, tasks, 0) : team.parallel_for(tasks, run_all);
    else if (call.cells.serial)
      SerialTeam().parallel_phases(call.steps, tasks, run_phase);
    else
      team.parallel_phases(call.steps, tasks, run_phase);
  }

  // Sequences of which a step has rows.
  int64_t rows_of(const RecurrentCall& call, float* memory, int64_t phase) const {
    return call.is_ragged ? RaggedRows::at(memory + call.ragged, call).active(phase / phases()) : call.batch;
  }

  void project(const RecurrentCall& call, const float* x, float* memory, Team& team) const {
    const RecurrentWeights weights = weights_of(call, memory);
    auto* scratch = reinterpret_cast<std::byte*>(memory + call.workspace);
    if (design_.packing.projection.levels > 0) {
      run_tasks_with<float>(team, call.projection_split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
        for (int64_t i = begin; i < end; ++i)
          project_rows(call, x, even_part(call.rows, call.projection_split.tasks, i), memory, workspace);
      });
      return;
    }
    const int64_t parts = design_.packing.parts, columns = form_.directions / parts * packed_.width;
    for (int64_t part = 0; part < parts; ++part) {
      GemmArgs g;
      g.a = call.is_ragged ? memory + call.x + part * call.x_size : x;
      g.a_row = form_.input;
      g.b = weights.projection + part * columns * form_.input;
      g.column_bias = weights.bias + part * columns;
      g.c = memory + call.gates + part * call.gates_direction;
      g.c_row = call.gates_row;
      g.lo = -std::numeric_limits<float>::infinity();
      g.hi = std::numeric_limits<float>::infinity();
      g.backwards = turn_.now();
      run_tasks_with<float>(team, call.projection_split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
        run_gemm(call.projection, kernels_.tiles, kernels_.pack, g, begin, end, workspace);
      });
    }
  }

  // By Strassen's algorithm; rows are copied into blocks, as many as a run has.
  void project_rows(const RecurrentCall& call, const float* x, IndexRange rows, float* memory, float* workspace) const {
    const StrassenPlan& plan = design_.packing.projection;
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
      run_cells(cells, direction, 0, rows_of(call, memory, phase), begin, end);
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
        kernels_.pack_rows(x + (reverse ? call.steps - 1 - first : first) * form_.input,
                           reverse ? -form_.input : form_.input, chunk.steps, form_.input, chunk.tile,
                           memory + call.x + direction * call.x_size + first * form_.input, chunk.tile);
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
    const RecurrentWeights weights = weights_of(call, memory);
    a.weights = weights.projection + direction * packed_.width * form_.input;
    a.bias = weights.bias + direction * packed_.width;
    a.out = memory + gates_of_chunk(call, direction, chunk);
    return a;
  }

  // The input's product for a chunk: [block][tile][gates][lanes].
  int64_t gates_of_chunk(const RecurrentCall& call, int64_t direction, const InputChunk& chunk) const {
    return call.gates + (chunk.index % 2 * form_.directions + direction) * call.tiles.large * packed_.width;
  }

  // The block of a direction, each of so many floats; null where there are none.
  const float* of_direction(const float* all, int64_t direction, int64_t block) const {
    return all ? all + direction * packed_.blocks * block : nullptr;
  }

  CellArgs cell_args(const RecurrentCall& call, std::byte* const* args, float* memory, int64_t direction,
                     int64_t phase) const {
    const int64_t step = phase / phases();
    const bool is_candidate = phase % phases() == 1;
    const bool reverse = form_.reverse || direction == 1;
    const int64_t at = reverse ? call.steps - 1 - step : step;
    const bool is_packed = call.is_ragged;
    const RaggedRows rows = is_packed ? RaggedRows::at(memory + call.ragged, call) : RaggedRows();
    const int64_t first_row = is_packed ? rows.starts[step] : form_.batch_first ? at : at * call.batch;
    const int64_t row_step = form_.batch_first && !is_packed ? call.x_steps : 1;
    const RecurrentWeights weights = weights_of(call, memory);
    CellArgs c;
    c.kind = is_candidate ? CellKind::GruCandidate : form_.kind;
    c.backwards = turn_.now() != (step % 2 != 0);
    c.hidden = form_.hidden;
    const int64_t gates = is_candidate ? 1 : phases() == 2 ? 2 : form_.gates;
    const int64_t block_gates = form_.hidden * gates * packed_.lanes;
    c.weights = of_direction(is_candidate ? weights.candidate : weights.recurrent, direction, block_gates);
    if (form_.has_rules) c.rules = &form_.rules[direction];
    c.peepholes = of_direction(weights.peepholes, direction, 3 * packed_.lanes);
    c.gates_x_gate = call.gates_gate;
    c.gates_x_block = call.gates_block;
    if (call.is_beside()) {
      const InputChunk chunk = InputChunk::of_step(step, call.tiles, call.steps);
      c.gates_x_block = chunk.tile * form_.gates * packed_.lanes;
      c.gates_x = memory + gates_of_chunk(call, direction, chunk) + (step - chunk.first) * form_.gates * packed_.lanes;
    } else if (call.takes_input) {
      c.x = is_packed ? memory + call.x + direction * call.x_size + first_row * form_.input
                      : reinterpret_cast<const float*>(args[arguments_.x]) + first_row * form_.input;
      c.x_row = row_step * form_.input;
      c.input = form_.input;
      c.input_weights = weights.projection + direction * packed_.width * form_.input;
      c.bias = weights.bias + direction * packed_.width;
    } else {
      c.gates_x = memory + call.gates + first_row * call.gates_row + direction * call.gates_direction;
      c.gates_x_row = row_step * call.gates_row;
    }
    c.candidate_bias = of_direction(weights.candidate_bias, direction, packed_.lanes);
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
    if (arguments_.outputs[0] < 0) return c;
    c.y = reinterpret_cast<float*>(args[arguments_.outputs[0]]);
    if (is_packed) {
      c.y_rows = rows.y_rows + direction * call.rows + first_row;
    } else {
      const int64_t vectors =
          form_.batch_first ? at * form_.directions + direction : (at * form_.directions + direction) * call.batch;
      c.y += vectors * form_.hidden;
      c.y_row = (form_.batch_first ? call.x_steps * form_.directions : 1) * form_.hidden;
    }
    return c;
  }

  int64_t state_row_of(const RecurrentCall& call, int64_t direction, int64_t b) const {
    return (form_.batch_first ? b * form_.directions + direction : direction * call.batch + b) * form_.hidden;
  }

  // f(place in the states' argument, place in `state` less the copies, sequence's steps, floats that exist) for every
  // vector.
  template <class F>
  void for_each_vector(const RecurrentCall& call, float* state, int64_t copies, float* memory, F f) const {
    const RaggedRows rows = call.is_ragged ? RaggedRows::at(memory + call.ragged, call) : RaggedRows();
    for (int64_t d = 0; d < form_.directions; ++d) {
      for (int64_t place = 0; place < call.batch; ++place) {
        const int64_t at = state_row_of(call, d, rows.order ? rows.order[place] : place);
        const int64_t steps = rows.length ? rows.length[place] : call.steps;
        for (int64_t unit = 0, block = 0; unit < form_.hidden; unit += packed_.lanes, ++block) {
          f(at + unit, state + d * copies * call.state + place * call.state_row + block * call.state_block, steps,
            std::min(packed_.lanes, form_.hidden - unit));
        }
      }
    }
  }

  void load_state(const RecurrentCall& call, std::byte* const* args, int argument, float* state, int64_t copies,
                  float* memory) const {
    for (int64_t d = 0; d < form_.directions; ++d) std::fill_n(state + d * copies * call.state, call.state, 0.0f);
    if (argument < 0) return;
    const auto* from = reinterpret_cast<const float*>(args[argument]);
    for_each_vector(call, state, copies, memory,
                    [&](int64_t at, float* to, int64_t, int64_t count) { std::copy_n(from + at, count, to); });
  }

  void store_state(const RecurrentCall& call, std::byte* const* args, int argument, float* state, int64_t copies,
                   float* memory) const {
    if (argument < 0) return;
    auto* to = reinterpret_cast<float*>(args[argument]);
    for_each_vector(call, state, copies, memory, [&](int64_t at, const float* from, int64_t steps, int64_t count) {
      const int64_t last = design_.has_codes() ? call.steps : steps;
      std::copy_n(from + (copies == 2 ? last % 2 * call.state : 0), count, to + at);
    });
  }

  std::string op_;
  RecurrentDesign design_;
  const RecurrentForm& form_ = design_.form;
  const RecurrentMethod& method_ = design_.method;
  const RecurrentKernels& kernels_ = design_.kernels;
  PackedRecurrent packed_;
  RecurrentWeights constants_;
  RecurrentArguments arguments_;
  Turn turn_;
  CodesMatrix w_codes_, r_codes_;  // of 8-bit codes
};

}  // namespace

std::unique_ptr<Step> make_recurrent_step(const Candidate& candidate, const RecurrentMethod& method,
                                          const Target& target, PackedStore& packed) {
  const Node& node = candidate.workload->root();
  const RecurrentForm form = *read_recurrent(node, nullptr);
  return make_recurrent_layer(node.op, form, RecurrentArguments::of(candidate, form, node), method, target, packed);
}

std::unique_ptr<KernelStep> make_recurrent_layer(std::string op, const RecurrentForm& form,
                                                 const RecurrentArguments& arguments, const RecurrentMethod& method,
                                                 const Target& target, PackedStore& packed) {
  return std::make_unique<RecurrentStep>(std::move(op), form, arguments, method, target, packed);
}

}  // namespace neo
