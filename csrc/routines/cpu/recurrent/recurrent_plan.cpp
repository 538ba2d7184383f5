#include "routines/cpu/recurrent/recurrent_plan.h"

#include <algorithm>

#include "routines/cpu/gemm/compressed_matrix.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kOperationsPerTask = 50000;  // of one step, where a team shares every step
constexpr int64_t kLeastRows = 6;
constexpr int64_t kMostRowTasks = 16;

}  // namespace

RecurrentKernels RecurrentKernels::of(const Target& target) {
  return {tile_kernels_of(target.isa),
          NEO_PICK_TIER(target.isa, pack_kernels)(),
          NEO_PICK_TIER(target.isa, compressed_kernels)(),
          NEO_PICK_TIER(target.isa, recurrent_cells),
          NEO_PICK_TIER(target.isa, recurrent_start),
          NEO_PICK_TIER(target.isa, recurrent_finish),
          NEO_PICK_TIER(target.isa, recurrent_tiles),
          NEO_PICK_TIER(target.isa, recurrent_tile_groups),
          NEO_PICK_TIER(target.isa, recurrent_panel_vectors),
          NEO_PICK_TIER(target.isa, recurrent_takes_input),
          NEO_PICK_TIER(target.isa, recurrent_pack_input),
          NEO_PICK_TIER(target.isa, recurrent_input),
          NEO_PICK_TIER(target.isa, recurrent_cells_beside),
          compressed_ahead(target, false)};
}

CellSplit split_cells(const RecurrentForm& form, int64_t steps, int64_t batch, int64_t blocks) {
  CellSplit split;
  const int64_t per_step = 2 * form.directions * batch * form.gates * form.hidden * form.hidden;
  const int64_t rows = ceil_div(ceil_div(batch, kMostRowTasks), kLeastRows) * kLeastRows;
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

InputTiles input_tiles(const RecurrentForm& form, RecurrentWay way, const RecurrentKernels& kernels, int64_t steps,
                       int64_t batch) {
  if (way != RecurrentWay::InputBeside || batch != 1) return {};
  const InputTiles tiles = kernels.tiles_of(form.kind);
  return steps < tiles.small ? InputTiles{} : tiles;
}

bool takes_input(const RecurrentForm& form, RecurrentWay way, const RecurrentKernels& kernels, int64_t batch) {
  return way != RecurrentWay::Compressed && batch >= kLeastRows && kernels.takes_input(form.kind) &&
         gates_width(form, kernels.tiles.lanes) * (form.input + form.hidden) * 4 <= kLastCacheBytes;
}

int64_t input_panel_vectors(const RecurrentForm& form, RecurrentWay way, const RecurrentKernels& kernels) {
  const Dim& batch = batch_of(form);
  const bool may_take = takes_input(form, way, kernels, batch.is_constant() ? batch.value() : kLeastRows);
  return way == RecurrentWay::InputBeside || may_take ? kernels.panel_vectors(form.kind) : 0;
}

}  // namespace neo
