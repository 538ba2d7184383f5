#include "routines/cpu/recurrent/recurrent_plan.h"

#include <algorithm>

#include "routines/cpu/gemm/exponent_packed_matrix.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kOperationsPerTask = 50000;  // of one step, where a team shares every step
constexpr int64_t kMinTaskRows = 6;
constexpr int64_t kMaxRowTasks = 16;

}  // namespace

RecurrentKernels RecurrentKernels::of(const Target& target) {
  return {tile_kernels_of(target.isa),
          strassen_kernels_of(target.isa),
          NEO_PICK_TIER(target.isa, pack_kernels)(),
          NEO_PICK_TIER(target.isa, exponent_packed_kernels)(),
          NEO_PICK_TIER(target.isa, recurrent_cells),
          NEO_PICK_TIER(target.isa, recurrent_start),
          NEO_PICK_TIER(target.isa, recurrent_finish),
          NEO_PICK_TIER(target.isa, recurrent_finish_products),
          NEO_PICK_TIER(target.isa, recurrent_tiles),
          NEO_PICK_TIER(target.isa, recurrent_tile_groups),
          NEO_PICK_TIER(target.isa, recurrent_panel_vectors),
          NEO_PICK_TIER(target.isa, recurrent_takes_input),
          NEO_PICK_TIER(target.isa, recurrent_pack),
          NEO_PICK_TIER(target.isa, recurrent_input),
          NEO_PICK_TIER(target.isa, recurrent_cells_beside),
          exponent_packed_prefetch(target, false)};
}

CellSplit split_cells(const RecurrentForm& form, int64_t steps, int64_t batch, int64_t blocks) {
  CellSplit split;
  const int64_t per_step = 2 * form.directions * batch * form.gates * form.hidden * form.hidden;
  const int64_t rows = ceil_div(ceil_div(batch, kMaxRowTasks), kMinTaskRows) * kMinTaskRows;
  const int64_t row_chunks = batch == 0 ? 0 : ceil_div(batch, std::max<int64_t>(1, rows));
  const int64_t step_tasks = std::min(form.directions * blocks, per_step / kOperationsPerTask);
  split.by_step = step_tasks > form.directions * row_chunks;
  if (split.by_step) {
    split.chunk = ceil_div(blocks, ceil_div(step_tasks, form.directions));
    split.chunks = ceil_div(blocks, split.chunk);
  } else {
    split.chunk = rows;
    split.chunks = row_chunks;
  }
  split.serial = TaskSplit::of(form.directions * split.chunks, per_step * steps).serial;
  return split;
}

int64_t gates_width(const RecurrentForm& form, int64_t lanes) {
  return form.directions * ceil_div(form.hidden, lanes) * lanes * form.gates;
}

InputTiles input_tiles(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                       int64_t steps, int64_t batch) {
  if (method.way != RecurrentWay::InputBeside || batch != 1 || form.input == 0) return {};
  const InputTiles tiles = kernels.tiles_of(form.kind);
  return steps < tiles.small ? InputTiles{} : tiles;
}

bool takes_input(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                 int64_t steps, int64_t batch) {
  const bool is_plain = method.way == RecurrentWay::InputFirst || method.way == RecurrentWay::InputBeside;
  if (!is_plain || method.input_levels > 0 || method.levels > 0 || !kernels.takes_input(form.kind)) return false;
  if (steps == 1 && batch == 1) return true;
  return batch >= kMinTaskRows &&
         gates_width(form, kernels.tiles.lanes) * (form.input + form.hidden) * 4 <= kLastCacheBytes;
}

namespace {

StrassenPlan strassen_plan(const RecurrentKernels& kernels, int64_t ic, int64_t oc, int64_t levels) {
  return levels > 0 ? plan_strassen(ic, oc, kernels.tiles.lanes, kernels.strassen, levels) : StrassenPlan();
}

// Whether hidden units fall into so many groups, each with products by Strassen's algorithm of its own.
bool takes_groups(const RecurrentForm& form, int64_t groups, int64_t levels, const RecurrentKernels& kernels) {
  const int64_t lanes = kernels.tiles.lanes, units = form.hidden / groups;
  const auto takes = [&](int64_t gates) {
    return !reject_strassen(form.hidden, gates * units, lanes, kernels.strassen, levels);
  };
  return form.hidden % (groups * lanes) == 0 &&
         (form.kind == CellKind::GruGates ? takes(2) && takes(1) : takes(form.gates));
}

}  // namespace

bool takes_strassen(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels) {
  const bool is_wanted = method.input_levels > 0 || method.levels > 0;
  if (is_wanted && (form.lengths || !form.has_constant_weights)) return false;
  if (method.way == RecurrentWay::InputBeside) return method.input_levels == 0 && method.levels == 0;
  if (method.way == RecurrentWay::ExponentPacked && method.levels > 0) return false;
  const Dim &steps = steps_of(form), &batch = batch_of(form);
  if (method.levels > 0 && (!batch.is_constant() || batch.value() == 1)) return false;
  if (method.input_levels > 0 && !(steps.is_constant() && batch.is_constant())) return false;
  const int64_t lanes = kernels.tiles.lanes;
  return (method.input_levels == 0 ||
          !reject_strassen(form.input, gates_width(form, lanes), lanes, kernels.strassen, method.input_levels)) &&
         (method.levels == 0 || takes_groups(form, 1, method.levels, kernels));
}

RecurrentPacking packing_of(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                            int threads) {
  RecurrentPacking packing;
  packing.panel_vectors = input_panel_vectors(form, method, kernels);
  if (form.lengths) packing.parts = form.directions;  // each of which has rows of its own
  if (method.way == RecurrentWay::ExponentPacked) packing.exponent_packed = &kernels.exponent_packed;
  packing.projection = strassen_plan(kernels, form.input, gates_width(form, kernels.tiles.lanes), method.input_levels);
  if (method.levels == 0) return packing;
  packing.groups = std::max<int64_t>(1, ceil_div(threads, form.directions));
  while (!takes_groups(form, packing.groups, method.levels, kernels)) --packing.groups;
  const int64_t units = form.hidden / packing.groups;
  const bool has_candidate = form.kind == CellKind::GruGates;
  packing.recurrent = strassen_plan(kernels, form.hidden, (has_candidate ? 2 : form.gates) * units, method.levels);
  if (has_candidate) packing.candidate = strassen_plan(kernels, form.hidden, units, method.levels);
  return packing;
}

int64_t strassen_tasks(const StrassenPlan& plan, int64_t rows, int threads) {
  return std::min<int64_t>(rows, std::clamp<int64_t>(rows / fewest_strassen_pixels(plan), 1, threads));
}

int64_t input_panel_vectors(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels) {
  const Dim &steps = steps_of(form), &batch = batch_of(form);
  const bool may_take = takes_input(form, method, kernels, steps.is_constant() ? steps.value() : 0,
                                    batch.is_constant() ? batch.value() : kMinTaskRows);
  return method.way == RecurrentWay::InputBeside || may_take ? kernels.panel_vectors(form.kind) : 0;
}

}  // namespace neo
