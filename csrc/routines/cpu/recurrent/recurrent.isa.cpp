#include "routines/cpu/recurrent/recurrent.h"

#include "routines/cpu/microkernel/accumulate.h"
#include "routines/cpu/recurrent/cell_functions.h"
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

constexpr bool kHasInputTiles = kVectorRegisters >= 32 && kLanes >= 16;

// Vectors of gates that lie side by side in the weights of the input.
constexpr int panel_vectors(CellKind kind) {
  return kind == CellKind::Lstm ? 2 : gates_of(kind);
}

constexpr bool takes_input(CellKind kind) {
  return kHasInputTiles && kind == CellKind::Lstm;
}

// The values that the sums of a gate begin with. The candidate of GruLinear adds the input's part after the reset gate.
template <CellKind kind>
NEO_INLINE F32 start_of(const CellArgs& args, const float* gates_x, int gate, int64_t block) {
  if (takes_input(kind) && args.x) return load(args.bias + (block * gates_of(kind) + gate) * kLanes);
  if (kind == CellKind::GruLinear && gate == 2) return load(args.candidate_bias + block * kLanes);
  const int at = kind == CellKind::GruCandidate ? 2 : gate;
  return load(gates_x + at * args.gates_x_gate);
}

// Begins the sums of a block of one row and fetches what begins those of the `next` one.
template <CellKind kind>
NEO_INLINE void start_block(const CellArgs& args, int64_t row, int64_t block, int64_t next,
                            F32 (&sum)[gates_of(kind)]) {
  const float* gates_x = args.gates_x ? args.gates_x + row * args.gates_x_row : nullptr;
  for (int g = 0; g < gates_of(kind); ++g) {
    sum[g] = start_of<kind>(args, gates_x + block * args.gates_x_block, g, block);
    if (gates_x) prefetch_read(gates_x + next * args.gates_x_block + g * args.gates_x_gate);
  }
}

NEO_INLINE void store_y(const CellArgs& args, int64_t row, int64_t block, F32 h) {
  if (!args.y) return;
  const int64_t left = args.hidden - block * kLanes;
  float* y = args.y + (args.y_rows ? args.y_rows[row] : row * args.y_row) + block * kLanes;
  if (left >= kLanes)
    store(y, h);
  else
    store_n(y, h, left);
}

// The gates of one row and block: `sum` holds their arguments.
template <CellKind kind>
NEO_INLINE void finish_cell(const CellArgs& args, const F32* sum, const float* gates_x, int64_t row, int64_t block) {
  const int64_t at = row * args.state_row + block * args.state_block;
  if constexpr (kind == CellKind::GruGates) {
    const Sigmoids gates(sum[0], sum[1]);
    store(args.cell + at, gates.first);
    store(args.h_out + at, gates.second * load(args.h_in + at));
    return;
  }
  F32 h;
  if constexpr (kind == CellKind::Lstm) {
    const F32 kept = quotient(load(args.cell + at), sigmoid_divisor(sum[2]));
    const F32 c = kept + sigmoid_times_tanh(sum[0], sum[3]);
    store(args.cell + at, c);
    h = sigmoid_times_tanh(sum[1], c);
  } else if constexpr (kind == CellKind::GruLinear) {
    const Sigmoids gates(sum[0], sum[1]);
    const F32 candidate = tanh_gate(fma(gates.second, sum[2], load(gates_x + 2 * args.gates_x_gate)));
    h = fma(gates.first, load(args.h_in + at) - candidate, candidate);
  } else if constexpr (kind == CellKind::GruCandidate) {
    const F32 candidate = tanh_gate(sum[0]);
    h = fma(load(args.cell + at), load(args.h_last + at) - candidate, candidate);
  } else if constexpr (kind == CellKind::RnnTanh) {
    h = tanh_gate(sum[0]);
  } else {
    h = max(sum[0], zero());
  }
  store(args.h_out + at, h);
  store_y(args, row, block, h);
}

