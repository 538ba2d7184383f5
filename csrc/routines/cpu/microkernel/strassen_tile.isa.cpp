#include "routines/cpu/microkernel/strassen_tile.h"

#include "routines/cpu/microkernel/accumulate.h"

// The tiles that an export compiles: see used_kernels.h.
#ifndef NEO_STRASSEN_TILES
#define NEO_STRASSEN_TILES (~(uint64_t)0)
#endif

namespace neo::NEO_ISA {
namespace {

// The use of the sums after each product; sums that several quarters share are kept in places beside the
// registers. One copy of this code serves all products: there are seven of them, and many kernels.
struct After {
  int keep = -1;              // the place where the sums are kept
  int also = -1;              // a place whose sums are added for the quarter
  int right = -1, lower = 0;  // the quarter that they are then; -1: none
  int next[2] = {-1, -1};     // the places that the next sums begin with, where these are given up
  bool is_done = false;       // these are given up
};
constexpr After kAfter[kStrassenProducts] = {
    {.keep = 0},                                                                      // p1
    {.right = 0, .lower = 0, .next = {0, -1}, .is_done = true},                       // p1 + p2
    {.keep = 0},                                                                      // p1 + p6
    {.keep = 1},                                                                      // p1 + p6 + p7
    {.right = 0, .lower = 1, .is_done = true},                                        // p1 + p6 + p7 + p4
    {.keep = 2, .also = 1, .right = 1, .lower = 1, .next = {0, 2}, .is_done = true},  // p5
    {.right = 1, .lower = 0},                                                         // p1 + p6 + p5 + p3
};
constexpr int kPlaces = 3;

template <int V, int R>
NEO_INLINE void add(F32 (&acc)[R][V], const float* from, int64_t row, int64_t vector, int64_t first) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    if (r < first) continue;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = acc[r][v] + load(from + r * row + v * vector);
  }
}

// To what the level around this one makes of a quarter too.
template <int V, int R>
NEO_INLINE void add_to_also(const StrassenTile& t, const F32 (&acc)[R][V], int right, int lower) {
  const int64_t first = t.skipped[right];
  float* const also = t.also + right * t.right + lower * t.partial_lower;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    if (r < first) continue;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* const at = also + r * kLanes + v * t.partial_vector;
      store(at, load(at) + acc[r][v]);
    }
  }
}

template <int V, int R>
NEO_INLINE void store_quarter(const StrassenTile& t, F32 (&acc)[R][V], int right, int lower) {
  const int64_t first = t.skipped[right];
  const int64_t partial = right * t.right + lower * t.partial_lower;
  if (t.partial) add(acc, t.partial + partial, kLanes, t.partial_vector, first);
  if (t.residual) {
    add(acc, t.residual + right * t.right + lower * t.residual_lower, kLanes, t.residual_vector, first);
  }
  float* const dst = t.dst + right * t.right + lower * t.dst_lower;
  const float* const bias = t.bias[lower];
  const F32 lo = broadcast(t.lo), hi = broadcast(t.hi);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const F32 b = bias ? load(bias + v * kLanes) : zero();
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      if (r >= first) store(dst + v * t.dst_vector + r * kLanes, min(hi, max(lo, acc[r][v] + b)));
    }
  }
}

// Prefetches what a quarter is added to and where it goes, while its last product runs: images lie in far caches. A
// few lines are fetched beside each block, since a processor keeps few misses in flight, and beside the last blocks,
// since weights drive from the first-level cache what waits there.
template <int V, int R>
struct QuarterAhead {
  static constexpr bool kFetches = kLanes * sizeof(float) >= 64;  // else several vectors share a line
  const float* dst = nullptr;
  const float* residual = nullptr;
  int64_t dst_vector = 0, residual_vector = 0;
  int64_t wait = 0;  // blocks before the first that fetches
  int64_t step = 0;  // rows per block
  int64_t row = R;

  NEO_INLINE void begin(const StrassenTile& t, int right, int lower) {
    if constexpr (!kFetches) return;
    dst = t.dst + right * t.right + lower * t.dst_lower;
    residual = t.residual ? t.residual + right * t.right + lower * t.residual_lower : nullptr;
    dst_vector = t.dst_vector;
    residual_vector = t.residual_vector;
    constexpr int64_t kLast = R + 4;
    const int64_t blocks = t.blocks + t.rest_blocks;
    wait = blocks > kLast ? blocks - kLast : 0;
    step = blocks >= R ? 1 : (R + blocks - 1) / blocks;
    row = 0;
  }

  NEO_INLINE void fetch() {
    if (wait-- > 0) return;
    for (const int64_t end = row + step < R ? row + step : R; row < end; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        prefetch_write(dst + v * dst_vector + row * kLanes);
        if (residual) prefetch_read(residual + v * residual_vector + row * kLanes);
      }
    }
  }
};

// Steps of a block of a product, see StrassenKernels. With few registers loops of products have none left for sums.
constexpr int kSteps = kVectorRegisters == 32 ? kLanes / kTogether : 1;

