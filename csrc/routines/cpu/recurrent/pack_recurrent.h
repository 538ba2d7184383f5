#pragma once

#include "ir/graph.h"
#include "routines/cpu/gemm/exponent_packed_matrix.h"
#include "routines/cpu/gemm/gemm.h"
#include "routines/cpu/gemm/strassen.h"
#include "routines/cpu/recurrent/recurrent.h"
#include "routines/packed_store.h"
#include "routines/patterns/recurrent_form.h"

namespace neo {

// Gates of R: [direction][block][hidden][gates][lanes], plain or exponent-packed: then a block is a panel. Or for
// Strassen's algorithm: [direction][group of blocks][packed weights].
struct PackedCells {
  ExponentPackedShape exponent_packed;  // no panels where they are not
  Tensor values;
};

// How the weights are packed.
struct RecurrentPacking {
  int64_t panel_vectors = 0;                               // of W, see projection_plan()
  int64_t parts = 1;                                       // of W, each of as many directions: one matrix product each
  const ExponentPackedKernels* exponent_packed = nullptr;  // those of R; null: it is not
  // For Strassen's algorithm, where there is a plan: W of all directions, and of each of R's groups of blocks the gates
  // of PackedRecurrent.
  StrassenPlan projection, recurrent, candidate;
  int64_t groups = 1;
};

// Weights as the kernels read them; the parts of directions follow each other.
struct RecurrentWeights {
  float* projection = nullptr;      // for projection_plan(), part by part
  float* bias = nullptr;            // of the projection's columns
  float* recurrent = nullptr;       // [direction][block][hidden][gates][lanes]; GruGates: z and r
  float* candidate = nullptr;       // GruGates: the same of h
  float* candidate_bias = nullptr;  // [direction][block][lanes]
  float* peepholes = nullptr;       // [direction][block][i, o, f][lanes], or null
};

// The kernel of RecurrentKernels that packs a block of rows as columns.
using PackRows = void (*)(const float* x, int64_t x_row, int64_t rows, int64_t input, int64_t tile, float* to,
                          int64_t to_row);

// Sizes of plain weights, and how they are packed: at compile time those that are constants, else before the steps of
// every run.
struct RecurrentPacker {
  const RecurrentForm& form;
  int64_t lanes = 0;
  PackRows rows = nullptr;

  int64_t blocks() const;  // of hidden units
  int64_t recurrent_gates() const { return form.kind == CellKind::GruGates ? 2 : form.gates; }
  bool has_candidate() const { return form.kind == CellKind::GruGates; }
  int64_t bias_size() const;
  int64_t gates_size(int64_t gates) const;  // of all directions
  int64_t candidate_bias_size() const;
  int64_t peepholes_size() const;

  // Panels [begin, end) of all parts, each of which has those of `plan`.
  void pack_projection(const GemmPlan& plan, int64_t parts, const float* w, int64_t begin, int64_t end,
                       float* to) const;
  // Gates [first, first + count) of the blocks [begin, end) of all directions.
  void pack_gates(const float* r, int64_t first, int64_t count, int64_t begin, int64_t end, float* to) const;
  void pack_bias(const float* b, float* to) const;
  void pack_candidate_bias(const float* b, float* to) const;
  void pack_peepholes(const float* peepholes, float* to) const;
};

// The constants of a recurrent node as the kernels read them; without those, sizes alone.
struct PackedRecurrent {
  int64_t lanes = 0;
  int64_t blocks = 0;     // of hidden units
  int64_t width = 0;      // gates of one direction, in whole vectors
  Tensor projection;      // W of all directions, packed for projection_plan() or for Strassen's algorithm
  Tensor bias;            // of the projection's columns
  PackedCells recurrent;  // of all gates; GruGates: z and r
  PackedCells candidate;  // GruGates: h
  Tensor candidate_bias;  // GruLinear: [direction][blocks][lanes]
  Tensor peepholes;       // as in RecurrentWeights, where there are any

  RecurrentWeights weights() const;
};

// How `gates` of the gates of R are held where they are exponent-packed.
ExponentPackedShape exponent_packed_cells(const RecurrentForm& form, int64_t gates, int64_t lanes);

PackedRecurrent pack_recurrent(const RecurrentForm& form, const RecurrentPacking& packing, const TileKernels& tiles,
                               PackRows rows, PackedStore& store);

// The product of `rows` rows of X with W of all directions of a part. Its panels have `panel_vectors` vectors of a
// block's gates, or as many as there are gates where it is 0.
GemmPlan projection_plan(const RecurrentForm& form, int64_t rows, const RecurrentPacking& packing,
                         const TileKernels& tiles);

}  // namespace neo