// Cells that are finished together: of one row the i-th is the block `block_step` further, of one block the row
// `row_step` further. Their gates' arguments lie one cell after another.
struct CellRun {
  int64_t row, row_step, block, block_step;
  int64_t count;  // at most kCellBlocksTogether
  const float* sums;
};

// finish_cell() of several cells by args.rules.
template <CellKind kind>
__attribute__((noinline)) void finish_by_rules(const CellArgs& args, const CellRun& run) {
  constexpr int gates = gates_of(kind);
  constexpr int64_t most = kCellBlocksTogether;
  const CellRules& rules = *args.rules;
  const int64_t count = run.count;
  float first[2 * most * kLanes], second[2 * most * kLanes];
  const auto each = [&](auto f) NEO_LAMBDA {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = run.row + i * run.row_step, block = run.block + i * run.block_step;
      f(i * kLanes, row, block, row * args.state_row + block * args.state_block, run.sums + i * gates * kLanes);
    }
  };
  const auto gates_of_x = [&](int64_t row, int64_t block)
                              NEO_LAMBDA { return args.gates_x + row * args.gates_x_row + block * args.gates_x_block; };
  const auto put = [&](int64_t row, int64_t block, int64_t at, F32 h) NEO_LAMBDA {
    store(args.h_out + at, h);
    store_y(args, row, block, h);
  };
  if constexpr (kind == CellKind::Lstm) {
    const auto peek = [&](const float* sum, int64_t block, int64_t at, int gate) NEO_LAMBDA {
      const F32 x = load(sum + gate * kLanes);
      return args.peepholes ? fma(load(args.peepholes + (block * 3 + gate) * kLanes), load(args.cell + at), x) : x;
    };
    float* const forget = first + count * kLanes;
    each([&](int64_t i, int64_t, int64_t block, int64_t at, const float* sum) NEO_LAMBDA {
      store(first + i, peek(sum, block, at, 0));
      if (!rules.coupled) store(forget + i, peek(sum, block, at, 2));
      store(second + i, load(sum + 3 * kLanes));
    });
    apply_function(rules, 0, first, rules.coupled ? count : 2 * count);
    apply_function(rules, 1, second, count);
    float* const output = second + count * kLanes;
    each([&](int64_t i, int64_t, int64_t block, int64_t at, const float* sum) NEO_LAMBDA {
      const F32 input = load(first + i), kept = rules.coupled ? broadcast(1.0f) - input : load(forget + i);
      const F32 c = fma(input, load(second + i), kept * load(args.cell + at));
      store(args.cell + at, c);
      store(second + i, c);
      store(output + i, peek(sum, block, at, 1));
    });
    apply_function(rules, 0, output, count);
    apply_function(rules, 2, second, count);
    each([&](int64_t i, int64_t row, int64_t block, int64_t at, const float*)
             NEO_LAMBDA { put(row, block, at, load(output + i) * load(second + i)); });
  } else if constexpr (kind == CellKind::GruGates) {
    each([&](int64_t i, int64_t, int64_t, int64_t, const float* sum) NEO_LAMBDA {
      store(first + i, load(sum));
      store(first + count * kLanes + i, load(sum + kLanes));
    });
    apply_function(rules, 0, first, 2 * count);
    each([&](int64_t i, int64_t, int64_t, int64_t at, const float*) NEO_LAMBDA {
      store(args.cell + at, load(first + i));
      store(args.h_out + at, load(first + count * kLanes + i) * load(args.h_in + at));
    });
  } else if constexpr (kind == CellKind::GruLinear) {
    each([&](int64_t i, int64_t, int64_t, int64_t, const float* sum) NEO_LAMBDA {
      store(first + i, load(sum));
      store(first + count * kLanes + i, load(sum + kLanes));
    });
    apply_function(rules, 0, first, 2 * count);
    each([&](int64_t i, int64_t row, int64_t block, int64_t, const float* sum) NEO_LAMBDA {
      const F32 of_x = load(gates_of_x(row, block) + 2 * args.gates_x_gate);
      store(second + i, fma(load(first + count * kLanes + i), load(sum + 2 * kLanes), of_x));
    });
    apply_function(rules, 1, second, count);
    each([&](int64_t i, int64_t row, int64_t block, int64_t at, const float*) NEO_LAMBDA {
      const F32 candidate = load(second + i);
      put(row, block, at, fma(load(first + i), load(args.h_in + at) - candidate, candidate));
    });
  } else {
    each([&](int64_t i, int64_t, int64_t, int64_t, const float* sum) NEO_LAMBDA { store(first + i, load(sum)); });
    apply_function(rules, kind == CellKind::GruCandidate ? 1 : 0, first, count);
    each([&](int64_t i, int64_t row, int64_t block, int64_t at, const float*) NEO_LAMBDA {
      const F32 f = load(first + i);
      put(row, block, at,
          kind == CellKind::GruCandidate ? fma(load(args.cell + at), load(args.h_last + at) - f, f) : f);
    });
  }
}

