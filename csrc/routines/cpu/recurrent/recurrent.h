#pragma once

// Kernels of recurrent layers: one step of one direction, the recurrent product and the gates in one pass. The hidden
// units are held in blocks of one vector; a block's gates lie side by side. Safe in kernel files.

#include <stdint.h>

namespace neo {

enum class CellKind : uint8_t {
  Lstm,          // gates i, o, f, c
  GruLinear,     // gates z, r, h; the reset gate scales the candidate's product (linear_before_reset)
  GruGates,      // gates z, r of the other form; leaves z and r * h for GruCandidate
  GruCandidate,  // gate h
  RnnTanh,
  RnnRelu,
};

// Rows are elements of the batch. Sizes are floats; a state row has `blocks` whole vectors.
struct CellArgs {
  CellKind kind = CellKind::Lstm;
  int64_t hidden = 0;
  const float* weights = nullptr;  // [block][hidden][gates][lanes]
  const float* gates_x = nullptr;  // products of the input and all biases but candidate_bias
  int64_t gates_x_row = 0;
  int64_t gates_x_block = 0;              // from one block's gates to the next
  const float* candidate_bias = nullptr;  // GruLinear: [blocks][lanes]
  const float* h_in = nullptr;            // GruCandidate: r * h
  const float* h_last = nullptr;          // GruCandidate: h before the step
  float* h_out = nullptr;                 // GruGates: r * h
  float* cell = nullptr;                  // Lstm: c. GruGates, GruCandidate: z
  int64_t state_row = 0;
  float* y = nullptr;  // or null
  int64_t y_row = 0;
  bool backwards = false;  // the last block first: what the step before read last is still in the cache
};

// A part of the product of some steps' inputs with W, for a batch of one. It adds k in [k_begin, k_end) to `out`, which
// the part that begins at 0 sets. The kernels compute recurrent_input_rows() rows; those beyond `rows` repeat the last.
struct InputArgs {
  const float* x = nullptr;
  int64_t x_row = 0;  // from step to step
  int64_t rows = 0;   // at least one
  int64_t input = 0;
  int64_t k_begin = 0, k_end = 0;
  const float* weights = nullptr;  // [block][input][gates][lanes]
  const float* bias = nullptr;     // [block][gates][lanes]
  float* out = nullptr;            // [row][block][gates][lanes]
  int64_t out_row = 0;
};

}  // namespace neo
