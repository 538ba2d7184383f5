#pragma once

// Kernels of recurrent layers: one step of one direction, the recurrent product and the gates in one pass. The hidden
// units are held in blocks of one vector; a block's gates lie side by side. Safe in kernel files.

#include <stdint.h>

#include "routines/patterns/cell_kind.h"

namespace neo {

// Blocks of one row whose gates are finished together: the operations of one wait for each other most of the time.
constexpr int64_t kCellBlocksTogether = 8;

// Rows are elements of the batch. Sizes are floats; states are whole vectors.
struct CellArgs {
  CellKind kind = CellKind::Lstm;
  int64_t hidden = 0;
  const float* weights = nullptr;  // [block][hidden][gates][lanes]
  const float* gates_x = nullptr;  // products of the input and all biases but candidate_bias; null where x is given
  int64_t gates_x_row = 0;
  int64_t gates_x_block = 0;  // from one block's gates to the next
  int64_t gates_x_gate = 0;   // from one gate of a block to the next
  // The step's input, where the kernel multiplies it itself: kinds of which recurrent_takes_input().
  const float* x = nullptr;  // or null
  int64_t x_row = 0;
  int64_t input = 0;
  const float* input_weights = nullptr;   // as of InputArgs
  const float* bias = nullptr;            // [block][gates][lanes]
  const float* candidate_bias = nullptr;  // GruLinear: [blocks][lanes]
  const float* h_in = nullptr;            // GruCandidate: r * h
  const float* h_last = nullptr;          // GruCandidate: h before the step
  float* h_out = nullptr;                 // GruGates: r * h
  float* cell = nullptr;                  // Lstm: c. GruGates, GruCandidate: z
  int64_t state_row = 0;
  int64_t state_block = 0;  // one vector, but where the recurrent product is made elsewhere
  float* y = nullptr;       // or null
  int64_t y_row = 0;
  const int64_t* y_rows = nullptr;   // floats from y to the place of each row, or null: y_row apart
  const CellRules* rules = nullptr;  // null: the plain cell of its kind
  const float* peepholes = nullptr;  // Lstm with rules: [block][i, o, f][lanes], or null
  bool backwards = false;            // the last block first: what the step before read last is still in the cache
};

// A part of the product of some steps' inputs with W, for a batch of one. The kernels take blocks one after another, of
// a block its recurrent_tile_groups() groups of gates, and of a group k = 0 ... input - 1: these are the positions,
// from 0 at the first block that a kernel is given. It does [begin, end), adding to `out`, which the beginning of a
// group sets.
struct InputArgs {
  int64_t tile = 0;          // rows that are computed at once, of recurrent_tiles()
  const float* x = nullptr;  // [input][tile], of recurrent_pack_input()
  int64_t input = 0;
  int64_t begin = 0, end = 0;
  const float* weights = nullptr;  // [panel][input][vectors][lanes], recurrent_panel_vectors() of a block's gates
  const float* bias = nullptr;     // [block][gates][lanes]
  float* out = nullptr;            // [block][tile][gates][lanes]
};

// The tiles that a kind of cell has: the first steps' inputs are multiplied in the small one, while nothing else is to
// be done, the others in the large one. None: 0.
struct InputTiles {
  int small = 0, large = 0;
};

}  // namespace neo