// Adds the products of `count` values of n rows with the weights of all gates, which lie in panels of `panel`: one
// behind the other, `w_panel` apart.
template <int panel, int n, int gates>
NEO_INLINE void add_products(F32 (&sum)[n][gates], const float* x, int64_t x_row, int64_t count, const float* w,
                             int64_t w_panel) {
  Rows<n> rows(x, x_row);
  const auto add = [&](int u) NEO_LAMBDA {
    F32 weight[gates];
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) weight[g] = load(w + g / panel * w_panel + (u * panel + g % panel) * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      const F32 value = broadcast(rows.at(r, u));
#pragma GCC unroll 4
      for (int g = 0; g < gates; ++g) accumulate(sum[r][g], value, weight[g]);
    }
  };
  int64_t k = 0;
  for (; k + kUnroll <= count; k += kUnroll) {
    rows.hide();
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) add(u);
    rows.advance(kUnroll);
    w += kUnroll * panel * kLanes;
  }
  for (; k < count; ++k) {
    rows.hide();
    add(0);
    rows.advance(1);
    w += panel * kLanes;
  }
}

// The arguments of the gates of `n` rows of one block. Apart from what follows, so that the sums have all registers.
template <CellKind kind, int n>
__attribute__((noinline)) void sum_gates(const CellArgs& args, int64_t row, int64_t block, float* to) {
  constexpr int gates = gates_of(kind);
  const float* gates_x = args.gates_x + row * args.gates_x_row + block * args.gates_x_block;
  F32 sum[n][gates];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) sum[r][g] = start_of<kind>(args, gates_x + r * args.gates_x_row, g, block);
  }
  if (takes_input(kind) && args.x) {
    constexpr int panel = panel_vectors(kind);
    const int64_t w_panel = args.input * panel * kLanes;
    add_products<panel>(sum, args.x + row * args.x_row, args.x_row, args.input,
                        args.input_weights + block * (gates / panel) * w_panel, w_panel);
  }
  add_products<gates>(sum, args.h_in + row * args.state_row, args.state_row, args.hidden,
                      args.weights + block * args.hidden * gates * kLanes, 0);
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) store(to + (r * gates + g) * kLanes, sum[r][g]);
  }
}

