#include "routines/cpu/microkernel/tile.h"

#include "routines/cpu/microkernel/accumulate.h"

// The register blocks that are compiled, by form: bit 16 * (vectors - 1) + rows. An export has those that its plan uses
// (used_kernels.h), the scalar tier of the library a few. The others are put together from those, to the same bits.
#ifndef NEO_TILE_ROWS
#define NEO_TILE_ROWS (~(uint64_t)0)
#define NEO_TILE_COLUMNS (~(uint64_t)0)
#endif

namespace neo::NEO_ISA {
namespace {

constexpr bool kSplits = (NEO_TILE_ROWS & NEO_TILE_COLUMNS) != ~(uint64_t)0;
constexpr uint64_t kept_blocks(bool columns, int vectors) {
  return ((columns ? NEO_TILE_COLUMNS : NEO_TILE_ROWS) >> (16 * (vectors - 1))) & 0xFFFF;
}
// Single rows of the vectors that are used, and a single vector, are always there.
constexpr bool keeps(bool columns, int vectors, int rows) {
  const uint64_t kept = kept_blocks(columns, vectors);
  return rows == 1 ? vectors == 1 || kept != 0 : ((kept >> rows) & 1) != 0;
}

template <int V, int R>
NEO_INLINE void sum_columns(F32 (&acc)[R][V], const float* weight, int64_t weight_step, const float* src, int64_t step,
                            int64_t count, Prefetcher& prefetched) {
  for (int64_t k = 0; k < count; ++k) {
    step_k<V, R>(
        acc, weight, [&](int r) __attribute__((always_inline))->const float& { return src[r]; });
    weight += weight_step;
    src += step;
    prefetched.fetch(1);
  }
}

// Prefetches what is added to the sums and where they go, while they are computed: images lie in far caches, and
// stores that miss there hold up the next block. It does so over parts of the sums, since a processor keeps few misses
// in flight, and over the last ones, since weights drive from the first-level cache what waits there.
template <int V, int R>
struct PrefetchedResults {
  const Tile& t;
  int64_t wait;  // parts before the first that fetches
  int64_t step;  // rows per part
  int64_t row = 0;

  NEO_INLINE PrefetchedResults(const Tile& tile, int64_t parts, int64_t last)
      : t(tile), wait(parts > last ? parts - last : 0) {
    const int64_t fetching = parts - wait;
    step = fetching >= R || fetching == 0 ? 1 : (R + fetching - 1) / fetching;
  }

  NEO_INLINE void fetch() {
    if (wait-- > 0) return;
    fetch_to(row + step < R ? row + step : R);
  }

  NEO_INLINE void fetch_all() { fetch_to(R); }

