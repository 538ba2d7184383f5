#include "routines/cpu/recurrent/recurrent.h"

#include "simd/math.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int gates_of(CellKind kind) {
  switch (kind) {
    case CellKind::Lstm:
      return 4;
    case CellKind::GruLinear:
      return 3;
    case CellKind::GruGates:
      return 2;
    default:
      return 1;
  }
}

// Rows whose sums fit the registers beside a vector of weights and a broadcast per row.
constexpr int rows_together(int gates) {
  if (kVectorRegisters >= 32) return gates > 2 ? 6 : 8;
  return gates > 3 ? 2 : gates > 2 ? 3 : 4;
}

// Where the sums of a gate begin. The candidate of GruLinear adds the input's part after the reset gate.
template <CellKind kind>
NEO_INLINE F32 start_of(const CellArgs& args, const float* gates_x, int gate, int64_t block) {
  if (kind == CellKind::GruLinear && gate == 2) return load(args.candidate_bias + block * kLanes);
  const int at = kind == CellKind::GruCandidate ? 2 : gate;
  return load(gates_x + at * kLanes);
}

// The gates of one row and block: `sum` holds their arguments.
template <CellKind kind>
NEO_INLINE void finish_cell(const CellArgs& args, const F32* sum, const float* gates_x, int64_t row, int64_t block) {
  const int64_t at = row * args.state_row + block * kLanes;
  if (kind == CellKind::GruGates) {
    store(args.cell + at, sigmoid(sum[0]));
    store(args.h_out + at, sigmoid(sum[1]) * load(args.h_in + at));
    return;
  }
  F32 h;
  if (kind == CellKind::Lstm) {
    const F32 c = fma(sigmoid(sum[2]), load(args.cell + at), sigmoid(sum[0]) * tanh(sum[3]));
    store(args.cell + at, c);
    h = sigmoid(sum[1]) * tanh(c);
  } else if (kind == CellKind::GruLinear) {
    const F32 z = sigmoid(sum[0]);
    const F32 candidate = tanh(fma(sigmoid(sum[1]), sum[2], load(gates_x + 2 * kLanes)));
    h = fma(z, load(args.h_in + at) - candidate, candidate);
  } else if (kind == CellKind::GruCandidate) {
    const F32 candidate = tanh(sum[0]);
    h = fma(load(args.cell + at), load(args.h_last + at) - candidate, candidate);
  } else if (kind == CellKind::RnnTanh) {
    h = tanh(sum[0]);
  } else {
    h = max(sum[0], zero());
  }
  store(args.h_out + at, h);
  if (args.y) {
    const int64_t left = args.hidden - block * kLanes;
    float* y = args.y + row * args.y_row + block * kLanes;
    if (left >= kLanes)
      store(y, h);
    else
      store_n(y, h, left);
  }
}

// `n` rows of one block.
template <CellKind kind, int n>
NEO_INLINE void cell_rows(const CellArgs& args, int64_t row, int64_t block) {
  constexpr int gates = gates_of(kind);
  // One row alone has too few sums to hide the latency of their additions, so it takes two parts of the product at
  // once.
  constexpr int parts = n == 1 ? 2 : 1;
  F32 sum[parts][n][gates];
  const float* gates_x = args.gates_x + row * args.gates_x_row + block * args.gates_x_block;
  for (int r = 0; r < n; ++r) {
    for (int g = 0; g < gates; ++g) {
      sum[0][r][g] = start_of<kind>(args, gates_x + r * args.gates_x_row, g, block);
      for (int p = 1; p < parts; ++p) sum[p][r][g] = zero();
    }
  }
  const float* w = args.weights + block * args.hidden * gates * kLanes;
  const float* h = args.h_in + row * args.state_row;
  int64_t k = 0;
  for (; k + parts <= args.hidden; k += parts) {
    for (int p = 0; p < parts; ++p, w += gates * kLanes) {
      F32 x[n];
      for (int r = 0; r < n; ++r) x[r] = broadcast(h[r * args.state_row + k + p]);
      for (int g = 0; g < gates; ++g) {
        const F32 weight = load(w + g * kLanes);
        for (int r = 0; r < n; ++r) sum[p][r][g] = fma(x[r], weight, sum[p][r][g]);
      }
    }
  }
  for (; k < args.hidden; ++k, w += gates * kLanes) {
    for (int r = 0; r < n; ++r) {
      const F32 x = broadcast(h[r * args.state_row + k]);
      for (int g = 0; g < gates; ++g) sum[0][r][g] = fma(x, load(w + g * kLanes), sum[0][r][g]);
    }
  }
  for (int r = 0; r < n; ++r) {
    for (int p = 1; p < parts; ++p) {
      for (int g = 0; g < gates; ++g) sum[0][r][g] = sum[0][r][g] + sum[p][r][g];
    }
    finish_cell<kind>(args, sum[0][r], gates_x + r * args.gates_x_row, row + r, block);
  }
}

template <CellKind kind>
void cells(const CellArgs& args, int64_t row_begin, int64_t row_end, int64_t block_begin, int64_t block_end) {
  constexpr int n = rows_together(gates_of(kind));
  for (int64_t block = block_begin; block < block_end; ++block) {
    int64_t row = row_begin;
    for (; row + n <= row_end; row += n) cell_rows<kind, n>(args, row, block);
    for (; row + 2 <= row_end; row += 2) cell_rows<kind, 2>(args, row, block);
    if (row < row_end) cell_rows<kind, 1>(args, row, block);
  }
}

}  // namespace

void recurrent_cells(const CellArgs& args, int64_t row_begin, int64_t row_end, int64_t block_begin, int64_t block_end) {
  switch (args.kind) {
    case CellKind::Lstm:
      return cells<CellKind::Lstm>(args, row_begin, row_end, block_begin, block_end);
    case CellKind::GruLinear:
      return cells<CellKind::GruLinear>(args, row_begin, row_end, block_begin, block_end);
    case CellKind::GruGates:
      return cells<CellKind::GruGates>(args, row_begin, row_end, block_begin, block_end);
    case CellKind::GruCandidate:
      return cells<CellKind::GruCandidate>(args, row_begin, row_end, block_begin, block_end);
    case CellKind::RnnTanh:
      return cells<CellKind::RnnTanh>(args, row_begin, row_end, block_begin, block_end);
    default:
      return cells<CellKind::RnnRelu>(args, row_begin, row_end, block_begin, block_end);
  }
}

}  // namespace neo::NEO_ISA