// The product of one row. Its sums are too few to hide the latency of their additions, so it takes two parts of the
// product at once.
template <CellKind kind>
NEO_INLINE void sum_gates_of_one(const CellArgs& args, int64_t row, int64_t block, int64_t next, float* to) {
  constexpr int gates = gates_of(kind);
  const float* w = args.weights + block * args.hidden * gates * kLanes;
  const float* h = args.h_in + row * args.state_row;
  F32 even[gates], odd[gates];
  start_block<kind>(args, row, block, next, even);
  for (int g = 0; g < gates; ++g) odd[g] = zero();
  if (takes_input(kind) && args.x) {
    constexpr int panel = panel_vectors(kind);
    const int64_t w_panel = args.input * panel * kLanes;
    const float* of_input = args.input_weights + block * (gates / panel) * w_panel;
    const float* x = args.x + row * args.x_row;
    for (int64_t k = 0; k < args.input; ++k, of_input += panel * kLanes) {
      for (int g = 0; g < gates; ++g) {
        even[g] = fma(broadcast(x[k]), load(of_input + g / panel * w_panel + g % panel * kLanes), even[g]);
      }
    }
  }
  int64_t k = 0;
  for (; k + 2 <= args.hidden; k += 2, w += 2 * gates * kLanes) {
    const F32 first = broadcast(h[k]), second = broadcast(h[k + 1]);
    for (int g = 0; g < gates; ++g) even[g] = fma(first, load(w + g * kLanes), even[g]);
    for (int g = 0; g < gates; ++g) odd[g] = fma(second, load(w + (gates + g) * kLanes), odd[g]);
  }
  if (k < args.hidden) {
    for (int g = 0; g < gates; ++g) even[g] = fma(broadcast(h[k]), load(w + g * kLanes), even[g]);
  }
  for (int g = 0; g < gates; ++g) store(to + g * kLanes, even[g] + odd[g]);
}

// The product of n rows at most.
template <CellKind kind, int n>
NEO_INLINE void sum_up_to(int64_t rows, const CellArgs& args, int64_t row, int64_t block, float* to) {
  if constexpr (n == 1) {
    sum_gates_of_one<kind>(args, row, block, block, to);
  } else if (rows == n) {
    sum_gates<kind, n>(args, row, block, to);
  } else {
    sum_up_to<kind, n - 1>(rows, args, row, block, to);
  }
}

template <CellKind kind>
__attribute__((noinline)) void finish_blocks(const CellArgs& args, int64_t row, int64_t block, int64_t step,
                                             int64_t count, const float* sums) {
  constexpr int gates = gates_of(kind);
  if (args.rules) return finish_by_rules<kind>(args, {row, 0, block, step, count, sums});
  for (int64_t i = 0; i < count; ++i, block += step, sums += gates * kLanes) {
    F32 sum[gates];
    for (int g = 0; g < gates; ++g) sum[g] = load(sums + g * kLanes);
    finish_cell<kind>(args, sum, args.gates_x + row * args.gates_x_row + block * args.gates_x_block, row, block);
  }
}

// Ends a step of all rows, whose products with the recurrent weights are [block][gate][row][lanes], `gate` floats from
// one gate to the next.
template <CellKind kind>
void finish_products(const CellArgs& args, int64_t rows, int64_t block_begin, int64_t block_end, const float* products,
                     int64_t gate) {
  constexpr int gates = gates_of(kind);
  for (int64_t block = block_begin; block < block_end; ++block, products += gates * gate) {
    const float* gates_x = args.gates_x + block * args.gates_x_block;
    float sums[kCellBlocksTogether * gates * kLanes];
    for (int64_t row = 0; row < rows; ++row, gates_x += args.gates_x_row) {
      F32 sum[gates];
      for (int g = 0; g < gates; ++g) {
        sum[g] = start_of<kind>(args, gates_x, g, block) + load(products + g * gate + row * kLanes);
      }
      if (!args.rules) {
        finish_cell<kind>(args, sum, gates_x, row, block);
        continue;
      }
      const int64_t at = row % kCellBlocksTogether;
      for (int g = 0; g < gates; ++g) store(sums + (at * gates + g) * kLanes, sum[g]);
      if (at + 1 == kCellBlocksTogether || row + 1 == rows)
        finish_by_rules<kind>(args, {row - at, 1, block, 0, at + 1, sums});
    }
  }
}

