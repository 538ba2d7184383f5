#include "routines/cpu/recurrent/recurrent_call.h"

#include <algorithm>

#include "base/int_math.h"
#include "routines/cpu/recurrent/ragged_rows.h"

namespace neo {
namespace {

// Stride of rows whose gates lie apart: an odd number of vectors.
int64_t rows_stride(const RecurrentDesign& design, const RecurrentCall& call) {
  return design.packing.projection.levels > 0 || design.has_codes() ? call.rows | 1 : call.rows;
}

// Every task multiplies blocks of one direction in all steps.
CellSplit split_codes(const RecurrentForm& form, int64_t steps, int64_t batch, int64_t blocks) {
  constexpr int64_t kOperations = 200000;  // of a task in one step
  const int64_t per_step = 2 * form.directions * batch * form.gates * form.hidden * form.hidden;
  CellSplit split;
  split.by_step = true;
  split.chunk = ceil_div(blocks, std::clamp<int64_t>(per_step / kOperations / form.directions, 1, blocks));
  split.chunks = ceil_div(blocks, split.chunk);
  split.serial = TaskSplit::of(form.directions * split.chunks, per_step * steps / 4).serial;
  return split;
}

// Gates one after another, each of all rows.
void place_gates(const RecurrentDesign& design, RecurrentCall& call) {
  const int64_t lanes = design.kernels.tiles.lanes;
  call.gates_row = lanes;
  call.gates_gate = rows_stride(design, call) * lanes;
  call.gates_block = design.form.gates * call.gates_gate;
  call.gates_direction = ceil_div(design.form.hidden, lanes) * call.gates_block;
}

void plan_projection(const RecurrentDesign& design, int64_t width, RecurrentCall& call) {
  const RecurrentForm& form = design.form;
  const int64_t rows = call.rows, lanes = design.kernels.tiles.lanes;
  const int64_t operations = 2 * rows * form.directions * width * form.input;
  if (design.packing.projection.levels > 0) {
    const StrassenPlan& plan = design.packing.projection;
    call.strassen_rows = (std::min(strassen_run_pixels(plan), rows) | 1) * lanes;
    const int64_t workspace = plan.workspace_size + plan.input_blocks() * call.strassen_rows;
    call.projection_split =
        TaskSplit::of(strassen_tasks(plan, rows, design.threads), operations, workspace * 4, design.threads);
    return place_gates(design, call);
  }
  if (design.has_codes()) {
    call.projection_split = TaskSplit::of(form.directions * ceil_div(form.hidden, lanes), operations / 4);
    return place_gates(design, call);
  }
  call.projection = projection_plan(form, rows, design.packing, design.kernels.tiles);
  const int64_t workspace = call.projection.workspace_size * 4;
  call.projection_split =
      form.lengths ? TaskSplit::of(call.projection.tasks, operations / design.packing.parts, workspace, design.threads)
                   : TaskSplit::of(call.projection.tasks, operations, workspace);
  if (call.is_beside() || call.takes_input) call.projection_split.workspaces = 0;
  call.gates_row = call.is_ragged ? width : form.directions * width;
  call.gates_direction = call.is_ragged ? rows * width : width;
  call.gates_gate = lanes;
  call.gates_block = form.gates * lanes;
}

void plan_cells(const RecurrentDesign& design, int64_t blocks, RecurrentCall& call) {
  const RecurrentForm& form = design.form;
  const RecurrentPacking& packing = design.packing;
  const int64_t lanes = design.kernels.tiles.lanes;
  call.state = call.batch * blocks * lanes;
  call.state_row = blocks * lanes;
  call.state_block = lanes;
  if (packing.recurrent.levels == 0) return;
  call.state_row = lanes;
  call.state_block = call.batch * lanes;
  const auto plan_of = [&](const StrassenPlan& packed, int64_t gates) {
    const int64_t units = form.hidden / packing.groups;
    return packed.levels == 0
               ? StrassenPlan()
               : plan_strassen(form.hidden, gates * units, lanes, design.kernels.strassen, packed.levels, call.batch);
  };
  const bool has_candidate = form.kind == CellKind::GruGates;
  call.recurrent = plan_of(packing.recurrent, has_candidate ? 2 : form.gates);
  call.candidate = plan_of(packing.candidate, 1);
  call.products = form.gates * blocks / packing.groups * call.state_block;
  call.group_workspace =
      ceil_div(call.products + std::max(call.recurrent.workspace_size, call.candidate.workspace_size), 16) * 16;
}

}  // namespace

RecurrentDesign RecurrentDesign::of(const RecurrentForm& form, const RecurrentMethod& method, const Target& target) {
  const RecurrentKernels kernels = RecurrentKernels::of(target);
  return {form,           method,
          kernels,        CodedRowsKernels::of(target),
          target.threads, packing_of(form, method, kernels, target.threads)};
}

RecurrentCall plan_call(const RecurrentDesign& design, const RecurrentSizesOfRun& sizes) {
  const RecurrentForm& form = design.form;
  const RecurrentPacker packer = design.packer();
  const int64_t blocks = packer.blocks(), width = blocks * form.gates * packer.lanes;
  RecurrentCall call;
  static_cast<RecurrentSizesOfRun&>(call) = sizes;
  // Without steps the last state is the first one, and nothing is multiplied.
  const bool has_steps = call.steps > 0;
  if (has_steps) {
    call.cells = design.has_codes() ? split_codes(form, call.steps, call.batch, blocks)
                                    : split_cells(form, call.steps, call.batch, blocks);
    call.tiles = input_tiles(form, design.method, design.kernels, call.steps, call.batch);
    call.takes_input =
        design.packing.panel_vectors > 0 && takes_input(form, design.method, design.kernels, call.steps, call.batch);
    plan_projection(design, width, call);
  }
  plan_cells(design, blocks, call);
  call.two_h = form.kind != CellKind::GruGates;
  int64_t size = 0;
  const auto take = [&](int64_t floats) {
    const int64_t at = size;
    size += ceil_div(floats, 16) * 16;
    return at;
  };
  const int64_t rows = call.takes_input || !has_steps ? 0
                       : call.is_beside()             ? 2 * call.tiles.large
                                                      : rows_stride(design, call);
  if (form.lengths) take(call.batch);
  call.gates = take(rows * form.directions * width);
  call.h = take(form.directions * call.state * (call.two_h ? 2 : 1));
  call.cell = take(form.directions * call.state);
  if (form.kind == CellKind::GruGates) call.reset = take(form.directions * call.state);
  call.workspace = take(call.projection_split.scratch_bytes() / 4);
  if (design.packing.recurrent.levels > 0) {
    call.groups = take(form.directions * design.packing.groups * call.group_workspace);
  }
  if (call.is_beside()) {
    call.x_size = (call.steps + call.tiles.large) * form.input;
    call.x = take(form.directions * call.x_size);
  }
  if (call.is_ragged) {
    call.ragged = take(RaggedRows::floats(call, form.directions));
    call.x_size = call.rows * form.input;
    call.x = take(form.directions * call.x_size);
  }
  if (design.has_codes() && has_steps) {
    const int64_t tasks = form.directions * call.cells.chunks;
    call.h_codes_size = ceil_div(RowCodes::floats(design.codes, call.batch, form.hidden), 16) * 16;
    call.h_codes = take(tasks * call.h_codes_size);
    call.group_workspace = call.cells.chunk * form.gates * call.batch * packer.lanes;
    call.products = take(tasks * call.group_workspace);
    const int64_t orders = call.is_ragged ? form.directions : 1;
    call.x_codes = take(orders * RowCodes::floats(design.codes, call.rows, form.input));
  }
  if (!form.has_constant_weights) {
    const GemmPlan plan = projection_plan(form, 1, design.packing, design.kernels.tiles);
    call.projection_weights = take(design.packing.parts * gemm_packed_size(plan));
    call.bias = take(packer.bias_size());
    call.recurrent_weights = take(packer.gates_size(packer.recurrent_gates()));
    if (packer.has_candidate()) call.candidate_weights = take(packer.gates_size(1));
    call.candidate_bias = take(packer.candidate_bias_size());
    call.peepholes = take(packer.peepholes_size());
  }
  call.scratch_floats = size;
  return call;
}

int64_t scratch_floats(const RecurrentDesign& design, int64_t steps, int64_t batch) {
  const auto floats_of = [&](int64_t longest, bool is_ragged) {
    return plan_call(design, {steps, longest, batch, longest * batch, is_ragged}).scratch_floats;
  };
  int64_t most = floats_of(steps, false);
  if (!design.form.lengths) return most;
  // A task's workspace is in no proportion to the rows.
  const int64_t workspaces =
      TaskSplit{.workspaces = std::clamp(design.threads, 4, TaskSplit::kMaxWorkspaces),
                .workspace_bytes = 4 * plan_call(design, {steps, 1, batch, batch, false}).projection.workspace_size}
          .scratch_bytes() /
      4;
  if (batch > 1) return std::max(most, floats_of(steps, true)) + workspaces;
  for (int64_t short_steps = std::min(steps, design.kernels.tiles_of(design.form.kind).small + int64_t{1});
       short_steps > 0; --short_steps) {
    most = std::max(most, floats_of(short_steps, false));
  }
  return most + workspaces;
}

}  // namespace neo
