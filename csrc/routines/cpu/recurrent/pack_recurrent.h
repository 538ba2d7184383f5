#pragma once

#include "ir/graph.h"
#include "routines/cpu/gemm/exponent_packed_matrix.h"
#include "routines/cpu/gemm/gemm.h"
#include "routines/cpu/gemm/strassen.h"
#include "routines/cpu/recurrent/recurrent.h"
#include "routines/packed_store.h"
#include "routines/patterns/recurrent_form.h"

namespace neo {

// Gates of R: [direction][block][hidden][gates][lanes], plain or compressed: then a block is a panel. Or for Strassen's
// algorithm: [direction][group of blocks][packed weights].
struct PackedCells {
  ExponentPackedShape exponent_packed;  // no panels where they are not
  Tensor values;
};

// How the weights are packed.
struct RecurrentPacking {
  int64_t panel_vectors = 0;                               // of W, see projection_plan()
  const ExponentPackedKernels* exponent_packed = nullptr;  // those of R; null: it is not
  // For Strassen's algorithm, where there is a plan: W of all directions, and of each of R's groups of blocks the gates
  // of PackedRecurrent.
  StrassenPlan projection, recurrent, candidate;
  int64_t groups = 1;
};

// The constants of a recurrent node as the kernels read them.
struct PackedRecurrent {
  int64_t lanes = 0;
  int64_t blocks = 0;     // of hidden units
  int64_t width = 0;      // gates of one direction, in whole vectors
  Tensor projection;      // W of all directions, packed for projection_plan() or for Strassen's algorithm
  Tensor bias;            // of the projection's columns
  PackedCells recurrent;  // of all gates; GruGates: z and r
  PackedCells candidate;  // GruGates: h
  Tensor candidate_bias;  // GruLinear: [direction][blocks][lanes]
};

// How `gates` of the gates of R are held where they are compressed.
ExponentPackedShape exponent_packed_cells(const RecurrentForm& form, int64_t gates, int64_t lanes);

PackedRecurrent pack_recurrent(const Node& node, const RecurrentForm& form, const RecurrentPacking& packing,
                               const TileKernels& tiles, const PackKernels& pack, PackedStore& store);

// The product of `rows` rows of X with W of all directions. Its panels have `panel_vectors` vectors of a block's gates,
// or as many as there are gates where it is 0.
GemmPlan projection_plan(const RecurrentForm& form, int64_t rows, int64_t panel_vectors, const TileKernels& tiles);

}  // namespace neo