// One row. sum_block(i, block, next, to) gives the arguments of the gates of the i-th block, after which comes `next`.
template <CellKind kind, class F>
NEO_INLINE void cells_of_row(const CellArgs& args, int64_t row, int64_t block_begin, int64_t block_end, F&& sum_block) {
  constexpr int gates = gates_of(kind);
  float sums[kCellBlocksTogether * gates * kLanes];
  const int64_t blocks = block_end - block_begin, step = args.backwards ? -1 : 1;
  const int64_t first = args.backwards ? block_end - 1 : block_begin;
  for (int64_t begin = 0; begin < blocks; begin += kCellBlocksTogether) {
    const int64_t count = blocks - begin < kCellBlocksTogether ? blocks - begin : kCellBlocksTogether;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block = first + (begin + i) * step;
      sum_block(begin + i, block, begin + i + 1 < blocks ? block + step : block, sums + i * gates * kLanes);
    }
    finish_blocks<kind>(args, row, first + begin * step, step, count, sums);
  }
}

template <CellKind kind>
void cells(const CellArgs& args, int64_t row_begin, int64_t row_end, int64_t block_begin, int64_t block_end) {
  constexpr int gates = gates_of(kind), most = rows_together(gates);
  const int64_t rows = row_end - row_begin, groups = (rows + most - 1) / most;
  if (rows == 1) {
    return cells_of_row<kind>(args, row_begin, block_begin, block_end,
                              [&](int64_t, int64_t block, int64_t next, float* to)
                                  NEO_LAMBDA { sum_gates_of_one<kind>(args, row_begin, block, next, to); });
  }
  float sums[most * gates * kLanes];
  for (int64_t i = block_begin; i < block_end; ++i) {
    const int64_t block = args.backwards ? block_end - 1 - (i - block_begin) : i;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t begin = row_begin + rows * group / groups, end = row_begin + rows * (group + 1) / groups;
      sum_up_to<kind, most>(end - begin, args, begin, block, sums);
      if (args.rules) {
        finish_by_rules<kind>(args, {begin, 1, block, 0, end - begin, sums});
        continue;
      }
      const float* gates_x = args.gates_x + begin * args.gates_x_row + block * args.gates_x_block;
      for (int64_t r = 0; r < end - begin; ++r) {
        F32 sum[gates];
        for (int g = 0; g < gates; ++g) sum[g] = load(sums + (r * gates + g) * kLanes);
        finish_cell<kind>(args, sum, gates_x + r * args.gates_x_row, begin + r, block);
      }
    }
  }
}

// The input's product is summed beside the recurrent one of one row, which waits for its weights half of the time,
// where the registers hold both: so many sums.
constexpr int kInputSums = 24;

// `n` rows of a group of gates.
template <CellKind kind, int n>
struct InputSums {
  static constexpr int gates = gates_of(kind), vectors = kInputSums / n, groups = gates / vectors;
  static constexpr int panel = panel_vectors(kind);
  static_assert(vectors * groups == gates && (vectors % panel == 0 || panel % vectors == 0));

  F32 sum[n][vectors];
  const float* x;
  const float* w;
  float* out;
  int64_t w_panel;  // from one panel to the next