NEO_INLINE void make_sums(StrassenSums& t) {
  if (kSteps > 1 && t.blocks == 0) return;
  const int64_t end = t.row + t.step < t.rows ? t.row + t.step : t.rows;
  const float *left = t.source + t.row * kLanes, *right = left + t.right;
  float* to = t.sums + t.row * kLanes;
#pragma GCC unroll 1
  for (int64_t i = t.row; i < end; ++i) {
    const F32 r = load(right), u = load(right + t.second);
    const F32 across = r - load(left), rest = u - across;
    store(to, rest);
    store(to + t.sum, u - r);
    store(to + 2 * t.sum, rest - load(left + t.second));
    store(to + 3 * t.sum, across);
    left += kLanes;
    right += kLanes;
    to += kLanes;
  }
  t.row = end;
  if (end < t.rows) return;
  t.row = 0;
  --t.blocks;
  t.source += t.stride;
  t.sums += t.sums_stride;
}

template <int V, int R>
void run_tile(const StrassenTile& t) {
  constexpr int kRow = V * kLanes;
  F32 acc[R][V];
  alignas(64) float places[kPlaces][R * kRow];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero();
  }
  const float* weight = t.weight;
  Prefetcher prefetched = {(const char*)(t.prefetched ? t.prefetched : weight),
                           t.prefetched_step * (int64_t)sizeof(float)};
  int64_t prefetched_blocks = t.prefetched ? t.prefetched_blocks : 0,
          prefetched_block = t.prefetched_block * (int64_t)sizeof(float);
  StrassenSums own = t.own;
  for (int product = 0; product < kStrassenProducts; ++product) {
    asm("" : "+r"(product));
    const After& after = kAfter[product];
    QuarterAhead<V, R> quarter;
    if (after.right >= 0) quarter.begin(t, after.right, after.lower);
    const float* source = t.source[product];
    int64_t blocks = t.blocks, stride = t.stride[product];
    StrassenSums* const sums = product < kStrassenPlain ? &own : t.others;
    for (bool is_rest = false;; is_rest = true) {
      for (int64_t b = 0; b < blocks; ++b) {
        quarter.fetch();
        if (prefetched_blocks-- == 0) {
          prefetched = {(const char*)(t.later ? t.later : weight), t.later_step * (int64_t)sizeof(float)};
          prefetched_block = 0;
        }
        const bool makes = sums && sums->blocks > 0;
        if (makes && kSteps > 1) {
          // A loop of its own: those without sums to make are not to pay for it.
          sum_lanes<V, R>(
              acc, weight, source, kLanes, prefetched, [&]() __attribute__((always_inline)) { make_sums(*sums); });
        } else {
          if (makes) make_sums(*sums);
          // Wider tiles are rare, and the library small.
          sum_lanes<V, R, V == 2 ? dense_step<V, R>() : kTogether>(acc, weight, source, kLanes, prefetched);
        }
        source += stride;
        weight += kLanes * kRow;
        prefetched.at += prefetched_block;
      }
      if (is_rest) break;
      if (after.keep >= 0) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) store(places[after.keep] + r * kRow + v * kLanes, acc[r][v]);
        }
      }
      if (after.right < 0) break;
      if (after.also >= 0) add(acc, places[after.also], kRow, kLanes, 0);
      if (t.also) add_to_also(t, acc, after.right, after.lower);
      if (t.rest_blocks == 0) break;
      source = t.rest[after.right];
      blocks = t.rest_blocks;
      stride = t.rest_stride;
    }
    if (after.right >= 0) store_quarter(t, acc, after.right, after.lower);
    if (!after.is_done) continue;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = zero();
    }
#pragma GCC unroll 1
    for (const int place : after.next) {
      if (place >= 0) add(acc, places[place], kRow, kLanes, 0);
    }
  }
}

void copy_pixels(const StrassenPixels& t) {
  for (int64_t b = 0; b < t.blocks; ++b) {
    const float* src = t.src + b * t.src_block;
    float* dst = t.dst + b * t.dst_block;
    for (int64_t i = 0; i < t.count; ++i) store(dst + i * kLanes, load(src + i * t.step));
  }
}

// The weights of all seven products do not stay in the first-level cache, and every tile reads them again: where a
// vector is a line, narrow tiles of many rows do that half as often.
constexpr int kWanted = kLanes == 16 ? 2 : kPanelVectors;
constexpr int kMinVectors = (kWanted + 2) / 2;
constexpr int kMaxVectors = kWanted > kMinVectors ? kWanted : kMinVectors + 1;

template <int V, int R>
constexpr void fill_row(StrassenKernels& table) {
  constexpr int kMax = max_tile_rows(V);
  table.max_rows[V] = kMax;
  if constexpr (R <= kMax) {
    constexpr bool is_kept = ((NEO_STRASSEN_TILES >> (16 * (V - 1) + R)) & 1) != 0;
    if constexpr (is_kept && (R == 1 || R >= fewest_strassen_rows(kMax))) table.tile[V][R] = run_tile<V, R>;
    fill_row<V, R + 1>(table);
  }
}

constexpr StrassenKernels make_table() {
  StrassenKernels table = {};
  table.steps = kSteps;
  table.copy = copy_pixels;
  table.panel_vectors = kWanted;
  table.has_few_registers = kVectorRegisters < 32;
  table.fewest_vectors = kMinVectors;
  fill_row<kMinVectors, 1>(table);
  fill_row<kMaxVectors, 1>(table);
  static_assert(kMaxVectors == kMinVectors + 1 && kMaxVectors <= kTileVectors);
  return table;
}

constexpr StrassenKernels kTable = make_table();

}  // namespace

const StrassenKernels& strassen_kernels() {
  return kTable;
}

}  // namespace neo::NEO_ISA