 private:
  NEO_INLINE void fetch_to(int64_t end) {
    if constexpr (kLanes * sizeof(float) < 64) return;  // several vectors share a line
#pragma GCC unroll 1
    for (; row < end; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        prefetch_write(t.dst + row * t.dst_row + t.dst_vector[v]);
        if (t.init) prefetch_read(t.init + row * t.init_row + t.init_vector[v]);
      }
    }
  }
};

// Products at any places: the sums of a convolution with few input channels.
template <int V, int R>
NEO_INLINE void sum_points(F32 (&acc)[R][V], const Tile& t) {
  const int64_t step = t.step, jump = kShared * step;
  const float* const src = t.src + (kSplits ? t.first_row * step : 0);
  const float* const weight = t.weight;
  PrefetchedResults<V, R>(t, 0, 0).fetch_all();
  for (const TileTap *tap = t.taps, *end = tap + t.tap_count; tap != end; ++tap) {
    const float* base = src + tap->offset;
    step_k<V, R>(
        acc, weight + tap->weight_offset, [&](int r) __attribute__((always_inline))->const float& {
          if (r > 0 && r % kShared == 0) {
            base += jump;
            asm("" : "+r"(base));
          }
          return base[(r % kShared) * step];
        });
  }
}

[[gnu::noinline]] void gather_rows(float* scratch, const float* src, const int32_t* offset, int rows, int64_t size) {
  for (int r = 0; r < rows; ++r, scratch += size) {
    const float* row = src + offset[r];
    const bool outside = offset[r] == Tile::kOutside;
    int64_t k = 0;
    for (; k + kLanes <= size; k += kLanes) store(scratch + k, outside ? zero() : load(row + k));
    for (; k < size; ++k) scratch[k] = outside ? 0.0f : row[k];
  }
}

// Images are read piece by piece, which the prefetchers of x86-64 do not foresee; elsewhere it is not measured.
constexpr bool kFetchesRows = kLanes >= 8;

// One tap of rows that are evenly spaced, with dense weights: blocks of whole times kTogether k, and of the last one as
// many as there are. With few registers a loop for each, which has none left to count what is prefetched. Else one
// loop over all of them: a loop for each took 8 to 20 cycles more a block, it seems for ends that the processor foresaw
// wrongly.
template <int V, int R>
NEO_INLINE void sum_dense_rows(F32 (&acc)[R][V], const Tile& t, Prefetcher prefetched) {
  constexpr int kStep = dense_step<V, R>(), kLast = (R + 4) * kTogether / kStep;
  constexpr int64_t kMove = kStep * (int64_t)sizeof(float);
  // A single block has no next one.
  const int64_t last_block = t.last_size / kStep, block = t.blocks == 1 ? last_block + 1 : t.block_size / kStep;
  const float* weight = t.weight + t.taps->weight_offset;
  Rows<R> rows(t.src + t.taps->offset + (kSplits ? t.first_row * t.step : 0), t.step);
  if constexpr (kVectorRegisters < 32) {
    const int64_t to_next = (t.block_stride - t.block_size) * (int64_t)sizeof(float);
#pragma GCC unroll 1
    for (int64_t b = t.blocks; b > 0; --b) {
      if (kFetchesRows && t.fetches_rows) rows.fetch_next();
#pragma GCC unroll 1
      for (int64_t i = b > 1 ? block : last_block; i > 0; --i) {
        sum_together<V, R, kStep>(acc, weight, rows);
        rows.move(kMove);
      }
      rows.move(to_next);
    }
    return;
  }
  const int64_t last_move = t.block_stride * (int64_t)sizeof(float) - (block - 1) * kMove;
  const int64_t last_prefetched = t.prefetched_block * (int64_t)sizeof(float);
  const int64_t count = (t.blocks - 1) * block + last_block;
  PrefetchedResults<V, R> results(t, count, kLast);
  int64_t left = block;
#pragma GCC unroll 1
  for (int64_t i = count; i > 0; --i) {
    sum_together<V, R, kStep>(acc, weight, rows);
    if (kFetchesRows && t.fetches_rows && left == block) rows.fetch_next();
    prefetched.fetch(kStep);
    results.fetch();
    const bool is_last = --left == 0;
    prefetched.at += is_last ? last_prefetched : 0;
    rows.move(is_last ? last_move : kMove);
    left = is_last ? block : left;
  }
#pragma GCC unroll 1
  for (int64_t i = t.last_size % kStep / kTogether; i > 0; --i) {
    sum_together<V, R>(acc, weight, rows);
    prefetched.fetch(kTogether);
    rows.move(kTogether * (int64_t)sizeof(float));
  }
}

// The first `blocks`, as wide as a vector, with dense weights. They have a loop of their own: what the other one
// computes before each block takes a tenth of the time.
template <int V, int R>
NEO_INLINE void sum_dense(F32 (&acc)[R][V], const Tile& t, int64_t blocks, Prefetcher prefetched) {
  constexpr int64_t kTap = kLanes * V * kLanes;
  const float* weight = t.weight;
  const float* src = t.src;
  PrefetchedResults<V, R> results(t, blocks * t.tap_count, R + 4);
  for (int64_t b = blocks; b > 0; --b) {
    for (const TileTap *tap = t.taps, *end = tap + t.tap_count; tap != end; ++tap) {
      if (blocks * t.tap_count > 1) results.fetch();
      const float* rows = src + tap->offset + (kSplits ? t.first_row * t.step : 0);
      int64_t step = t.step;
      if (tap->row_offset) [[unlikely]] {
        gather_rows(t.scratch, src, tap->row_offset + (kSplits ? t.first_row : 0), R, kLanes);
        rows = t.scratch;
        step = kLanes;
      }
      sum_lanes<V, R>(acc, weight + tap->index * kTap + tap->weight_offset, rows, step, prefetched);
    }
    src += t.block_stride;
    weight += t.weight_taps * kTap;
    prefetched.at += t.prefetched_block * (int64_t)sizeof(float);
  }
}

template <int V, int R, bool kColumns>
NEO_INLINE void sum_blocks(F32 (&acc)[R][V], const Tile& t) {
  const float* weight = t.weight;
  const float* src = t.src;
  Prefetcher prefetched = {(const char*)(t.prefetched ? t.prefetched : weight),
                           t.prefetched_step * (int64_t)sizeof(float)};
  // Blocks, and of the next one k, that a loop of dense weights has added.
  int64_t first = 0, done = 0;
  if constexpr (!kColumns) {
    const bool is_even = t.block_size == t.last_size;
    if (t.weight_step == V * kLanes && t.blocks > 0) {
      const bool is_single = t.tap_count == 1 && t.weight_taps == 1 && t.taps->index == 0 && !t.taps->row_offset;
      if (is_single && (t.blocks == 1 || t.block_size % dense_step<V, R>() == 0)) {
        sum_dense_rows<V, R>(acc, t, prefetched);
        first = t.blocks - 1;
        done = t.last_size / kTogether * kTogether;
        if (done == t.last_size) return;
      } else if (t.block_size == kLanes && (is_even || t.blocks > 1)) {
        first = is_even ? t.blocks : t.blocks - 1;
        sum_dense<V, R>(acc, t, first, prefetched);
        if (is_even) return;
      }
    }
    src += first * t.block_stride;
    weight += first * t.weight_taps * t.block_size * t.weight_step;
    prefetched.at +=
        first * (t.tap_count * t.block_size * prefetched.step + t.prefetched_block * (int64_t)sizeof(float));
  }
  constexpr int64_t kTail = 64, kLast = R + 4;
  const int64_t parts = t.blocks * t.tap_count;
  PrefetchedResults<V, R> results(t, parts, kLast);
  if (first + done > 0) results.row = R;
  for (int64_t b = first; b < t.blocks; ++b) {
    const int64_t size = b + 1 < t.blocks ? t.block_size : t.last_size;
    for (int64_t i = 0; i < t.tap_count; ++i) {
      const TileTap& tap = t.taps[i];
      const float* w = weight + tap.index * size * t.weight_step + tap.weight_offset;
      if constexpr (kColumns) {
        results.fetch();
        sum_columns<V, R>(acc, w, t.weight_step, src + tap.offset + (kSplits ? t.first_row : 0), t.step, size,
                          prefetched);
      } else {
        const float* rows = src + tap.offset + (kSplits ? t.first_row * t.step : 0);
        int64_t step = t.step;
        if (tap.row_offset) [[unlikely]] {
          gather_rows(t.scratch, src, tap.row_offset + (kSplits ? t.first_row : 0), R, size);
          rows = t.scratch;
          step = size;
        }
        // All at once, or a beginning and its tail, by one copy of the code.
        int64_t k = done;
#pragma GCC unroll 1
        for (int64_t count = 0; k < size; k += count) {
          asm("" : "+r"(k));
          const bool is_first = parts == 1 && k == 0 && size > kTail;
          count = is_first ? size - kTail : size - k;
          if (parts == 1 ? !is_first : k == 0) results.fetch();
          sum_rows<V, R>(acc, w + k * t.weight_step, t.weight_step, rows + k, step, count, prefetched);
        }
      }
    }
    src += t.block_stride;
    weight += t.weight_taps * size * t.weight_step;
    prefetched.at += t.prefetched_block * (int64_t)sizeof(float);
  }
}

template <int V, int R, bool kColumns>
void run_tile(const Tile& t) {
  F32 acc[R][V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const F32 b = t.bias ? load(t.bias + v * kLanes) : zero();
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r][v] = b;
  }
  if (t.goes_on) [[unlikely]] {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = load(t.dst + r * t.dst_row + t.dst_vector[v]);
    }
  } else if (t.row_bias) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F32 b = broadcast(t.row_bias[r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = acc[r][v] + b;
    }
  }
  if (!kColumns && t.points) {
    sum_points<V, R>(acc, t);
  } else {
    sum_blocks<V, R, kColumns>(acc, t);
  }
  if (t.init) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = acc[r][v] + load(t.init + r * t.init_row + t.init_vector[v]);
    }
  }
  // Copies: as far as the compiler can tell, stores may change what `t` holds.
  const F32 lo = broadcast(t.lo), hi = broadcast(t.hi);
  const int64_t dst_row = t.dst_row;
  float* dst[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) dst[v] = t.dst + t.dst_vector[v];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      store(dst[v], min(hi, max(lo, acc[r][v])));
      dst[v] += dst_row;
    }
  }
}