  NEO_INLINE InputSums(const InputArgs& args, int64_t block, int64_t group, int64_t k) {
    const int64_t first = group * vectors;
    out = args.out + (block * n * gates + first) * kLanes;
    w_panel = args.input * panel * kLanes;
    w = args.weights + (block * gates + first) / panel * w_panel + (k * panel + first % panel) * kLanes;
    x = args.x + k * n;
    const float* bias = args.bias + (block * gates + first) * kLanes;
#pragma GCC unroll 24
    for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = load((k == 0 ? bias : out + r * gates * kLanes) + v * kLanes);
    }
  }

  // In two halves where the registers do not hold all weights beside the sums.
  NEO_INLINE void add() {
    constexpr int count = vectors > 3 ? vectors / 2 : vectors;
#pragma GCC unroll 2
    for (int first = 0; first < vectors; first += count) {
      F32 weight[count];
      for (int v = 0; v < count; ++v) {
        const int at = first + v;
        weight[v] = load(w + at / panel * w_panel + at % panel * kLanes);
      }
#pragma GCC unroll 24
      for (int r = 0; r < n; ++r) {
        const F32 value = broadcast(x[r]);
        for (int v = 0; v < count; ++v) sum[r][first + v] = fma(value, weight[v], sum[r][first + v]);
      }
      // Else the compiler keeps the values of the first half in registers that the sums need.
      if (count < vectors) __asm__("" : "+r"(x));
    }
    x += n;
    w += panel * kLanes;
  }

  NEO_INLINE void put() const {
#pragma GCC unroll 24
    for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(out + (r * gates + v) * kLanes, sum[r][v]);
    }
  }
};

// The positions [begin, end) of the blocks from `first_block` on. between() follows every one.
template <CellKind kind, int n, class F>
NEO_INLINE void add_input(const InputArgs& args, int64_t first_block, int64_t begin, int64_t end, F&& between) {
  constexpr int groups = InputSums<kind, n>::groups;
  while (begin < end) {
    const int64_t group = begin / args.input, k = begin - group * args.input;
    const int64_t left = args.input - k, count = left < end - begin ? left : end - begin;
    InputSums<kind, n> sums(args, first_block + group / groups, group % groups, k);
    for (int64_t i = 0; i < count; ++i) {
      sums.add();
      between();
    }
    sums.put();
    begin += count;
  }
}

template <CellKind kind, int n>
void input_of(const InputArgs& args, int64_t first_block) {
  add_input<kind, n>(args, first_block, args.begin, args.end, []() NEO_LAMBDA {});
}

template <CellKind kind, int n>
void cells_beside(const CellArgs& args, const InputArgs& input, int64_t block_begin, int64_t block_end) {
  constexpr int gates = gates_of(kind);
  const int64_t blocks = block_end - block_begin, positions = input.end - input.begin;
  cells_of_row<kind>(
      args, 0, block_begin, block_end, [&](int64_t i, int64_t block, int64_t next, float* to) NEO_LAMBDA {
        const int64_t begin = input.begin + positions * i / blocks, end = input.begin + positions * (i + 1) / blocks;
        F32 sum[gates];
        start_block<kind>(args, 0, block, next, sum);
        const float* w = args.weights + block * args.hidden * gates * kLanes;
        const float* h = args.h_in;
        const float* const h_end = h + args.hidden;
        const auto add = [&]() NEO_LAMBDA {
          const F32 value = broadcast(*h);
          for (int g = 0; g < gates; ++g) sum[g] = fma(value, load(w + g * kLanes), sum[g]);
          ++h;
          w += gates * kLanes;
        };
        const int64_t count = end > begin ? end - begin : 1, each = args.hidden / count;
        int64_t longer = args.hidden - each * count;
        add_input<kind, n>(input, block_begin, begin, end, [&]() NEO_LAMBDA {
          for (int64_t k = each + (--longer >= 0); k > 0; --k) add();
        });
        while (h < h_end) add();
        for (int g = 0; g < gates; ++g) store(to + g * kLanes, sum[g]);
      });
}

// f<kind, rows>() for a tile.
template <class F>
NEO_INLINE void with_tile(CellKind kind, int64_t tile, F&& f) {
  if constexpr (kHasInputTiles) {
    if (kind == CellKind::Lstm) {
      if (tile == 6) return f.template operator()<CellKind::Lstm, 6>();
      return f.template operator()<CellKind::Lstm, 12>();
    }
    if (tile == 8) return f.template operator()<CellKind::GruLinear, 8>();
    return f.template operator()<CellKind::GruLinear, 24>();
  }
}

