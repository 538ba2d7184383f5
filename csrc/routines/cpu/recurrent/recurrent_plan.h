#pragma once

#include "base/int_math.h"
#include "ops/op.h"
#include "routines/cost/target.h"
#include "routines/cpu/microkernel/exponent_packed.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/recurrent/pack_recurrent.h"
#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(void recurrent_cells(const CellArgs&, int64_t, int64_t, int64_t, int64_t))
NEO_DECLARE_TIERS(void recurrent_start(const CellArgs&, int64_t, int64_t, int64_t, float*))
NEO_DECLARE_TIERS(void recurrent_finish(const CellArgs&, int64_t, int64_t, int64_t, int64_t, const float*))
NEO_DECLARE_TIERS(void recurrent_finish_products(const CellArgs&, int64_t, int64_t, int64_t, const float*, int64_t))
NEO_DECLARE_TIERS(InputTiles recurrent_tiles(CellKind))
NEO_DECLARE_TIERS(int recurrent_tile_groups(CellKind, int64_t))
NEO_DECLARE_TIERS(int recurrent_panel_vectors(CellKind))
NEO_DECLARE_TIERS(bool recurrent_takes_input(CellKind))
NEO_DECLARE_TIERS(void recurrent_pack(const float*, int64_t, int64_t, int64_t, int64_t, float*, int64_t))
NEO_DECLARE_TIERS(void recurrent_input(CellKind, const InputArgs&, int64_t))
NEO_DECLARE_TIERS(void recurrent_cells_beside(const CellArgs&, const InputArgs&, int64_t, int64_t))

namespace neo {

// The size of the last cache in estimates and choices.
constexpr int64_t kLastCacheBytes = 24 << 20;

// How a layer's two products are done.
enum class RecurrentWay : uint8_t {
  InputFirst,      // the input's of all steps as one matrix product, then step after step the one with R
  InputBeside,     // a batch of one: the input's of some steps beside the one with R of the steps before
  ExponentPacked,  // as InputFirst, R held in 28 bits per weight (exponent_packed.h)
  Codes,           // as InputFirst, of 8-bit codes (codes_product.h)
};

struct RecurrentMethod {
  RecurrentWay way = RecurrentWay::InputFirst;
  // Levels of Strassen's algorithm (gemm/strassen.h, the rows are its pixels): of the input's product where that is
  // done first, and of the recurrent one of a batch, which is not exponent-packed. 0: not by it.
  int64_t input_levels = 0, levels = 0;
};

struct RecurrentKernels {
  const TileKernels& tiles;
  const StrassenKernels& strassen;
  const PackKernels& pack;
  const ExponentPackedKernels& exponent_packed;
  decltype(&scalar::recurrent_cells) cells;
  decltype(&scalar::recurrent_start) start;
  decltype(&scalar::recurrent_finish) finish;
  decltype(&scalar::recurrent_finish_products) finish_products;
  decltype(&scalar::recurrent_tiles) tiles_of;
  decltype(&scalar::recurrent_tile_groups) tile_groups;
  decltype(&scalar::recurrent_panel_vectors) panel_vectors;
  decltype(&scalar::recurrent_takes_input) takes_input;
  decltype(&scalar::recurrent_pack) pack_rows;  // x, x_row, rows, input, tile, to, to_row: [input][tile], transposed
  decltype(&scalar::recurrent_input) input;
  decltype(&scalar::recurrent_cells_beside) cells_beside;
  int64_t prefetched;  // ExponentPackedShape::prefetched of R

  static RecurrentKernels of(const Target& target);
};

// How the steps of all directions are cut. Either each task runs all steps of some rows of the batch, or the tasks of
// every step take some blocks of hidden units of all rows.
struct CellSplit {
  bool by_step = false;
  bool serial = false;
  int64_t chunk = 1;   // rows or blocks of a task
  int64_t chunks = 1;  // of one direction

  // All rows together.
  CellSplit by_rows(int64_t batch) const {
    CellSplit split = *this;
    if (by_step) {
      split.chunk = batch;
      split.chunks = 1;
    }
    return split;
  }
};

CellSplit split_cells(const RecurrentForm& form, int64_t steps, int64_t batch, int64_t blocks);

// Steps whose inputs are multiplied together.
struct InputChunk {
  int64_t index = 0;
  int64_t first = 0;
  int64_t steps = 0;
  int64_t tile = 0;

  static InputChunk at(int64_t index, const InputTiles& tiles, int64_t steps) {
    InputChunk chunk;
    chunk.index = index;
    chunk.first = index == 0 ? 0 : tiles.small + (index - 1) * tiles.large;
    chunk.steps = std::min<int64_t>(index == 0 ? tiles.small : tiles.large, steps - chunk.first);
    chunk.tile = chunk.steps <= tiles.small ? tiles.small : tiles.large;
    return chunk;
  }

  static InputChunk of_step(int64_t step, const InputTiles& tiles, int64_t steps) {
    return at(step < tiles.small ? 0 : 1 + (step - tiles.small) / tiles.large, tiles, steps);
  }

  bool is_last(int64_t of_steps) const { return first + steps == of_steps; }
};

inline const Dim& steps_of(const RecurrentForm& form) {
  return form.x->shape()[form.batch_first ? 1 : 0];
}

inline const Dim& batch_of(const RecurrentForm& form) {
  return form.x->shape()[form.batch_first ? 0 : 1];
}

// Floats of the gates of all directions.
int64_t gates_width(const RecurrentForm& form, int64_t lanes);

// The tiles in which inputs are multiplied beside the steps; 0 where all are multiplied first.
InputTiles input_tiles(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                       int64_t steps, int64_t batch);

// Whether every step multiplies its inputs itself: rows enough that the weights of both products arrive in time, and
// weights that the caches hold; or there is one step of one row.
bool takes_input(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                 int64_t steps, int64_t batch);

// Whether Strassen's algorithm takes the products that the method has for it: of few rows it takes several times as
// long as without, so their number must be known.
bool takes_strassen(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels);

// How weights are packed for a method and a team of `threads`.
RecurrentPacking packing_of(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels,
                            int threads);

// Tasks of the input's product by Strassen's algorithm, each of some rows.
int64_t strassen_tasks(const StrassenPlan& plan, int64_t rows, int threads);

// Vectors of a panel of W where these kernels may multiply inputs; 0 where that is left to the matrix product, which is
// faster with panels of its own.
int64_t input_panel_vectors(const RecurrentForm& form, const RecurrentMethod& method, const RecurrentKernels& kernels);

}  // namespace neo