// A tile as its first rows and the others.
[[gnu::noinline, maybe_unused]] void run_parts(const Tile& t, int64_t rows, TileKernel first, TileKernel second) {
  first(t);
  Tile rest = t;
  rest.first_row += rows;
  rest.prefetched = nullptr;
  if (rest.row_bias) rest.row_bias += rows;
  if (rest.init) rest.init += rows * t.init_row;
  rest.dst += rows * t.dst_row;
  second(rest);
}

// A tile vector by vector.
[[gnu::noinline, maybe_unused]] void run_vectors(const Tile& t, int64_t vectors, TileKernel one) {
  for (int64_t v = 0; v < vectors; ++v) {
    Tile part = t;
    part.weight += v * kLanes;
    if (part.bias) part.bias += v * kLanes;
    if (v > 0) part.prefetched = nullptr;
    part.init_vector[0] = t.init_vector[v];
    part.dst_vector[0] = t.dst_vector[v];
    one(part);
  }
}

template <int V, int R, bool kColumns>
constexpr TileKernel block_kernel();

// A block that is not compiled, as several that are.
template <int V, int R, bool kColumns>
void run_split(const Tile& t) {
  if constexpr (V > 1 && kept_blocks(kColumns, V) == 0) {
    run_vectors(t, V, block_kernel<1, R, kColumns>());
  } else {
    constexpr int kRows = [] {
      int rows = R - 1;
      while (rows > 1 && !keeps(kColumns, V, rows)) --rows;
      return rows;
    }();
    run_parts(t, kRows, block_kernel<V, kRows, kColumns>(), block_kernel<V, R - kRows, kColumns>());
  }
}