// f<kind>()
template <class F>
NEO_INLINE void with_kind(CellKind kind, F&& f) {
  switch (kind) {
    case CellKind::Lstm:
      return f.template operator()<CellKind::Lstm>();
    case CellKind::GruLinear:
      return f.template operator()<CellKind::GruLinear>();
    case CellKind::GruGates:
      return f.template operator()<CellKind::GruGates>();
    case CellKind::GruCandidate:
      return f.template operator()<CellKind::GruCandidate>();
    case CellKind::RnnTanh:
      return f.template operator()<CellKind::RnnTanh>();
    default:
      return f.template operator()<CellKind::RnnRelu>();
  }
}

}  // namespace

InputTiles recurrent_tiles(CellKind kind) {
  if (!kHasInputTiles) return {};
  if (kind == CellKind::Lstm) return {6, 12};
  if (kind == CellKind::GruLinear) return {8, 24};
  return {};
}

int recurrent_tile_groups(CellKind kind, int64_t tile) {
  return static_cast<int>(gates_of(kind) * tile / kInputSums);
}

int recurrent_panel_vectors(CellKind kind) {
  return kHasInputTiles && recurrent_tiles(kind).small > 0 ? panel_vectors(kind) : 0;
}

bool recurrent_takes_input(CellKind kind) {
  return takes_input(kind);
}

void recurrent_pack(const float* x, int64_t x_row, int64_t rows, int64_t input, int64_t tile, float* to,
                    int64_t to_row) {
  for (int64_t first = 0; first < tile; first += kLanes) {
    const int64_t lanes = tile - first < kLanes ? tile - first : kLanes;
    for (int64_t k = 0; k < input; k += kLanes) {
      const int64_t count = input - k < kLanes ? input - k : kLanes;
      F32 block[kLanes];
      for (int64_t r = 0; r < kLanes; ++r) {
        block[r] = first + r < rows ? load_n(x + (first + r) * x_row + k, count) : zero();
      }
      transpose(block);
      for (int64_t i = 0; i < count; ++i) store_n(to + (k + i) * to_row + first, block[i], lanes);
    }
  }
}

void recurrent_input(CellKind kind, const InputArgs& args, int64_t first_block) {
  with_tile(kind, args.tile, [&]<CellKind k, int n>() { input_of<k, n>(args, first_block); });
}

void recurrent_cells_beside(const CellArgs& args, const InputArgs& input, int64_t block_begin, int64_t block_end) {
  with_tile(args.kind, input.tile,
            [&]<CellKind k, int n>() { cells_beside<k, n>(args, input, block_begin, block_end); });
}

void recurrent_cells(const CellArgs& args, int64_t row_begin, int64_t row_end, int64_t block_begin, int64_t block_end) {
  with_kind(args.kind, [&]<CellKind kind>() { cells<kind>(args, row_begin, row_end, block_begin, block_end); });
}

void recurrent_start(const CellArgs& args, int64_t row, int64_t block, int64_t next, float* to) {
  with_kind(args.kind, [&]<CellKind kind>() {
    F32 sum[gates_of(kind)];
    start_block<kind>(args, row, block, next, sum);
    for (int g = 0; g < gates_of(kind); ++g) store(to + g * kLanes, sum[g]);
  });
}

void recurrent_finish(const CellArgs& args, int64_t row, int64_t block, int64_t step, int64_t count,
                      const float* sums) {
  with_kind(args.kind, [&]<CellKind kind>() { finish_blocks<kind>(args, row, block, step, count, sums); });
}

void recurrent_finish_products(const CellArgs& args, int64_t rows, int64_t block_begin, int64_t block_end,
                               const float* products, int64_t gate) {
  with_kind(args.kind,
            [&]<CellKind kind>() { finish_products<kind>(args, rows, block_begin, block_end, products, gate); });
}

}  // namespace neo::NEO_ISA
