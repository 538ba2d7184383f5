#include "routines/cpu/gemm/tile_use.h"

#include <atomic>
#include <utility>

namespace neo {
namespace {

std::atomic<uint64_t> used_rows, used_columns;
TileKernels real;      // what runs
TileKernels recorded;  // what steps call

template <int V, int R>
void run_rows(const Tile& tile) {
  used_rows.fetch_or(tile_bit(V, R), std::memory_order_relaxed);
  real.rows[V][R](tile);
}

template <int V, int R>
void run_columns(const Tile& tile) {
  used_columns.fetch_or(tile_bit(V, R), std::memory_order_relaxed);
  real.columns[V][R](tile);
}

template <int V, size_t... R>
void fill(std::index_sequence<R...>) {
  ((recorded.rows[V][R] = real.rows[V][R] ? run_rows<V, static_cast<int>(R)> : nullptr), ...);
  ((recorded.columns[V][R] = real.columns[V][R] ? run_columns<V, static_cast<int>(R)> : nullptr), ...);
}

const TileKernels& record(const TileKernels& kernels) {
  real = recorded = kernels;
  using Rows = std::make_index_sequence<kTileRows + 1>;
  fill<1>(Rows());
  fill<2>(Rows());
  fill<3>(Rows());
  fill<4>(Rows());
  static_assert(kTileVectors == 4);
  return recorded;
}

}  // namespace

TileUse::TileUse() : before_(replace_tile_kernels) {
  used_rows = 0;
  used_columns = 0;
  replace_tile_kernels = record;
}

TileUse::~TileUse() {
  replace_tile_kernels = before_;
}

uint64_t TileUse::rows() const {
  return used_rows;
}

uint64_t TileUse::columns() const {
  return used_columns;
}

}  // namespace neo