template <int V, int R, bool kColumns>
constexpr TileKernel block_kernel() {
  if constexpr (keeps(kColumns, V, R)) {
    return run_tile<V, R, kColumns>;
  } else {
    return run_split<V, R, kColumns>;
  }
}

void run_edge(const TileEdge& t) {
  const F32 lo = broadcast(t.lo), hi = broadcast(t.hi);
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t v = 0; v < t.vectors; ++v) {
      const int64_t left = t.columns - v * kLanes;
      const int64_t n = left < 0 ? 0 : (left < kLanes ? left : kLanes);
      if (n == 0) break;
      F32 x = load(t.acc + (r * t.vectors + v) * kLanes);
      if (n == kLanes) {
        if (t.init) x = x + load(t.init + r * t.init_row + t.init_vector[v]);
        store(t.dst + r * t.dst_row + t.dst_vector[v], min(hi, max(lo, x)));
        continue;
      }
      if (t.init) x = x + load_n(t.init + r * t.init_row + t.init_vector[v], n);
      store_n(t.dst + r * t.dst_row + t.dst_vector[v], min(hi, max(lo, x)), n);
    }
  }
}

void run_clear(float* dst, int64_t dst_row, int64_t rows, int64_t count) {
  for (; rows > 0; --rows, dst += dst_row) store_n(dst, zero(), count);
}

template <int V, int R>
constexpr void fill_row(TileKernels& table) {
  if constexpr (R <= max_tile_rows(V)) {
    table.rows[V][R] = block_kernel<V, R, false>();
    table.columns[V][R] = block_kernel<V, R, true>();
    fill_row<V, R + 1>(table);
  }
}

constexpr TileKernels make_table() {
  TileKernels table = {};
  table.lanes = kLanes;
  table.panel_vectors = kPanelVectors;
  for (int v = 1; v <= kTileVectors; ++v) table.max_rows[v] = max_tile_rows(v);
  table.edge = run_edge;
  table.short_product = short_product;
  table.row_product = row_product;
  table.dot_product = dot_product;
  table.clear = run_clear;
  fill_row<1, 1>(table);
  fill_row<2, 1>(table);
  fill_row<3, 1>(table);
  fill_row<4, 1>(table);
  return table;
}

constexpr TileKernels kTable = make_table();

}  // namespace

const TileKernels& tile_kernels() {
  return kTable;
}

}  // namespace neo::NEO_ISA
